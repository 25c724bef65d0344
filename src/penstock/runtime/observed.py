"""What a running join has seen of its streams: a workload for the planner.

Worked out when it is asked for. A push only notes how many tuples came and of which times. Keys and
row widths are those of the tuples that are live, rates those of the last batches, or of the live
tuples if batches bring few: so both follow the streams as they change. Under limits live tuples
are those worth keeping, not those that came, and rates are of batches alone. So they are if
promises let tuples go early; the keys of those that are left are scaled up to a whole window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.engine.arrivals import Arrivals, Intake
from penstock.errors import StateError
from penstock.kernels.arena import MUTE, Words
from penstock.model.workload.workload import Workload, path_columns
from penstock.runtime.counted import metrics_of
from penstock.runtime.pairs import Part, are_linked, pair_selectivity

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["Recent", "observed_workload"]

_BATCHES: Final = 256
_ENOUGH: Final = 1_000  # tuples to estimate a rate from: to 3 % if they come at random
_ROWS: Final = 1 << 18  # words to sketch at a time
_SAMPLE: Final = 1 << 12  # tuples to draw from, for predicates and widths
_SEED: Final = 0
_US: Final = 1e6


class Recent:
    """The last batches of a stream: of each its tuples and rows, and the extremes of the times; and
    the punctuations that came since the first of them."""

    def __init__(self) -> None:
        self._batches: deque[tuple[int, int, int, int]] = deque(maxlen=_BATCHES)
        self._punctuations: deque[int] = deque(maxlen=_BATCHES)

    def saw(self, tuples: int, intake: Intake, punctuations: int) -> None:
        """Note a batch, how many tuples of it take part, and how many rows close a key."""
        self._batches.append((tuples, len(intake.ts), intake.earliest, intake.latest))
        self._punctuations.append(punctuations)

    def punctuated(self) -> None:
        """Note a punctuation behind the last batch."""
        if self._punctuations:
            self._punctuations[-1] += 1

    @property
    def punctuations(self) -> int:
        """How many came."""
        return sum(self._punctuations)

    def count_and_span(self) -> tuple[float, int]:
        """How many tuples came after the first row, and in how many microseconds of event time."""
        if not self._batches:
            return 0.0, 0
        counts, rows, first, last = zip(*self._batches, strict=True)
        return sum(counts) * (1 - 1 / max(sum(rows), 1)), max(last) - min(first)


def observed_workload(join: Join) -> Workload:
    """The workload that the planner would have been given, had it been known."""
    query, binding = join.query, join.driver.binding
    live = [_keyed(join, stream) for stream in range(len(query.names))]
    distinct: dict[str, dict[tuple[str, ...], float]] = {}
    row_bytes: dict[str, float] = {}
    parts: dict[int, Part] = {}
    for stream, name in enumerate(query.names):
        if not len(live[stream]):
            continue
        parts[stream], row_bytes[name] = _looked_at(join, stream, live[stream])
        paths = zip(query.access.words[stream], parts[stream].sketches, strict=True)
        known = {path_columns(word): sketch.distinct for word, sketch in paths}
        if known := {columns: count for columns, count in known.items() if columns}:
            distinct[name] = known
    rates = _rates(join, live)
    _scale_up(join, distinct, Workload(rates))
    selectivities: dict[tuple[str, str], float] = {}
    for left, right in combinations(parts, 2):
        if are_linked(query, left, right):
            share = pair_selectivity(binding, left, right, [(parts[left], parts[right])])
            if share is not None:
                selectivities[query.names[left], query.names[right]] = share
    windows = zip(query.names, query.windows, join.started_as.windows, strict=True)
    return Workload(
        rates,
        distinct=distinct,
        selectivities=selectivities,
        row_bytes=row_bytes,
        windows={name: now for name, now, was in windows if now != was} or None,
        punctuation_rates=_punctuation_rates(join) or None,
    )


def _scale_up(
    join: Join, distinct: dict[str, dict[tuple[str, ...], float]], workload: Workload
) -> None:
    """Where promises let tuples go early, make of the keys of live tuples those of all that came in
    a window's length, as if each had as many tuples."""
    for name, each in metrics_of(join).streams.items():
        early = each.discarded + each.purged
        if not early or name not in distinct:
            continue
        came = float(each.live + each.expired + each.shed + early)
        if not workload.window(join.query, name).is_endless:
            came = min(came, workload.window_tuples(join.query, name))
        scale = max(came / each.live, 1.0)
        distinct[name] = {columns: count * scale for columns, count in distinct[name].items()}


