"""Promises that streams make without saying so: each key comes once, keys come in clusters or
increase, a row says when another stream ends.

They follow from the arrivals of a chunk, in order of time, and are checked on a batch before any of
it is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.engine.arrivals import Arrivals
from penstock.engine.promises.closed_keys import ClosedKeys, are_repeated
from penstock.engine.promises.closing import Closing
from penstock.engine.promises.lines import come_back, go_back, last_of_clusters
from penstock.engine.promises.wide import Wide
from penstock.kernels.arena import Flags, Words
from penstock.kernels.sentinels import END_OF_TIME
from penstock.model.binding import Binding
from penstock.model.keys import are_words
from penstock.model.query import Query
from penstock.model.time_unit import PER_UNIT_US

__all__ = ["Derived"]


class Derived:
    """Those of all streams. line: of a clustered or increasing stream, its tuples in order of time,
    from the last one on that all before it have come. Those that are elsewhere, or broke a promise,
    are guests: they end other keys, and no key ends after them."""

    def __init__(self, query: Query, wide: Wide) -> None:
        """wide: takes what increasing streams promise."""
        self._query = query
        self._wide = wide
        self.line: dict[int, Arrivals] = {}
        self._broken: dict[int, Arrivals] = {}  # of the batch that was looked at last
        # Of each stream those that say when it ends.
        self._sources = [
            {number for number, each in enumerate(query.streams) if stream.name in each.expires}
            for stream in query.streams
        ]
        self._is_in_order = not any(self._sources)

    def look_at_next(self) -> None:
        """Forget what a batch broke that was not taken."""
        self._broken.clear()

    def note_broken(self, binding: Binding, stream: int, broken: Arrivals) -> None:
        """What of a batch breaks a promise; if the batch is taken, it has been there."""
        promised = self._query.streams[stream]
        if promised.clustered or promised.increasing:
            self._broken[stream] = self._as_guests(binding, stream, broken)

    def _as_guests(self, binding: Binding, stream: int, others: Arrivals) -> Arrivals:
        bare = _bare(others, self._key(binding, stream))
        return replace(bare, guests=np.ones(len(others), np.bool_))

    def hear(self, binding: Binding, stream: int, others: Arrivals) -> None:
        """Take note of tuples of a clustered or increasing stream that are elsewhere: they end keys
        that are here."""
        guests = self._as_guests(binding, stream, others)
        parts = [self.line[stream], guests] if stream in self.line else [guests]
        self.line[stream] = Arrivals.concatenated(parts).in_time_order()

    def breaks(self, binding: Binding, stream: int, arrivals: Arrivals) -> list[Words]:
        """Which arrivals of a batch break what others of it promise, that are before them in time.
        (Promises of batches before are in `Promises`.)"""
        promised = self._query.streams[stream]
        broken = []
        if promised.unique and are_repeated(arrivals.keys):
            order = np.argsort(arrivals.ts, kind="stable")
            line = _bare(arrivals, self._key(binding, stream)).take(order)
            broken.append(order[_are_like_first(line, binding.exact)])
        if promised.clustered or promised.increasing:
            broken.append(self._against_line(binding, stream, arrivals))
        return broken

    def _against_line(self, binding: Binding, stream: int, arrivals: Arrivals) -> Words:
        """Which arrivals do not go on with the line of their stream."""
        promised, before = self._query.streams[stream], self.line.get(stream)
        line, begin = _bare(arrivals, self._key(binding, stream)), 0
        if before is not None:
            line, begin = Arrivals.concatenated([before, line]), len(before)
        order = None
        if len(line) > 1 and (line.ts[1:] < line.ts[:-1]).any():
            order = np.argsort(line.ts, kind="stable")  # of two that are in order, this is a merge
            line = line.take(order)
        of_line = np.zeros(len(line), np.bool_)
        if promised.clustered:
            of_line |= _come_back(line, binding.exact)
        if promised.increasing:
            of_line |= go_back(line.ts, line.keys)
        broken = np.flatnonzero(of_line)
        broken = (broken if order is None else order[broken]) - begin
        return broken[broken >= 0]

    def closings(
        self, binding: Binding, stream: int, arrivals: Arrivals | None, passed: int
    ) -> Iterator[Closing]:
        """What is promised once these have arrived. passed: a time that nothing which comes after
        them is before."""
        promised = self._query.streams[stream]
        if promised.clustered or promised.increasing:
            yield from self._ended(binding, stream, arrivals, passed)
        if promised.unique and arrivals is not None and len(arrivals):
            columns = [arrivals.columns[name] for name in self._key(binding, stream)]
            yield Closing(stream, arrivals.keys, columns, arrivals.ts, is_single=True)

    def sources_first(self, streams: Iterable[int]) -> list[int]:
        """Streams in an order in which those that promise for others stand before them. (If two do
        for each other, the first that is named does for the second.)"""
        if self._is_in_order:
            return list(streams)
        waiting, order = list(streams), list[int]()
        while waiting:
            free = [each for each in waiting if not self._sources[each] & {*waiting} - {each}]
            order.append((free or waiting)[0])
            waiting.remove(order[-1])
        return order

    def expired(
        self, binding: Binding, batch: Mapping[int, Arrivals], stream: int, arrivals: Arrivals
    ) -> list[Words]:
        """Which arrivals of a batch come when tuples of it, of earlier times, say that their stream
        has ended."""
        ends = ClosedKeys(1)
        kinds, columns = binding.key_kinds, self._key(binding, stream)
        for source in self._sources[stream] & batch.keys():
            for closing in self.expiries(binding, source, batch[source], later_only=True):
                if closing.stream == stream:
                    ends.note(0, ends.add(closing.words, closing.columns, kinds), closing.at)
        rows = ends.find(arrivals.keys, [arrivals.columns[name] for name in columns], kinds)
        return [] if rows is None else [ends.broken(0, rows, arrivals.ts)]

    def expiries(
        self, binding: Binding, stream: int, arrivals: Arrivals, *, later_only: bool = False
    ) -> Iterator[Closing]:
        """What the arrivals of a batch promise about other streams, behind that batch. later_only:
        as it holds in the batch itself, for what is later in time."""
        for name, column in self._query.streams[stream].expires.items():
            columns = [arrivals.columns[name] for name in self._key(binding, stream)]
            at, there = _times_us(arrivals.columns[column])
            at = np.maximum(at, arrivals.ts + 1) if later_only else at
            promise = Closing(self._query.position(name), arrivals.keys, columns, at)
            yield promise if there.all() else promise.taken(np.flatnonzero(there))

    def _ended(
        self, binding: Binding, stream: int, arrivals: Arrivals | None, passed: int
    ) -> Iterator[Closing]:
        """The keys whose clusters have ended, each when the next one began."""
        parts = [self.line[stream]] if stream in self.line else []
        if stream in self._broken:
            parts.append(self._broken.pop(stream))
        if arrivals is not None and len(arrivals):
            parts.append(_bare(arrivals, self._key(binding, stream)))
        if not parts:
            return
        line = parts[0] if len(parts) == 1 else Arrivals.concatenated(parts).in_time_order()
        if line.guests is not None and not self._query.streams[stream].clustered:
            line = line.take(np.flatnonzero(~go_back(line.ts, line.keys)))  # they end no key
        self.line[stream] = line
        stop = int(np.searchsorted(line.ts, passed))
        if not stop:
            return
        if self._query.streams[stream].increasing:
            greatest = int(np.argmax(line.keys[:stop]))
            self._wide.reach(stream, int(line.keys[greatest]), int(line.ts[greatest]))
        if line.ts[0] == line.ts[stop - 1]:
            return  # which of their keys go on is not known yet
        ended, at = last_of_clusters(line.ts[:stop], line.keys[:stop])
        if line.guests is not None:
            here = ~line.guests[ended]
            ended, at = ended[here], at[here]
        columns = [line.columns[name].take(pa.array(ended)) for name in line.columns]
        yield Closing(stream, line.keys[ended], columns, at)
        begin = int(np.searchsorted(line.ts, line.ts[stop - 1]))
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
                empty = pa.RecordBatch.from_pylist([], table.schema)
                self.line[stream] = Arrivals.load((table.to_batches() or [empty])[0])

    def _key(self, binding: Binding, stream: int) -> Sequence[str]:
        """The columns of the key that are needed beside its words."""
        return () if are_words(binding.key_kinds) else self._query.keys[stream]


def _are_like_first(line: Arrivals, exact: bool) -> Flags:
    """Which tuples have the key of one before them. exact: whether equal words are equal keys."""
    _, first, which = np.unique(line.keys, return_index=True, return_inverse=True)
    firsts = first[which]
    again: Flags = firsts != np.arange(len(line))
    if not exact and again.any():
        rows = np.flatnonzero(again)
        for column in line.columns.values():
            equal = pc.equal(column.take(pa.array(rows)), column.take(pa.array(firsts[rows])))
            again[rows] &= equal.fill_null(False).to_numpy(zero_copy_only=False)
    return again


def _come_back(line: Arrivals, exact: bool) -> Flags:
    """Which tuples have the key of one before them, and none of it at a time in between."""
    back = come_back(line.ts, line.keys)
    return back if exact or not back.any() else back & _are_like_first(line, exact)


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
