"""How many different keys there are, and how often keys of two streams meet, in bounded memory.

Up to `bound` keys all are held with their counts, and every answer is exact. Beyond that those with
the least hashes are held: a sample of the keys, each still counted exactly, for a key that is
held has been held since it first came. If the greatest of k hashes that are held stands at a
share u of all hashes, there are about (k - 1) / u keys (Bar-Yossef et al., the KMV sketch), with a
relative standard error of 1 / sqrt(k - 2): 0.4 % with the usual bound. Sketches of one seed hold
the same keys, so that two of them show how many pairs of rows have one key.

A hash is one to one, so it stands for its key.

    add: O(rows log rows + bound)
"""

from __future__ import annotations

from math import sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from penstock.stats.counter import mix

__all__ = ["KeySketch", "hashed"]

_BOUND: Final = 1 << 16
_ALL: Final = 2.0**64
_NONE_LEFT_OUT: Final = np.uint64((1 << 64) - 1)
_SEEDED: Final = np.uint64(0xD1B5_4A32_D192_ED03)


def hashed(words: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.uint64]:
    """A hash of each word, one to one."""
    own = mix(np.array([seed], np.uint64) * _SEEDED)
    return mix(words.astype(np.int64).view(np.uint64) ^ own)


class KeySketch:
    """The keys of the rows that were added, as 64-bit words. rows: how many these were."""

    def __init__(self, bound: int = _BOUND, seed: int = 0) -> None:
        self.rows = 0
        self._bound = bound
        self._seed = seed
        self._ceiling = _NONE_LEFT_OUT
        self._hashes = np.empty(0, np.uint64)
        self._counts = np.empty(0, np.int64)

    def add(self, words: npt.NDArray[np.int64]) -> None:
        """Take rows in."""
        self.rows += len(words)
        hashes = hashed(words, self._seed)
        if not self.is_exact:
            hashes = hashes[hashes <= self._ceiling]
        new, counts = np.unique(hashes, return_counts=True)
        known, places = np.unique(np.concatenate([self._hashes, new]), return_inverse=True)
        total = np.zeros(len(known), np.int64)
        np.add.at(total, places, np.concatenate([self._counts, counts]))
        self._hashes, self._counts = known[: self._bound], total[: self._bound]
        if len(known) > self._bound:
            self._ceiling = self._hashes[-1]

    @property
    def is_exact(self) -> bool:
        """Whether all keys are held."""
        return bool(self._ceiling == _NONE_LEFT_OUT)

    @property
    def distinct(self) -> float:
        """How many different keys have come."""
        held = len(self._hashes)
        return float(held) if self.is_exact else (held - 1) / self._share_of(self._ceiling)

    @property
    def error(self) -> float:
        """The relative standard error of `distinct`; 0 where it is exact."""
        return 0.0 if self.is_exact else 1 / sqrt(len(self._hashes) - 2)

    @staticmethod
    def _share_of(ceiling: np.uint64) -> float:
        return (float(ceiling) + 1.0) / _ALL

    def meets(self, other: KeySketch) -> float:
        """About how many pairs of a row of each have one key."""
        ceiling = min(self._ceiling, other._ceiling)
        common, own, its = np.intersect1d(
            self._hashes, other._hashes, assume_unique=True, return_indices=True
        )
        held = common <= ceiling
        own_counts = self._counts[own[held]].astype(np.float64)
        pairs = float(own_counts @ other._counts[its[held]].astype(np.float64))
        return pairs / self._share_of(ceiling)