def _punctuation_rates(join: Join) -> dict[str, float]:
    """Of the streams that brought punctuations, over the span of the batches they came with."""
    found = {}
    for name, recent in zip(join.query.names, join.recent, strict=True):
        _, span_us = recent.count_and_span()
        if recent.punctuations and span_us:
            found[name] = recent.punctuations * _US / span_us
    return found


def _keyed(join: Join, stream: int) -> Words:
    """The sequence numbers of the live tuples that can meet others."""
    windows = join.driver.windows
    live = windows.live_sequences(stream)
    heard = (windows.marks(stream, live) & MUTE) == 0
    return live if bool(heard.all()) else live[heard]


def _seen(join: Join, stream: int, live: Words) -> tuple[float, int]:
    """How many tuples of a stream came after the first, and in how much event time, in us."""
    count, span_us = join.recent[stream].count_and_span()
    window = join.query.windows[stream]
    # In these the live tuples are not all that came in their time; and windows of arrivals hold
    # numbers instead of times.
    promises = join.driver.promises
    early = promises is not None and promises.discarded[stream] + promises.purged[stream] > 0
    chosen = join.plan.limits is not None or early or window.per_key or window.arrivals
    if not chosen and count < min(_ENOUGH, len(live)):
        times = join.driver.windows.timestamps(stream, live)
        count, span_us = len(live) - 1.0, int(times.max() - times.min())
    return count, span_us


def _rates(join: Join, live: Sequence[Words]) -> dict[str, float]:
    """Of all streams; one whose tuples are all of one time is measured by the span of others."""
    seen = [_seen(join, stream, of_stream) for stream, of_stream in enumerate(live)]
    longest_us = max(span_us for _, span_us in seen)
    if not longest_us:
        came = ", ".join(
            f"{count + 1:,.0f} of {name!r}"
            for name, (count, _) in zip(join.query.names, seen, strict=True)
        )
        raise StateError(
            f"rates are not known yet: the tuples that came, {came}, span no time; push more first"
        )
    return {
        name: count * _US / span_us if span_us else (count + 1) * _US / longest_us
        for name, (count, span_us) in zip(join.query.names, seen, strict=True)
    }


def _looked_at(join: Join, stream: int, live: Words) -> tuple[Part, float]:
    """The live tuples of a stream, and what is kept of one."""
    windows = join.driver.windows
    part = Part.of(join.query, stream, _SEED)
    paths = range(len(join.query.access.words[stream]))
    for number, sketch in zip(paths, part.sketches, strict=True):
        words = windows.words_of(stream, number, live)
        for begin in range(0, len(words), _ROWS):
            sketch.add(words[begin : begin + _ROWS])
    payload = windows.payloads[stream]
    assert payload is not None, "of what is live the columns are known"
    some = live
    if len(live) > _SAMPLE:
        some = np.random.default_rng(_SEED).choice(live, _SAMPLE, replace=False)
    columns = payload.take_all(some)
    tuples = Arrivals(
        windows.timestamps(stream, some),
        np.stack([windows.words_of(stream, number, some) for number in paths]),
        columns,
    )
    part.sample_from(tuples)
    return part, sum(array.nbytes for array in columns.values()) / len(some)
