"""What streams are like, measured from their rows: a workload for the planner.

Rows are taken as a running join takes them: times and columns are checked, filters applied, keys
made words. A stream is read once and nothing of it is kept but sketches, and times and keys of its
first tuples, so it may be of any size.

    rate        tuples that take part, over the span of event time from the first row to the last
    distinct    in a window: the median over some windows' lengths of it, drawn at random; slots of
                time aligned to the epoch, or of N rows. Over all time there may be many more
    selectivity of pairs in the same slots, twice as long as the longest window; of pairs of all
                slots if a window is not of time, or the streams have none in common
    promises    that no tuple breaks, and what they would save (runtime.promise_profile)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations
from statistics import median
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Intake
from penstock.engine.intake import take_in
from penstock.engine.promises.marked_rows import split
from penstock.engine.release import Released, release
from penstock.engine.residual import bound
from penstock.errors import InputError, PlanError
from penstock.kernels.arena import Words
from penstock.kernels.sentinels import BEGINNING
from penstock.model.arrival_time import ARRIVAL
from penstock.model.binding import Binding
from penstock.model.query import Query
from penstock.model.window import FOREVER, Window
from penstock.model.workload.workload import Workload, path_columns
from penstock.runtime.lifetimes import Line
from penstock.runtime.pairs import Part, are_linked, pair_selectivity
from penstock.runtime.promise_profile import PromiseProfile, profiled_promises
from penstock.stats.heavy_keys import HeavyKeys
from penstock.stats.key_sketch import KeySketch
from penstock.stats.slots import Slots

__all__ = ["DistinctValues", "Profile", "StreamProfile", "profile_streams"]

_SLOTS: Final = 8  # that are looked into
_US: Final = 1e6


@dataclass(frozen=True)
class DistinctValues:
    """Of one access path. overall: of all rows. in_window: of those of a window, the median.
    error: the relative standard error of overall, 0 if it is exact."""

    columns: tuple[str, ...]
    overall: float
    in_window: float
    error: float


@dataclass(frozen=True)
class StreamProfile:
    """rows: all that came. taking_part: those that pass the filters and have a key.
    first_us, last_us: the extremes of event time, None without rows. rate: tuples that take part in
    a second of it, None if there is no span. heaviest_share: of these, the part with the most
    frequent key; top_share: with one of the ten most frequent. row_bytes: what is kept of one.
    punctuation_rate: marked rows in a second, None if there are none, or no span."""

    name: str
    rows: int
    taking_part: int
    first_us: int | None
    last_us: int | None
    rate: float | None
    distinct: tuple[DistinctValues, ...]
    heaviest_share: float
    top_share: float
    row_bytes: float | None
    punctuation_rate: float | None = None


@dataclass(frozen=True)
class Profile:
    """streams: in the order they were given. selectivities: by pair of names, if measured.
    promises: that the streams could make, None if not looked for."""

    streams: tuple[StreamProfile, ...]
    selectivities: Mapping[tuple[str, str], float]
    promises: PromiseProfile | None = None

    @property
    def workload(self) -> Workload:
        """What a planner needs of it; refused if a rate is not known."""
        rates = {}
        for each in self.streams:
            if each.rate is None:
                raise PlanError(
                    f"the rate of stream {each.name!r} cannot be told from {each.rows:,} rows that "
                    "span no time; give more rows"
                )
            rates[each.name] = each.rate
        return Workload(
            rates,
            distinct={
                each.name: {path.columns: path.in_window for path in each.distinct}
                for each in self.streams
                if each.distinct
            },
            selectivities=dict(self.selectivities),
            row_bytes={
                each.name: each.row_bytes for each in self.streams if each.row_bytes is not None
            },
            punctuation_rates={
                each.name: each.punctuation_rate
                for each in self.streams
                if each.punctuation_rate is not None
            }
            or None,
        )


def profile_streams(
    query: Query,
    streams: Mapping[str, Iterable[pa.RecordBatch]],
    *,
    seed: int = 0,
    promises: bool = True,
) -> Profile:
    """Measure streams of a query, or some of them, each an Arrow table or batches of one schema.

    They are read to their ends, one after the other. seed: of what is drawn at random. promises:
    whether to look for promises that they keep, for which times and keys of their first tuples are
    held in memory.
    """
    unknown = [name for name in streams if name not in query.names]
    if unknown:
        raise InputError(f"{unknown} are no streams; the streams are {query.names}")
    binding, readers = _opened(query, streams)
    meters = {name: _Meter(query, query.position(name), seed) for name in readers}
    lines = {meter.stream: Line() for meter in meters.values()} if promises else {}
    for name, batches in readers.items():
        for batch in batches:
            _, intakes = take_in(query, binding, {name: batch}, 0)
            for stream, intake in intakes.items():
                marked = split(binding, stream, intake)
                released = release(binding, stream, intake, BEGINNING, tuples=marked.tuples)
                meters[name].add(intake, released._replace(marked=marked))
                if stream in lines:
                    lines[stream].add(released.arrivals.with_keys())
    longest_us = max((meter.span_us for meter in meters.values()), default=0)
    return Profile(
        tuple(meter.profile(longest_us) for meter in meters.values()),
        _selectivities(binding, meters),
        profiled_promises(binding, lines) if promises else None,
    )


def _opened(
    query: Query, streams: Mapping[str, Iterable[pa.RecordBatch]]
) -> tuple[Binding, dict[str, Iterator[Any]]]:
    """The streams bound by their first batches: how keys are compared depends on all of them."""
    readers: dict[str, Iterator[Any]] = {}
    schemas = {}
    for name, given in streams.items():
        number = query.position(name)
        if query.streams[number].time is ARRIVAL:
            raise PlanError(
                f"stream {name!r} takes its time of arrival, so its rows do not tell its rate; "
                "name a time column, or give the rate by hand"
            )
        batches = iter(given.to_batches() if isinstance(given, pa.Table) else given)
        first = next(batches, None)
        readers[name] = batches if first is None else chain([first], batches)
        if first is not None:
            schemas[number] = first.schema
    return bound(Binding.of(query), schemas), readers


class _Meter:
    """One stream, as it is read."""

    def __init__(self, query: Query, stream: int, seed: int) -> None:
        self.stream = stream
        self._query = query
        self._own = Slots(_SLOTS, lambda: Part.of(query, stream, seed).sketches, seed)
        self.together = Slots(_SLOTS, lambda: Part.of(query, stream, seed), seed)
        self._together_us = _together_us(query.windows)
        self._overall = [KeySketch(seed=seed) for _ in query.access.words[stream]]
        self._heavy = HeavyKeys()
        self._rows = 0
        self._taking_part = 0
        self._bytes = 0
        self._punctuations = 0
        self._first_us: int | None = None
        self._last_us: int | None = None

    def add(self, intake: Intake, released: Released) -> None:
        """Take a batch in."""
        tuples = released.arrivals.with_keys()
        if len(intake.ts):
            first, last = int(intake.earliest), int(intake.latest)
            self._first_us = first if self._first_us is None else min(self._first_us, first)
            self._last_us = last if self._last_us is None else max(self._last_us, last)
        for sketch, words in zip(self._overall, tuples.words, strict=True):
            sketch.add(words)
        self._heavy.add(tuples.words[0])
        numbers = self._slot_numbers(tuples.ts)
        for sketches, rows in self._own.divide(numbers):
            for sketch, words in zip(sketches, tuples.words, strict=True):
                sketch.add(words[rows])
        for part, rows in self.together.divide(_slots(tuples.ts, self._together_us)):
            part.add(tuples.take(rows))
        self._rows += len(intake.ts)
        self._taking_part += len(tuples)
        self._bytes += sum(array.nbytes for array in tuples.columns.values())
        if released.marked is not None:
            self._punctuations += released.marked.rows - released.marked.unusable

    def _slot_numbers(self, ts: Words) -> Words:
        """Which window's length tuples are in, if windows stood side by side."""
        window = self._query.windows[self.stream]
        count = window.rows or window.arrivals // len(self._query.streams)
        if (window.rows and not window.per_key) or window.arrivals:
            return (self._taking_part + np.arange(len(ts))) // max(count, 1)
        return _slots(ts, _slot_us(window))

    @property
    def span_us(self) -> int:
        """From the first row to the last."""
        if self._first_us is None or self._last_us is None:
            return 0
        begin = max(self._first_us, self._query.windows[self.stream].begin_us)
        return max(self._last_us - begin, 0)

    def profile(self, longest_us: int) -> StreamProfile:
        """What it came to. longest_us: the span of all streams, for those that have none."""
        rate = None
        if self.span_us:
            # N rows have N - 1 gaps between them.
            rate = self._taking_part * (1 - 1 / self._rows) * _US / self.span_us
        elif longest_us:
            rate = self._taking_part * _US / longest_us
        words = self._query.access.words[self.stream]
        whole = self._own.whole()
        return StreamProfile(
            self._query.names[self.stream],
            self._rows,
            self._taking_part,
            self._first_us,
            self._last_us,
            rate,
            tuple(
                DistinctValues(
                    path_columns(word),
                    sketch.distinct,
                    # Rows that do not fill three slots span less than two windows.
                    median([each[number].distinct for each in whole] or [sketch.distinct]),
                    sketch.error,
                )
                for number, (word, sketch) in enumerate(zip(words, self._overall, strict=True))
                if path_columns(word) and self._taking_part
            ),
            self._heavy.share(),
            self._heavy.share(10),
            self._bytes / self._taking_part if self._taking_part else None,
            self._punctuations * _US / self.span_us
            if self._punctuations and self.span_us
            else None,
        )


def _slot_us(window: Window) -> int:
    """The length of a window of time; for ever, if it is another."""
    return max(window.slot_us or window.length_us, 1)


def _slots(ts: Words, length_us: int) -> Words:
    """The slots of times; one for all, if they never end."""
    return np.zeros_like(ts) if length_us >= FOREVER else ts // length_us


def _together_us(windows: Iterable[Window]) -> int:
    """How long slots are in which tuples of two streams meet; for ever, unless all windows are of
    time. A tuple meets those of a window's length before it and after it: so it is twice that."""
    return max(window.slot_us or 2 * _slot_us(window) for window in windows)


def _selectivities(binding: Binding, meters: Mapping[str, _Meter]) -> dict[tuple[str, str], float]:
    found = {}
    for (first, left), (second, right) in combinations(meters.items(), 2):
        if not are_linked(binding.query, left.stream, right.stream):
            continue
        held, others = left.together.held, right.together.held
        common = [(held[slot], others[slot]) for slot in held if slot in others]
        every = [(one, other) for one in held.values() for other in others.values()]
        share = None
        for parts in (common, every):
            if parts and share is None:
                share = pair_selectivity(binding, left.stream, right.stream, parts)
        if share is not None:
            found[first, second] = share
    return found
