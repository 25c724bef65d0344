"""The most frequent keys of a stream, in bounded memory.

Misra and Gries, batch by batch: when more than `counters` keys are held, the count of the first
that is too many is taken from all, and those that have nothing left go. A count is then too low by
at most one in `counters` of all rows, and never too high.

    add: O(rows log rows + counters log counters)
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["SHARE_ERROR", "HeavyKeys"]

_COUNTERS: Final = 1 << 12
SHARE_ERROR: Final = 1 / _COUNTERS  # by how much the share of a key may be too low


class HeavyKeys:
    """Counts of the keys of the rows that were added. rows: how many these were."""

    def __init__(self, counters: int = _COUNTERS) -> None:
        self.rows = 0
        self._counters = counters
        self._words = np.empty(0, np.int64)
        self._counts = np.empty(0, np.int64)

    def add(self, words: npt.NDArray[np.int64]) -> None:
        """Take rows in."""
        self.rows += len(words)
        new, counts = np.unique(words, return_counts=True)
        known, places = np.unique(np.concatenate([self._words, new]), return_inverse=True)
        total = np.zeros(len(known), np.int64)
        np.add.at(total, places, np.concatenate([self._counts, counts]))
        if len(known) > self._counters:
            total -= np.partition(total, -self._counters - 1)[-self._counters - 1]
            known, total = known[total > 0], total[total > 0]
        self._words, self._counts = known, total

    def restore(
        self, words: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], rows: int
    ) -> None:
        """Take over what was counted elsewhere: the most frequent keys of `rows` rows."""
        order = np.argsort(words)
        self._words, self._counts, self.rows = words[order], counts[order], rows

    @property
    def words(self) -> npt.NDArray[np.int64]:
        """The keys that are held, in order."""
        return self._words

    def counts_of(self, words: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How often these keys came, about; 0 for those that are not held."""
        counts = np.zeros(len(words), np.int64)
        held = np.isin(words, self._words)
        counts[held] = self._counts[np.searchsorted(self._words, words[held])]
        return counts

    def share(self, keys: int = 1) -> float:
        """Which part of all rows has one of the `keys` most frequent keys."""
        if not self.rows:
            return 0.0
        return float(np.sort(self._counts)[-keys:].sum()) / self.rows
