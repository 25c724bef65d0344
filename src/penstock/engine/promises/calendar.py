"""When to look at a closed key: entries in order of time.

Entries lie in runs. What comes in order goes behind the last run; anything else is a run of its
own, merged with the one before it while that is not more than twice as long. So an entry is copied
at most about as often as their number has binary digits.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from penstock.kernels.arena import Words
from penstock.kernels.punctuation.key_rows import NEVER

__all__ = ["Calendar"]

_NONE: Final = np.empty(0, np.int64)
_FIRST_ROOM: Final = 16
_GROWTH: Final = 4  # room is made for one in N more

_COLUMNS: Final = ("time", "row", "stream")


class _Run:
    """Entries begin to end of an array with some room behind them: times, rows, streams."""

    def __init__(self, entries: Words) -> None:
        self._entries = entries
        self._begin, self._end = 0, entries.shape[1]
        self.last = int(entries[0, -1])

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def entries(self) -> Words:
        return self._entries[:, self._begin : self._end]

    @property
    def first(self) -> int:
        return int(self._entries[0, self._begin])

    @property
    def nbytes(self) -> int:
        return self._entries.nbytes

    def append(self, times: Words, rows: Words, stream: int) -> None:
        """Entries that are not before the last one. O(1) each, on the whole."""
        end = self._end + len(rows)
        if end > self._entries.shape[1]:
            count = len(self)
            needed = count + len(rows)
            room = np.empty((3, max(_FIRST_ROOM, needed + needed // _GROWTH)), np.int64)
            room[:, :count] = self.entries
            self._entries, self._begin, self._end = room, 0, count
            end = count + len(rows)
        entries, begin = self._entries, self._end
        entries[0, begin:end], entries[1, begin:end], entries[2, begin:end] = times, rows, stream
        self._end, self.last = end, int(times[-1])

    def take(self, now: int) -> Words:
        """Take out the entries up to a time: their rows and streams."""
        end = self._begin + int(np.searchsorted(self.entries[0], now, "right"))
        taken, self._begin = self._entries[1:, self._begin : end], end
        return taken


class Calendar:
    """Entries of three words: a time, the row of a key, and the stream that has closed it. first:
    the earliest time of any."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self.first = NEVER

    def add(self, times: Words, rows: Words, stream: int) -> None:
        """Look at these rows at these times."""
        if not len(rows):
            return
        if len(rows) > 1 and (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            times, rows = times[order], rows[order]
        first = int(times[0])
        self.first = min(self.first, first)
        if self._runs and first >= self._runs[-1].last:
            self._runs[-1].append(times, rows, stream)
            return
        self._runs.append(_Run(np.stack([times, rows, np.full(len(rows), stream, np.int64)])))
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            both = np.concatenate([run.entries for run in self._runs[-2:]], axis=1)
            self._runs[-2:] = [_Run(both[:, np.argsort(both[0], kind="stable")])]

    def due(self, now: int) -> tuple[Words, Words]:
        """Take out the entries up to a time: their rows, and their streams."""
        if now < self.first:
            return _NONE, _NONE
        taken = [run.take(now) for run in self._runs if run.first <= now]
        self._use([run for run in self._runs if len(run)])
        rows, streams = taken[0] if len(taken) == 1 else np.concatenate(taken, axis=1)
        return rows, streams

    def _use(self, runs: list[_Run]) -> None:
        self._runs = runs
        self.first = min((run.first for run in runs), default=NEVER)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(run.nbytes for run in self._runs)

    def clear(self) -> None:
        """Take out all entries."""
        self._use([])

    def table(self) -> pa.Table:
        """All entries, in order of time, to be saved."""
        entries = np.concatenate([np.empty((3, 0), np.int64), *(r.entries for r in self._runs)], 1)
        entries = entries[:, np.argsort(entries[0], kind="stable")]
        return pa.table(dict(zip(_COLUMNS, entries, strict=True)))

    def load(self, table: pa.Table) -> None:
        """Those of a table."""
        entries = np.stack([table[name].to_numpy() for name in _COLUMNS])
        self._use([_Run(entries)] if entries.shape[1] else [])

    def renumber(self, places: Words) -> None:
        """Follow rows to other places; those whose place is below zero are gone."""
        runs = []
        for run in self._runs:
            moved = run.entries.copy()
            moved[1] = places[moved[1]]
            moved = moved[:, moved[1] >= 0]
            if moved.shape[1]:
                runs.append(_Run(moved))
        self._use(runs)
