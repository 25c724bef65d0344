"""Tuples that wait for their turn.

Where rows or arrivals are counted, tuples enter the loop in the order (ts, stream, arrival),
whatever order they came in. One can go when nothing before it is still to come: when the
watermark has passed it. At its own instant a tuple of an earlier stream may yet arrive.

Where arrivals are counted, tuples are numbered in that order, and the loop works with these
numbers in the place of times.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from penstock.engine.arrivals import Arrivals
from penstock.model.binding import Binding
from penstock.model.query import Query
from penstock.state.identity import Identities
from penstock.state.windows import Windows

__all__ = ["Waiting"]


class Waiting:
    """Those of all streams. numbered: how many tuples have been numbered so far."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._parts: list[list[Arrivals]] = [[] for _ in query.streams]
        self._identities: Identities | None = None
        self.numbered = 0

    def rows(self, stream: int) -> int:
        """How many tuples of a stream wait, without those that are not kept for want of a key."""
        if self._query.keeps_keyless(stream):
            return sum(len(part) for part in self._parts[stream])
        return sum(len(part.with_keys()) for part in self._parts[stream])

    def add(self, stream: int, arrivals: Arrivals) -> None:
        """Have these wait, behind those of their instant that wait already."""
        if len(arrivals):
            self._parts[stream].append(arrivals)

    def identified(self, binding: Binding, stream: int, arrivals: Arrivals) -> Arrivals:
        """The same with keys that no two different ones share, where windows count by key."""
        if binding.exact or not self._query.counts_by_key or not len(arrivals):
            return arrivals
        if self._identities is None:
            self._identities = Identities(binding.key_kinds)
        columns = [arrivals.columns[name] for name in self._query.keys[stream]]
        mute = np.zeros(len(arrivals), np.bool_) if arrivals.mute is None else arrivals.mute
        words = self._identities.words(columns, arrivals.keys, np.flatnonzero(~mute))
        return replace(arrivals, keys=words)

    def forget_keys(self, windows: Windows) -> None:
        """Let go of identities that no tuple has, from time to time."""
        if self._identities is None or not self._identities.is_crowded:
            return
        used = [part.keys for parts in self._parts for part in parts]
        used += [windows.keys(stream) for stream in range(len(self._parts))]
        self._identities.forget_all_but(np.concatenate(used))

    def arrivals(self, stream: int) -> Arrivals | None:
        """All that wait of a stream, in the order of their turns."""
        parts = self._parts[stream]
        if not parts:
            return None
        together = parts[0] if len(parts) == 1 else Arrivals.concatenated(parts)
        self._parts[stream] = [together.in_time_order()]
        return self._parts[stream][0]

    def due(self, watermark: int) -> dict[int, Arrivals]:
        """Take out what a watermark has passed."""
        taken = {}
        for stream in range(len(self._parts)):
            waiting = self.arrivals(stream)
            if waiting is None:
                continue
            end = int(np.searchsorted(waiting.ts, watermark))
            if end:
                taken[stream] = waiting.slice(0, end)
                rest = waiting.slice(end, len(waiting))
                self._parts[stream] = [rest] if len(rest) else []
        if taken and self._query.counts_arrivals:
            taken = self._in_numbers(taken)
        return {
            stream: arrivals if self._query.keeps_keyless(stream) else arrivals.with_keys()
            for stream, arrivals in taken.items()
        }

    def _in_numbers(self, taken: dict[int, Arrivals]) -> dict[int, Arrivals]:
        """The same with their place among all arrivals for a time."""
        streams = list(taken)
        ts = np.concatenate([taken[stream].ts for stream in streams])
        places = np.empty(len(ts), np.int64)
        # Stable, and the streams are in their order: so ties are broken as they should be.
        places[np.argsort(ts, kind="stable")] = np.arange(self.numbered, self.numbered + len(ts))
        self.numbered += len(ts)
        numbered, begin = {}, 0
        for stream in streams:
            arrivals = taken[stream]
            end = begin + len(arrivals)
            numbered[stream] = replace(arrivals, ts=places[begin:end])
            begin = end
        return numbered
