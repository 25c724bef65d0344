"""Streams with punctuations, after Ding and Rundensteiner, "Evaluating Window Joins over
Punctuated Streams" (2004), sections 5.1 and 6.1.

A stream is a sequence of segments: tuples, then a punctuation that closes a key. In a cluster all
tuples have that key. In other segments some have it, the last one always, and the rest have keys
that close later or never; so every punctuation holds. With the punctuations in brackets:

    cluster-asc-4     0 0 0 0 [0]  1 1 1 1 [1]  2 2 2 2 [2]  …
    punct-asc-4-50    7 0 3 0 [0]  1 5 8 1 [1]  9 2 4 2 [2]  …

The columns are `ts` (timestamp in microseconds, later in each row than in the one before), `k`
(int64: the key of a tuple, or the key that a punctuation closes), `v` (int64: the number of the
row) and `is_end` (bool: the row is a punctuation).

Departures: a segment has 1 + Poisson(size - 1) tuples, so that none is empty and size 1 is the
paper's unique arrival. Gaps are Poisson in whole milliseconds, as the paper writes (a Poisson
process would have exponential ones), but a gap of zero becomes 1 microsecond.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.model.duration import Duration, duration_us
from penstock.samples.streams import SampleStreams
from penstock.stats.counter import draw, unit

__all__ = ["PunctuatedStreams"]

Integers = npt.NDArray[np.int64]
Fractions = npt.NDArray[np.float64]

# Lanes of a stream's random numbers.
_ORDER, _SIZE, _SHARE, _OWN, _LATER, _GAP, _IRRELEVANT = range(7)

# The order in which keys close, from one random word for each key.
ORDERS: Final[dict[str, Callable[[npt.NDArray[np.uint64]], Integers]]] = {
    "asc": lambda words: np.arange(len(words), dtype=np.int64),
    "desc": lambda words: np.arange(len(words), dtype=np.int64)[::-1],
    "random": lambda words: np.argsort(words, kind="stable").astype(np.int64),
}
_CLUSTER: Final = re.compile(rf"cluster-({'|'.join(ORDERS)})-(\d+)")
_PUNCT: Final = re.compile(rf"punct(?:uation)?-({'|'.join(ORDERS)})-(\d+)-(\d+)")
_MAX_SIZE: Final = 1_000_000
_MAX_KEYS: Final = 100_000_000
_HOUR_US: Final = 3_600_000_000


class _Pattern(NamedTuple):
    order: str
    size: int
    match: int  # percent; 100 in a clustered stream


class _Rows(NamedTuple):
    """The rows of a stream, with gaps in place of times."""

    segments: Integers
    keys: Integers
    is_end: npt.NDArray[np.bool_]
    gaps_us: Integers


@dataclass(frozen=True, kw_only=True)
class PunctuatedStreams:
    """Two streams with punctuations, which `tables` makes.

    pattern: `cluster-[order]-[size]` or `punct-[order]-[size]-[match]`, for both or one for each.
        Keys close in the order `asc`, `desc` or `random`. `size` is the mean number of tuples in a
        segment, `match` the mean percentage of them that have the key it closes: Poisson, cut at
        100. A match of 100 is a cluster.
    segments: segments of each stream, so also its punctuations.
    keys: keys of tuples are 0 to keys - 1.
    gap: mean time between the tuples of a stream; if synchronised, of both together.
    irrelevant: share of the punctuations that close a key no tuple has, in place of their own.
    synchronised: the streams take turns, a cluster each, with the same keys in the same order: the
        second stream begins a key when the first has closed it, as in the paper's Figure 7.
    start_us: event time at which the first gap begins, in microseconds since the epoch.
    """

    pattern: str | Sequence[str]
    segments: int
    seed: int = 0
    keys: int = 15_000
    gap: Duration = "10 milliseconds"
    irrelevant: float = 0.0
    synchronised: bool = False
    start_us: int = SampleStreams.start_us

    def __post_init__(self) -> None:
        if not 1 <= self.keys <= _MAX_KEYS:
            raise ValueError(f"keys must be 1 to {_MAX_KEYS:,}, got {self.keys!r}")
        if not 0 <= self.segments <= self.keys:
            raise ValueError(
                f"segments must be 0 to {self.keys:,}, because each closes another of the keys; "
                f"got {self.segments!r}; give fewer, or more keys"
            )
        if not 1_000 <= duration_us(self.gap, "gap") <= _HOUR_US:
            raise ValueError(f"gap must be 1 millisecond to 1 hour, got {self.gap!r}")
        if not 0 <= self.irrelevant <= 1:
            raise ValueError(f"irrelevant must be a share from 0 to 1, got {self.irrelevant!r}")
        if not isinstance(self.pattern, str):
            object.__setattr__(self, "pattern", tuple(self.pattern))
        kinds = {(pattern.order, pattern.match) for pattern in self._patterns()}
        if self.synchronised and (len(kinds) > 1 or kinds.pop()[1] < 100):
            raise ValueError(f"synchronised needs clusters in one order, got {self.pattern!r}")

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """All rows of both streams, in the order of time."""
        rows = [self._rows(source, pattern) for source, pattern in enumerate(self._patterns())]
        times = _turns(rows) if self.synchronised else [np.cumsum(each.gaps_us) for each in rows]
        tables = []
        for each, times_us in zip(rows, times, strict=True):
            ts = pa.array(times_us + self.start_us).view(pa.timestamp("us"))
            columns = [ts, each.keys, np.arange(len(ts)), each.is_end]
            tables.append(pa.table(columns, names=["ts", "k", "v", "is_end"]))
        return tables[0], tables[1]

    def _patterns(self) -> list[_Pattern]:
        texts = [self.pattern] * 2 if isinstance(self.pattern, str) else self.pattern
        if len(texts) != 2:
            raise ValueError(f"pattern must be one for both streams or two, got {texts!r}")
        return [_parsed(text) for text in texts]

    def _rows(self, source: int, pattern: _Pattern) -> _Rows:
        def fractions(lane: int, count: int) -> Fractions:
            return unit(draw(self.seed, (source, lane), 0, count))

        sizes = 1 + _poisson(fractions(_SIZE, self.segments), pattern.size - 1)
        segments = np.repeat(np.arange(self.segments), sizes + 1)
        is_end = np.diff(segments, append=self.segments) > 0
        ends = np.flatnonzero(is_end)

        percents = _poisson(fractions(_SHARE, self.segments), pattern.match)
        shares = np.minimum(percents, 100) / 100 if pattern.match < 100 else np.ones(self.segments)
        # The last tuple has the segment's key anyway; the others make up the share.
        chances = (shares * sizes - 1) / np.maximum(sizes - 1, 1)
        own = fractions(_OWN, len(segments)) < chances[segments]
        own[ends] = own[ends - 1] = True
        left = self.keys - 1 - segments
        later = segments + 1 + (fractions(_LATER, len(segments)) * left).astype(np.int64)
        # No key is left after the last of all.
        places = np.where(own | (left == 0), segments, later)
        lane = (0 if self.synchronised else source, _ORDER)
        keys = ORDERS[pattern.order](draw(self.seed, lane, 0, self.keys))[places]

        chosen = np.argsort(draw(self.seed, (source, _IRRELEVANT), 0, self.segments), kind="stable")
        # Beyond all keys of tuples, and another key in each stream.
        keys[ends[chosen[: round(self.irrelevant * self.segments)]]] += self.keys * (1 + source)

        gap_ms = duration_us(self.gap, "gap") / 1000
        gaps_us = np.maximum(_poisson(fractions(_GAP, len(segments)), gap_ms) * 1000, 1)
        gaps_us[ends] = 1
        return _Rows(segments, keys, is_end, gaps_us)


def _parsed(text: str) -> _Pattern:
    found = _CLUSTER.fullmatch(text) or _PUNCT.fullmatch(text)
    if found is None:
        raise ValueError(
            f"cannot read the pattern {text!r}; write 'cluster-[order]-[size]' or "
            f"'punct-[order]-[size]-[match percent]' with an order of {', '.join(ORDERS)}"
        )
    order, size, *match = found.groups()
    pattern = _Pattern(order, int(size), int(match[0]) if match else 100)
    if not (1 <= pattern.size <= _MAX_SIZE and pattern.match <= 100):
        raise ValueError(
            f"a segment must have 1 to {_MAX_SIZE:,} tuples, of which 0 to 100 percent match, "
            f"got the pattern {text!r}"
        )
    return pattern


def _turns(rows: list[_Rows]) -> list[Integers]:
    """Times on one line: the first segment of both streams, then the second, and so on."""
    segments = np.concatenate([each.segments for each in rows])
    gaps_us = np.concatenate([each.gaps_us for each in rows])
    turns = np.argsort(segments, kind="stable")
    times_us = np.empty_like(gaps_us)
    times_us[turns] = np.cumsum(gaps_us[turns])
    return np.split(times_us, [len(rows[0].keys)])


def _poisson(fractions: Fractions, mean: float) -> Integers:
    """The counts that these fractions of the whole probability fall on; O(log mean) each."""
    if mean == 0:
        return np.zeros(len(fractions), dtype=np.int64)
    counts = np.arange(1, int(mean + 12 * math.sqrt(mean)) + 20)
    logs = np.concatenate([[0.0], np.cumsum(np.log(mean / counts))]) - mean
    return np.searchsorted(np.cumsum(np.exp(logs)), fractions, side="right").astype(np.int64)
