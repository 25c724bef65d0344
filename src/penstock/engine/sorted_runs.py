"""The waiting tuples of one stream: in runs, each in order of time.

What comes is a run of its own, and is merged with the one before it while that is not more than
twice as long. So there are about as many runs as a number of tuples has binary digits, a tuple is
copied about that often, and nobody goes through all of them but for those whose turn it is.
Tuples of one instant stay in order of arrival: only neighbours are merged, the older one first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals
from penstock.kernels.arena import Words

__all__ = ["SortedRuns"]


class _SortedRun(NamedTuple):
    """Tuples in order of time. held: how many their buffers hold, with those that have left."""

    tuples: Arrivals
    held: int

    @classmethod
    def of(cls, tuples: Arrivals) -> _SortedRun:
        return cls(tuples, len(tuples))

    def without_first(self, count: int) -> _SortedRun:
        """The rest, copied when more than half of what its buffers hold has left."""
        rest = self.tuples.slice(count, len(self.tuples))
        if 2 * len(rest) >= self.held:
            return _SortedRun(rest, self.held)
        return _SortedRun.of(rest.take(np.arange(len(rest))))


class SortedRuns:
    """rows: how many tuples there are. keyed: how many of them have a key."""

    def __init__(self) -> None:
        self._runs: list[_SortedRun] = []
        self.rows = 0
        self.keyed = 0

    def add(self, arrivals: Arrivals) -> None:
        """Tuples that came after all that are here. O(log rows) copies of each, amortised."""
        if not len(arrivals):
            return
        self._count(arrivals, 1)
        self._runs.append(_SortedRun.of(arrivals.in_time_order()))
        while len(self._runs) > 1 and self._is_short(-2):
            try:
                merged = self._merged(self._runs[-2:])
            except pa.ArrowInvalid:  # more than one array of some type can hold
                return
            self._runs[-2:] = [_SortedRun.of(merged)]

    def _is_short(self, at: int) -> bool:
        return len(self._runs[at].tuples) <= 2 * len(self._runs[at + 1].tuples)

    @property
    def earliest(self) -> int | None:
        """The time of the first; None without one. O(log rows)."""
        return min((int(run.tuples.ts[0]) for run in self._runs), default=None)

    def key_words(self) -> list[Words]:
        """Those of all, in parts."""
        return [run.tuples.keys for run in self._runs]

    def whole(self) -> Arrivals | None:
        """All of them in order of time; None when there are none. O(rows), if there are runs."""
        if not self._runs:
            return None
        if len(self._runs) > 1:
            self._runs = [_SortedRun.of(self._merged(self._runs))]
        return self._runs[0].tuples

    def take_before(self, ts: int) -> Arrivals | None:
        """Take out those before a time, in order of time; None when there are none.

        O(taken), beside O(log rows) searches.
        """
        taken, left = [], []
        for run in self._runs:
            end = int(np.searchsorted(run.tuples.ts, ts))
            if end:
                taken.append(_SortedRun.of(run.tuples.slice(0, end)))
            if end < len(run.tuples):
                left.append(run.without_first(end) if end else run)
        if not taken:
            return None
        together = self._merged(taken)
        self._runs = left
        self._count(together, -1)
        return together

    def _count(self, arrivals: Arrivals, sign: int) -> None:
        mute = 0 if arrivals.mute is None else int(arrivals.mute.sum())
        self.rows += sign * len(arrivals)
        self.keyed += sign * (len(arrivals) - mute)

    @staticmethod
    def _merged(runs: list[_SortedRun]) -> Arrivals:
        if len(runs) == 1:
            return runs[0].tuples
        return Arrivals.concatenated([run.tuples for run in runs]).in_time_order()
