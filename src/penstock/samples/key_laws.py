"""Which key a row has: a law turns fractions in [0, 1) into keys 0 to count - 1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from penstock.stats.counter import draw

__all__ = ["KeyLaw", "ShuffledKeys", "UniformKeys", "ZipfKeys"]

# A lane of its own: those of streams are named by two numbers.
_SHUFFLE: Final = (0,)


class KeyLaw(Protocol):
    """A distribution over the keys 0 to count - 1."""

    @property
    def count(self) -> int:
        """How many keys there are."""

    def pick(self, fractions: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """The keys that these fractions of the whole probability fall on."""


@dataclass(frozen=True)
class UniformKeys:
    """All keys are equally likely."""

    count: int

    def __post_init__(self) -> None:
        _check_count(self.count)

    def pick(self, fractions: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """O(1) a key."""
        return (fractions * self.count).astype(np.int64)


@dataclass(frozen=True)
class ZipfKeys:
    """Key i has a probability proportional to (i + 1) ** -skew: key 0 is the commonest."""

    count: int
    skew: float = 1.0
    _cumulated: npt.NDArray[np.float64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_count(self.count)
        if not self.skew >= 0:
            raise ValueError(f"skew must be zero (uniform) or more, got {self.skew!r}")
        weights = np.arange(1, self.count + 1, dtype=np.float64) ** -self.skew
        cumulated = np.cumsum(weights)
        # The last entry divided by itself is exactly 1, above every fraction.
        object.__setattr__(self, "_cumulated", cumulated / cumulated[-1])

    def pick(self, fractions: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """O(log count) a key."""
        return np.searchsorted(self._cumulated, fractions, side="right").astype(np.int64)


@dataclass(frozen=True)
class ShuffledKeys:
    """A law with its keys exchanged at random: as skewed, but others are the common ones."""

    law: KeyLaw
    seed: int = 0
    _names: npt.NDArray[np.int64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        order = np.argsort(draw(self.seed, _SHUFFLE, 0, self.law.count), kind="stable")
        object.__setattr__(self, "_names", order.astype(np.int64))

    @property
    def count(self) -> int:
        """As many keys as the law has."""
        return self.law.count

    def pick(self, fractions: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """As dear as the law, and one look-up."""
        return self._names[self.law.pick(fractions)]


def _check_count(count: int) -> None:
    # Fractions have 53 bits; far below that every key is still equally reachable.
    if not 1 <= count <= 1 << 40:
        raise ValueError(f"sample streams need 1 to {1 << 40:,} keys, got {count!r}")
