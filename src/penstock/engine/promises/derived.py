"""Promises that streams make without saying so: each key comes once, keys come in clusters or
increase, a row says when another stream ends.

They follow from the arrivals of a chunk, in order of time, and are checked on a batch before any of
it is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.engine.arrivals import Arrivals
from penstock.engine.promises.closed_keys import are_repeated
from penstock.engine.promises.closing import Closing
from penstock.engine.promises.lines import come_back, go_back, last_of_clusters
from penstock.engine.promises.wide import Wide
from penstock.kernels.arena import Flags, Words
from penstock.kernels.sentinels import END_OF_TIME
from penstock.model.query import Query
from penstock.model.time_unit import PER_UNIT_US

__all__ = ["Derived"]


class Derived:
    """Those of all streams. line: of a clustered or increasing stream, its tuples in order of time,
    from the last one on that all before it have come."""

    def __init__(self, query: Query, wide: Wide) -> None:
        """wide: takes what increasing streams promise."""
        self._query = query
        self._wide = wide
        self.line: dict[int, Arrivals] = {}

    def breaks(self, stream: int, arrivals: Arrivals, exact: bool) -> Flags:
        """Which arrivals of a batch break what others of it promise, that are before them in time.
        (Promises of batches before are in `Promises`.) exact: whether equal words are equal keys.
        """
        promised = self._query.streams[stream]
        broken = np.zeros(len(arrivals), np.bool_)
        if promised.unique and are_repeated(arrivals.keys):
            order = np.argsort(arrivals.ts, kind="stable")
            broken[order] = self._are_like_first(stream, arrivals.take(order), exact)
        if promised.clustered or promised.increasing:
            line, begin = arrivals, 0
            if stream in self.line:
                line = Arrivals.concatenated(
                    [self.line[stream], _bare(arrivals, self._key(stream))]
                )
                begin = len(self.line[stream])
            order = np.argsort(line.ts, kind="stable")
            of_line = np.zeros(len(line), np.bool_)
            in_time = line.take(order)
            if promised.clustered:
                again = self._are_like_first(stream, in_time, exact)
                of_line[order] = again & come_back(in_time.ts, in_time.keys)
            if promised.increasing:
                of_line[order] |= go_back(in_time.ts, in_time.keys)
            broken |= of_line[begin:]
        return broken

    def _are_like_first(self, stream: int, line: Arrivals, exact: bool) -> Flags:
        """Which tuples have the key of one before them."""
        _, first, which = np.unique(line.keys, return_index=True, return_inverse=True)
        firsts = first[which]
        again: Flags = firsts != np.arange(len(line))
        if not exact and again.any():
            rows = np.flatnonzero(again)
            for name in self._key(stream):
                column = line.columns[name]
                equal = pc.equal(column.take(pa.array(rows)), column.take(pa.array(firsts[rows])))
                again[rows] &= equal.fill_null(False).to_numpy(zero_copy_only=False)
        return again

    def closings(self, stream: int, arrivals: Arrivals | None, passed: int) -> Iterator[Closing]:
        """What is promised once these have arrived. passed: a time that nothing which comes after
        them is before."""
        promised = self._query.streams[stream]
        if promised.clustered or promised.increasing:
            yield from self._ended(stream, arrivals, passed)
        if promised.unique and arrivals is not None and len(arrivals):
            columns = [arrivals.columns[name] for name in self._key(stream)]
            yield Closing(stream, arrivals.keys, columns, arrivals.ts, is_single=True)

    def expiries(self, stream: int, arrivals: Arrivals) -> Iterator[Closing]:
        """What the arrivals of a batch promise about other streams, behind that batch."""
        columns = [arrivals.columns[name] for name in self._key(stream)]
        for name, column in self._query.streams[stream].expires.items():
            at, there = _times_us(arrivals.columns[column])
            promise = Closing(self._query.position(name), arrivals.keys, columns, at)
            yield promise.taken(np.flatnonzero(there))

    def _ended(self, stream: int, arrivals: Arrivals | None, passed: int) -> Iterator[Closing]:
        """The keys whose clusters have ended, each when the next one began."""
        parts = [self.line[stream]] if stream in self.line else []
        if arrivals is not None and len(arrivals):
            parts.append(_bare(arrivals, self._key(stream)))
        if not parts:
            return
        line = Arrivals.concatenated(parts).in_time_order()
        stop = int(np.searchsorted(line.ts, passed))
        ended, at = last_of_clusters(line.ts[:stop], line.keys[:stop])
        columns = [line.columns[name].take(pa.array(ended)) for name in self._key(stream)]
        yield Closing(stream, line.keys[ended], columns, at)
        if self._query.streams[stream].increasing and stop:
            greatest = int(np.argmax(line.keys[:stop]))
            self._wide.reach(stream, int(line.keys[greatest]), int(line.ts[greatest]))
        # All of the last time: which of their keys go on is not known yet.
        begin = int(np.searchsorted(line.ts, line.ts[stop - 1])) if stop else 0
        self.line[stream] = line.take(np.arange(begin, len(line)))

    def _key(self, stream: int) -> Sequence[str]:
        return self._query.keys[stream]


def _bare(arrivals: Arrivals, key: Sequence[str]) -> Arrivals:
    """The same with their key and nothing else."""
    columns = {name: arrivals.columns[name] for name in key}
    return Arrivals(arrivals.ts, arrivals.words[:1], columns)


def _times_us(column: Any) -> tuple[Words, Flags]:
    """Times in whole microseconds, and which are there."""
    there: Flags = column.is_valid().to_numpy(zero_copy_only=False)
    unit = column.type.unit if pt.is_timestamp(column.type) else "us"
    plain = column.view(pa.int64()) if pt.is_timestamp(column.type) else column
    values = plain.fill_null(0).to_numpy()
    if unit == "ns":
        return values // 1_000 + (values % 1_000 > 0), there  # from no earlier on than it says
    per_unit = PER_UNIT_US[unit]
    return np.clip(values, -END_OF_TIME // per_unit, END_OF_TIME // per_unit) * per_unit, there
