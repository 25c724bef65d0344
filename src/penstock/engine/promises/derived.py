"""Promises that streams make without saying so: each key comes once, keys come in clusters or
increase, a row says when another stream ends.

They follow from the arrivals of a chunk, in order of time, and are checked on a batch before any of
it is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.engine.arrivals import Arrivals
from penstock.engine.promises.closed_keys import are_repeated
from penstock.engine.promises.closing import Closing
from penstock.engine.promises.wide import Wide
from penstock.kernels.arena import Flags, Words
from penstock.kernels.sentinels import END_OF_TIME
from penstock.model.query import Query
from penstock.model.time_unit import PER_UNIT_US

__all__ = ["Derived"]


class Derived:
    """Those of all streams. line: of a clustered or increasing stream, its tuples in order of time,
    from the last one on that all before it have come; those that are elsewhere are guests."""

    def __init__(self, query: Query, wide: Wide) -> None:
        """wide: takes what increasing streams promise."""
        self._query = query
        self._wide = wide
        self.line: dict[int, Arrivals] = {}

    def hear(self, stream: int, others: Arrivals) -> None:
        """Take note of tuples of a clustered or increasing stream that are elsewhere: they end keys
        that are here."""
        guests = replace(others, guests=np.ones(len(others), np.bool_))
        parts = [self.line[stream], guests] if stream in self.line else [guests]
        self.line[stream] = Arrivals.concatenated(parts).in_time_order()

    def breaks(self, stream: int, arrivals: Arrivals, exact: bool) -> list[Words]:
        """Which arrivals of a batch break what others of it promise, that are before them in time.
        (Promises of batches before are in `Promises`.) exact: whether equal words are equal keys.
        """
        promised = self._query.streams[stream]
        broken = []
        if promised.unique and are_repeated(arrivals.keys):
            order = np.argsort(arrivals.ts, kind="stable")
            again = self._are_like_first(stream, arrivals.take(order), exact)
            broken.append(order[again])
        if promised.clustered or promised.increasing:
            broken.append(self._against_line(stream, arrivals, exact))
        return broken

    def _against_line(self, stream: int, arrivals: Arrivals, exact: bool) -> Words:
        """Which arrivals do not go on with the line of their stream."""
        promised = self._query.streams[stream]
        line, begin = arrivals, 0
        if stream in self.line:
            line = Arrivals.concatenated([self.line[stream], _bare(arrivals, self._key(stream))])
            begin = len(self.line[stream])
        order = np.argsort(line.ts, kind="stable")
        of_line = np.zeros(len(line), np.bool_)
        in_time = line.take(order)
        if promised.clustered:
            of_line[order] = self._come_back(stream, in_time, exact)
        if promised.increasing:
            of_line[order] |= _go_back(in_time)
        return np.flatnonzero(of_line[begin:])

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

    def _come_back(self, stream: int, line: Arrivals, exact: bool) -> Flags:
        """Which tuples have the key of one before them, and none of it at a time in between.

        Tuples of one time have no order: they stand in all clusters of that time.
        """
        times = _numbered(line.ts)
        if line.guests is None:
            return self._come_back_at(stream, line, times, exact)
        back, here = np.zeros(len(line), np.bool_), np.flatnonzero(~line.guests)
        back[here] = self._come_back_at(stream, line.take(here), times[here], exact)
        return back

    def _come_back_at(self, stream: int, line: Arrivals, times: Words, exact: bool) -> Flags:
        """The same. times: of the tuples, as numbers of all times that there are."""
        if not len(line):
            return np.zeros(0, np.bool_)
        again = self._are_like_first(stream, line, exact)
        words = line.keys
        order = np.lexsort((times, words))
        same = words[order][1:] == words[order][:-1]
        gaps = np.concatenate([[0], same & (np.diff(times[order]) > 1)])
        begins = np.concatenate([[True], ~same])
        # Since the first of its key, how many gaps there have been.
        since = np.cumsum(gaps)
        of_first = np.maximum.accumulate(np.where(begins, np.arange(len(words)), 0))
        broken = np.zeros(len(words), np.bool_)
        broken[order] = since > since[of_first]
        return again & broken

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
        ended, at = _last_of_clusters(line.slice(0, stop))
        columns = [line.columns[name].take(pa.array(ended)) for name in self._key(stream)]
        yield Closing(stream, line.keys[ended], columns, at)
        if self._query.streams[stream].increasing and stop:
            greatest = int(np.argmax(line.keys[:stop]))
            self._wide.reach(stream, int(line.keys[greatest]), int(line.ts[greatest]))
        # All of the last time: which of their keys go on is not known yet.
        begin = int(np.searchsorted(line.ts, line.ts[stop - 1])) if stop else 0
        self.line[stream] = line.take(np.arange(begin, len(line)))

    def save(self) -> dict[str, pa.Table]:
        """Everything in it."""
        return {
            f"line {stream}": pa.Table.from_batches([line.dump()])
            for stream, line in self.line.items()
        }

    def load(self, saved: Mapping[str, pa.Table]) -> None:
        """What was saved."""
        for stream in range(len(self._query.streams)):
            if f"line {stream}" in saved:
                table = saved[f"line {stream}"].combine_chunks()
                batches = table.to_batches() or [_empty(table.schema)]
                self.line[stream] = Arrivals.load(batches[0])

    def _key(self, stream: int) -> Sequence[str]:
        return self._query.keys[stream]


def _numbered(ts: Words) -> Words:
    """Times in order as numbers: equal ones have one, those after them the next."""
    return np.cumsum(np.diff(ts, prepend=ts[:1]) != 0)


def _last_of_clusters(line: Arrivals) -> tuple[Words, Words]:
    """Tuples in order of time after which no other of their key comes at the next time there is,
    and that time."""
    ts, words = line.ts, line.keys
    here = np.arange(len(ts)) if line.guests is None else np.flatnonzero(~line.guests)
    if not len(here):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    times = _numbered(ts)
    order = here[np.lexsort((times[here], words[here]))]
    goes_on = np.zeros(len(here), np.bool_)
    goes_on[:-1] = (words[order][1:] == words[order][:-1]) & (np.diff(times[order]) <= 1)
    last = order[~goes_on]
    last = np.sort(last[times[last] < times[-1]])
    first_at = np.searchsorted(times, np.arange(times[-1] + 1))
    return last, ts[first_at[times[last] + 1]]


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema)


def _go_back(line: Arrivals) -> Flags:
    """Which tuples have a key below that of one with an earlier time."""
    greatest = np.maximum.accumulate(line.keys)
    before = np.searchsorted(line.ts, line.ts) - 1  # the last with an earlier time
    back: Flags = (before >= 0) & (line.keys < greatest[before])
    return back


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
