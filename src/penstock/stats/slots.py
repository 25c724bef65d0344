"""A few of very many slots, drawn at random in one pass.

A slot is a number that rows have: a stretch of time, or of rows. Those with the least hashes are
held, each with what is made of its rows; a slot that is held has been held since its first row, for
what was once let go has a greater hash than all that are held later. Streams that are divided by
the same slots hold the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from penstock.stats.key_sketch import hashed

__all__ = ["Slots"]

Held = TypeVar("Held")


class Slots(Generic[Held]):
    """held: by slot, what `make` made for it. first, last: of all slots that were seen."""

    def __init__(self, most: int, make: Callable[[], Held], seed: int = 0) -> None:
        self.held: dict[int, Held] = {}
        self.first: int | None = None
        self.last: int | None = None
        self._most = most
        self._make = make
        self._seed = seed
        self._let_go = False

    def divide(self, numbers: npt.NDArray[np.int64]) -> Iterator[tuple[Held, npt.NDArray[np.intp]]]:
        """What is held for slots that these rows have, and which rows have them."""
        if not len(numbers):
            return
        there = np.unique(numbers)
        self.first = int(min(there[0], there[0] if self.first is None else self.first))
        self.last = int(max(there[-1], there[-1] if self.last is None else self.last))
        if self._let_go:
            there = there[hashed(there, self._seed) <= self._ranks().max()]
        seen = np.union1d(there, np.array(list(self.held), np.int64))
        if len(seen) > self._most:
            self._let_go = True
            seen = seen[np.argsort(hashed(seen, self._seed))[: self._most]]
        self.held = {
            slot: self.held[slot] if slot in self.held else self._make() for slot in seen.tolist()
        }
        for slot in np.intersect1d(there, seen).tolist():
            yield self.held[slot], np.flatnonzero(numbers == slot)

    def _ranks(self) -> npt.NDArray[np.uint64]:
        return hashed(np.array(list(self.held), np.int64), self._seed)

    def whole(self) -> list[Held]:
        """What is held for slots that were seen whole: not for the first and the last."""
        ends = (self.first, self.last)
        return [held for slot, held in self.held.items() if slot not in ends]
