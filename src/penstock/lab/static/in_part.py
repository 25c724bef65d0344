"""Which kinds of components can be whole, and which in part, in a choice that loses no more by the
prices than a gap.

At the prices every kind has a best corner, whole or empty, and any other choice for it has a loss;
the losses of all kinds add up. Two things more are true of a best choice: with one side fixed, the
tuples of the other are kept where they have the most partners.

*Fewest partners.* So the component whose left side is in part, (x, n), has the fewest of the right
side of all that are kept: whatever has fewer than n is empty, and what it would gain is lost. In
the same way none that is kept has fewer of the left side than one of which the right side is in
part.

*Larger ones first.* Of all best choices we look for one with the fewest components, and among these
for one with the largest. If a component is kept, so is every other that has at least as many tuples
of both sides: otherwise this one could have as many in its place, for the same pairs; if that left
two in part on one side, both would have as many partners, and tuples could go from one to the other
until one of them is whole or empty. So with a kind go all that are larger, and what they lose; but
for two of them, which may be in part.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.errors import PlanError
from penstock.lab.static.components import Ints
from penstock.lab.static.special import inside

__all__ = ["InPart", "Priced"]

_MOST_PARTS: Final = 1 << 25
_MOST_COMPARED: Final = 1 << 13  # with each other

_Floats = npt.NDArray[np.float64]
_Flags = npt.NDArray[np.bool_]


class Priced(NamedTuple):
    """Kinds K(m, n) with copies, the prices of a tuple of each side, what a whole component is
    worth by them, and what is lost at least by all that goes with a kind."""

    m: Ints
    n: Ints
    copies: Ints
    prices: tuple[float, float]
    profit: _Floats
    forced: _Floats

    @classmethod
    def of(cls, m: Ints, n: Ints, copies: Ints, prices: tuple[float, float]) -> Priced:
        """In O(t^2) for t kinds, if these are not too many to see what goes with what."""
        profit = m * n - prices[0] * m - prices[1] * n
        loss = np.maximum(-profit, 0)
        forced = np.zeros(len(m))
        for kind in range(len(m) if len(m) <= _MOST_COMPARED else 0):
            larger = (m >= m[kind]) & (n >= n[kind])
            larger[kind] = False
            of_each = loss[larger]
            if len(of_each) > 2:
                forced[kind] = max(0.0, of_each @ copies[larger] - 2 * of_each.max())
        return cls(m, n, copies, prices, profit, forced)


class InPart:
    """For a gap: kinds that are `fixed`, whole in any case but for a copy in part; `is_whole`,
    which may be whole; `left` and `right`, from how many to how many tuples of one side can be
    kept, the other being whole; `in_both`, of which both sides may be in part."""

    def __init__(self, kinds: Priced, gap: float) -> None:
        self._kinds, self._gap = kinds, gap
        m, n, prices = kinds.m, kinds.n, kinds.prices
        self.fixed: _Flags = kinds.profit > gap
        self.is_whole: _Flags = ~self.fixed & (kinds.forced - kinds.profit <= gap)
        gain = np.asarray(kinds.copies * np.maximum(kinds.profit, 0), np.float64)
        self._lost = _Below(m, gain), _Below(n, gain)
        self.left = self._range(m, n, prices, self._lost[1])
        self.right = self._range(n, m, (prices[1], prices[0]), self._lost[0])
        # Of the fixed ones only those with the fewest tuples are left, and it does not matter
        # which of these is in part.
        less = np.where(self.fixed & (self.right[0] <= self.right[1]), n - self.right[0], 0)
        self.right[1][self.fixed & (np.arange(len(n)) != less.argmax())] = 0
        self._most = (
            np.minimum(m - 1, self._lost[0].last(gap)),
            np.minimum(n - 1, self._lost[1].last(gap)),
        )
        self.in_both = self._can_be_inside()

    def inside(self, kind: int) -> tuple[Ints, Ints]:
        """All (x, y) that can be kept of a component with both sides in part."""
        m, n, _, prices, profit, forced = self._kinds
        sides = int(self._most[0][kind]) + 1, int(self._most[1][kind]) + 1
        gain = max(float(profit[kind]), 0.0)
        x, y, cut = inside(sides, prices, gain - self._gap, _MOST_PARTS)
        if cut:
            raise PlanError(
                f"components of {m[kind]:,} and {n[kind]:,} tuples can be in part in more ways "
                f"than can be gone through; choose method='node_degree', or give one number for "
                f"both sides together"
            )
        loss = gain + prices[0] * x + prices[1] * y - x * y + forced[kind]
        loss += np.maximum(self._lost[0].below(x), self._lost[1].below(y))
        near = loss <= self._gap
        return x[near], y[near]

    def _range(
        self, sizes: Ints, others: Ints, prices: tuple[float, float], lost: _Below
    ) -> tuple[Ints, Ints]:
        """From how many to how many tuples of a side, the others being whole. The loss is linear in
        the number, so that they are at one end."""
        gain = np.maximum(self._kinds.profit, 0)
        slope = others - prices[0]
        # slope * number >= wanted
        wanted = gain + prices[1] * others + lost.below(others) + self._kinds.forced - self._gap
        with np.errstate(divide="ignore", invalid="ignore"):
            edge = np.nan_to_num(wanted / slope, posinf=0, neginf=0)
        edge = np.clip(edge, -1, sizes + 1.0)
        low = np.where(slope > 0, np.ceil(edge - 1e-6), 1)
        high = np.where(slope < 0, np.floor(edge + 1e-6), sizes - 1)
        high = np.where((slope == 0) & (wanted > 0), 0, np.minimum(high, sizes - 1))
        return np.maximum(low, 1).astype(np.int64), high.astype(np.int64)

    def _can_be_inside(self) -> _Flags:
        """What (x, y) is worth is the highest at a corner."""
        kinds = self._kinds
        most_x, most_y = self._most
        worth = np.full(len(most_x), -np.inf)
        for x in (np.ones_like(most_x), most_x):
            for y in (np.ones_like(most_y), most_y):
                worth = np.maximum(worth, x * y - kinds.prices[0] * x - kinds.prices[1] * y)
        near: _Flags = np.maximum(kinds.profit, 0) - worth + kinds.forced <= self._gap
        return near & (most_x > 0) & (most_y > 0)


class _Below:
    """What all kinds together gain that have fewer tuples of a side than a number."""

    def __init__(self, sizes: Ints, gain: _Floats) -> None:
        order = np.argsort(sizes, kind="stable")
        self._sizes = sizes[order]
        self._gain = np.concatenate([[0.0], np.cumsum(gain[order])])

    def below(self, number: Ints) -> _Floats:
        """For each number of tuples."""
        return self._gain[np.searchsorted(self._sizes, number, "left")]

    def last(self, gap: float) -> int:
        """The largest number of tuples below which no more than the gap is gained."""
        place = int(np.searchsorted(self._gain, gap, "right")) - 1
        return int(self._sizes[min(place, len(self._sizes) - 1)])
