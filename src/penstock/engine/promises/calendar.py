"""When to look at a closed key: entries in order of time.

What is added is a run of its own, merged with the one before it while that is not more than twice
as long. So an entry is copied about as often as their number has binary digits.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.kernels.arena import Words

__all__ = ["Calendar"]

_NONE: Final = np.empty(0, np.int64)


class Calendar:
    """Entries of three words: a time, the row of a key, and the stream that has closed it."""

    def __init__(self) -> None:
        self._runs: list[Words] = []

    def add(self, times: Words, rows: Words, stream: int) -> None:
        """Look at these rows at these times."""
        if not len(rows):
            return
        run: Words = np.stack([times, rows, np.full(len(rows), stream, np.int64)])
        self._runs.append(_in_order(run))
        while len(self._runs) > 1 and self._runs[-2].shape[1] <= 2 * self._runs[-1].shape[1]:
            self._runs[-2:] = [_in_order(np.concatenate(self._runs[-2:], axis=1))]

    def has_due(self, now: int) -> bool:
        """Whether there is an entry up to a time."""
        return any(run[0, 0] <= now for run in self._runs)

    def due(self, now: int) -> tuple[Words, Words]:
        """Take out the entries up to a time: their rows, and their streams."""
        taken, left = [], []
        for run in self._runs:
            end = int(np.searchsorted(run[0], now, "right"))
            if end:
                taken.append(run[1:, :end])
            if end < run.shape[1]:
                left.append(run[:, end:])
        self._runs = left
        if not taken:
            return _NONE, _NONE
        rows, streams = taken[0] if len(taken) == 1 else np.concatenate(taken, axis=1)
        return rows, streams

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(run.nbytes for run in self._runs)

    def clear(self) -> None:
        """Take out all entries."""
        self._runs = []

    def renumber(self, places: Words) -> None:
        """Follow rows to other places; those whose place is below zero are gone."""
        runs = []
        for run in self._runs:
            moved = run.copy()
            moved[1] = places[run[1]]
            if (moved[1] >= 0).any():
                runs.append(moved[:, moved[1] >= 0])
        self._runs = runs


def _in_order(run: Words) -> Words:
    if (run[0, 1:] >= run[0, :-1]).all():
        return run
    ordered: Words = run[:, np.argsort(run[0], kind="stable")]
    return ordered
