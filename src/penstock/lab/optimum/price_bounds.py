"""Bounds of the offline optimum by prices on the time line, for what is too large for a flow.

With a price for holding a tuple from each instant to the next, zero or more, what all tuples choose
for themselves and the price of all the room there is are together at least what any feasible
decision earns: it earns no more than the choices and what it pays, and it pays for no more room
than there is. That holds for any prices. The best prices have no gap, for the whole is a flow, and
flows have whole optima (Das, Gehrke and Riedewald, section 4.1).

They are looked for by subgradient steps. At an instant where the choices leave room the price
falls, where they take too much it rises; how far, is Polyak's rule with what a feasible decision
earns as the target: (bound - earned) / |direction|^2. The direction is what was over or under at
this step and, less and less, at those before it. A constant price is where it starts. From time to
time a feasible decision is made from the prices (`repair`), which is close to the best long before
the bound is.

Prices are whole numbers of small units, and so is all that is summed: the bound has no rounding in
it. Floats decide only where to look.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.kernels.arena import Words
from penstock.kernels.optimum.chains import Chains
from penstock.kernels.optimum.choices import Peaks, choose, weigh
from penstock.kernels.optimum.repair import Walk, repair
from penstock.lab.optimum.chains import chained, trimmed
from penstock.lab.optimum.holding import Holding, earned

__all__ = ["PricedDecision", "Search", "priced"]

_Floats = npt.NDArray[np.float64]

_FEWEST, _MOST = 100, 1_000  # steps
_WORK: Final = 4_000_000_000  # tuples and meetings to look at, in all steps
_BISECTIONS: Final = 16
_BETWEEN_REPAIRS: Final = 25  # steps: a repair takes as long as some of them
_KEPT: Final = 0.95  # of the direction, from step to step
_FIRST, _LAST = 1.0, 0.1  # parts of Polyak's step, falling from one to the other


class PricedDecision(NamedTuple):
    """A decision, what it earns, and what none can exceed."""

    until: Words
    earned: int
    upper: int


def priced(holding: Holding, *, width: float = 0.001, steps: int | None = None) -> PricedDecision:
    """A feasible decision and a bound of what any could earn.

    width: part of the bound that may be between the two; no more is done once it is reached.
    steps: the most to be made; when not given, 1,000, or fewer for what is very large.
    """
    chains = chained(holding)
    if steps is None:
        size = 1 + len(chains.at) + len(chains.meets)
        steps = min(_MOST, max(_FEWEST, _WORK // size))
    search = Search(holding, chains)
    search.look(np.zeros(len(chains.room)))
    search.decide()
    if steps > 0 and not search.is_within(width):
        search.descend(search.constant(), steps, width)
    return PricedDecision(search.until, search.earned, search.upper >> chains.bits)


class Search:
    """The best bound and the best decision that were found. Prices and bounds are in units."""

    def __init__(self, holding: Holding, chains: Chains) -> None:
        self.until, self.earned = holding.first.copy(), 0
        # What all meetings of all tuples earn: the bound of prices of zero.
        self.upper = int((chains.before[chains.end] - chains.before[chains.first]).sum())
        self._holding, self._chains = holding, chains
        self._line = np.zeros(len(chains.room) + 1, np.int64)
        self._load = np.empty(len(chains.room), np.int64)
        self._peaks, self._walk = Peaks.of(chains), Walk.of(chains)

    def is_within(self, width: float) -> bool:
        """Whether the bounds are as close as asked for."""
        upper = self.upper >> self._chains.bits
        return upper - self.earned <= width * upper

    def look(self, prices: _Floats) -> tuple[int, Words]:
        """The bound of these prices, and the room that is then left at each instant, less than
        none where too many are held.

        Prices are zero or more, zero where there is no room, and are lowered if all the room would
        cost too much.
        """
        room = self._chains.room
        # Room that costs more than the best bound makes no better one; and sums could overflow.
        cost = _dot(prices, room)
        if cost > self.upper:
            prices *= self.upper / cost
        line = np.zeros(len(room) + 1, np.int64)
        line[1:] = np.rint(np.cumsum(prices))
        weigh(self._chains, line, self._peaks)
        bound = int(choose(self._chains, line, self._peaks, self._load))
        bound += int((np.diff(line) * room).sum())
        if bound < self.upper:
            self.upper, self._line = bound, line
        return bound, room - self._load

    def decide(self) -> None:
        """Make a decision from the best prices."""
        chains = self._chains
        weigh(chains, self._line, self._peaks)
        until = np.empty(len(chains.rows), np.int64)
        repair(chains, self._peaks, self._walk, until)
        decision = self._holding.first.copy()
        decision[chains.rows] = until
        decision = trimmed(self._holding, decision)
        total = earned(self._holding, decision)
        if total > self.earned:
            self.until, self.earned = decision, total

    def constant(self) -> _Floats:
        """The best price, if it is the same at all instants."""
        open_ = (self._chains.room > 0).astype(np.float64)
        low, high = 0.0, self.upper / float(self._chains.room.sum())
        for _ in range(_BISECTIONS):
            price = (low + high) / 2
            _, slack = self.look(price * open_)
            if slack.sum() < 0:
                low = price
            else:
                high = price
        return high * open_

    def descend(self, prices: _Floats, steps: int, width: float) -> None:
        """Subgradient steps from these prices."""
        direction = np.zeros(len(prices))
        for step in range(1, steps + 1):
            bound, slack = self.look(prices)
            direction = slack + _KEPT * direction
            direction[(prices <= 0) & (direction > 0)] = 0
            square = _dot(direction, direction)
            if square == 0:
                break
            part = _FIRST * (_LAST / _FIRST) ** (step / steps)
            gap = bound - (self.earned << self._chains.bits)
            prices = np.maximum(prices - part * gap / square * direction, 0)
            if step % _BETWEEN_REPAIRS == 0:
                self.decide()
                if self.is_within(width):
                    return
        self.decide()


def _dot(one: _Floats, other: _Floats | Words) -> float:
    """As `one @ other`, which is given to several threads, and then waits where others are busy."""
    return float((one * other).sum())
