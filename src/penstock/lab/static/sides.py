"""The best k_left tuples of one side and k_right of the other.

With one side fixed, pairs are linear in what is kept of the other. So there is a best choice in
which, on each side, all components but one are whole or empty: components are (m, n) or nothing,
but for one of which the left side is in part, (x, n), and one of which the right side is, (m, y),
or one with both in part, (x, y).

Each tuple has a price (`prices.py`): by prices, every kind of component has a best corner, and any
other choice for it has a loss. What is kept is worth the bound less all losses. A guess how much
less the best choice is worth shows which kinds can only be at their corner, and which could be
otherwise. If no choice loses as little as was guessed, the next guess is more; the first choice
that does is the best. So it takes the longer the farther the best choice is from the bound, however
far from it the greedy one is.

For each guess there are two ways. `grid.py` makes tables over both numbers of tuples, for the kinds
that could be otherwise. Where these would be large, only states of such a table are kept that lead
to no larger loss. Kinds come in order of falling loss then, so that there are few states until the
last ones, which could be either way at nearly the same price. If a limited number of states is
enough, so that nothing had to be left out, that is the answer; if not, it is left to the tables, if
they can be made at all.

O(c log c + t^2) for t kinds, and the program of the prices; then for each guess states times
options for each kind, or as much as a grid takes.

*Why not a solver.* CP-SAT (OR-tools 9.10, one thread) finds the same optima, but not soon enough
where there are many kinds of keys. Measured were 24 cases of 50,000 tuples a side, 1,000 keys by
Zipf's law and 5,000 tuples kept of each side: skews 0.25, 0.5, 0.75 and 1, frequent keys alike or
shuffled, three seeds. This module took 4.1 s of processor time at most. A model of the kinds that
the prices and guesses leave had not proved its answer in 5 cases after 30 s, of which it had 16 to
29 s of processor time; it took at least 10 times as long as this module in 3 more, and up to 6
times as long in the other 16, in some less time. All of the 8 have a skew of 0.25 or 0.5. A model
of all kinds, without prices, had no answer after 30 s in 7 of the 8 cases of one seed.

With few keys of many tuples it is the other way round: of 15 random cases of 5 to 100 keys, with up
to 5,000 to 100,000 tuples each and a quarter of them kept, this module answers 1 and refuses 14.
The model of all kinds proved its answer in 11, in less than 5 s of processor time each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.errors import PlanError
from penstock.lab.static import grid
from penstock.lab.static.components import Ints, bundles, grouped
from penstock.lab.static.greedy import by_node_degree
from penstock.lab.static.in_part import Priced
from penstock.lab.static.prices import Prices
from penstock.lab.static.special import Kind, PartOptions, options_of

__all__ = ["best_of_sides"]

_FIRST_GUESS: Final = 1 / 100  # of the gap
_NEXT_GUESS: Final = 1.5
_MUCH_LONGER: Final = 4
_STATES: Final = 1 << 10
_MOST_WAYS: Final = 1 << 24
_ROWS: Final = 16  # times as many as states may there be before they are made distinct

_Floats = npt.NDArray[np.float64]


class _States(NamedTuple):
    """What has been chosen so far, one row each, and how: from row `parent` of the states before,
    by an option, with `flips` whole components not as they are at the prices."""

    flag: Ints  # which sides are in part somewhere: a bit for left, one for right
    left: Ints  # tuples kept
    right: Ints
    joined: Ints
    parent: Ints
    option: Ints
    flips: Ints

    def rows(self, rows: npt.NDArray[np.bool_] | Ints) -> _States:
        return _States(*(column[rows] for column in self))


def best_of_sides(left: Ints, right: Ints, keep: tuple[int, int]) -> tuple[Ints, Ints]:
    """How many to keep of each component."""
    best = by_node_degree(left, right, keep)
    m, n = np.minimum(left, keep[0]), np.minimum(right, keep[1])
    useful = np.flatnonzero((m > 0) & (n > 0))
    if not len(useful):
        return best
    search = _Search(m[useful], n[useful], keep, Prices.of(left, right, keep))
    for guess in search.guesses(int((best[0] * best[1]).sum())):
        found = search.beyond(guess)
        if found is not None:
            best = np.zeros_like(left), np.zeros_like(right)
            best[0][useful], best[1][useful] = found
            break
    return best


class _Search:
    """The kinds of components, in order of falling loss, and the prices."""

    def __init__(self, m: Ints, n: Ints, keep: tuple[int, int], prices: Prices) -> None:
        self.kinds = grouped(m, n)
        self.keep, self.prices = keep, (prices.left, prices.right)
        self.m, self.n, self.copies = self.kinds.first, self.kinds.second, self.kinds.copies
        self.refuse_too_large()
        self.priced = Priced.of(self.m, self.n, self.copies, self.prices)
        profit = self.priced.profit
        self.whole = profit > 0
        self.order = np.argsort(-np.abs(profit), kind="stable")
        self.bound = (
            prices.left * keep[0]
            + prices.right * keep[1]
            + float((self.copies * np.maximum(profit, 0)).sum())
        )
        self.slack = 1e-6 + 1e-12 * self.bound  # more than rounding can amount to
        self.spent = 0  # cells of all tables
        self.states_are_few = True

    def guesses(self, known: int) -> Iterator[int]:
        """How many pairs the best choice might have at least: from little less than the bound down
        to what is known, or until that takes hardly longer."""
        gap = max(self.bound - known, 0.0)
        less = gap * _FIRST_GUESS
        most = self.table(known).cells
        while less < gap:
            guess = int(np.ceil(self.bound - less))
            if _MUCH_LONGER * self.table(guess).cells > most:
                break
            yield guess
            less *= _NEXT_GUESS
        yield known

    def beyond(self, guess: int) -> tuple[Ints, Ints] | None:
        """The best choice, if that has more pairs than were guessed."""
        found = None
        if self.states_are_few and self.table(guess).cells > grid.SMALL:
            found, self.states_are_few = self.better_than(guess, _STATES)
            if self.states_are_few:
                return found
            if found is not None:
                guess = int((found[0] * found[1]).sum())
        return self.by_grid(guess) or found

    def better_than(self, known: int, limit: int) -> tuple[tuple[Ints, Ints] | None, bool]:
        """A better choice, if one was found; and whether no state was left out for the limit."""
        gap = self.bound - known - 1 + self.slack
        if gap < 0:
            return None, True
        at_prices = np.where(self.whole, self.copies, 0)
        start = (0, at_prices @ self.m, at_prices @ self.n, at_prices @ (self.m * self.n), 0, 0, 0)
        states = _States(*(np.array([value], np.int64) for value in start))
        layers: list[tuple[_States, PartOptions]] = []
        all_kept = True
        for index in self.order.tolist():
            kind = Kind(
                int(self.m[index]),
                int(self.n[index]),
                int(self.copies[index]),
                bool(self.whole[index]),
            )
            options, cut = options_of(kind, self.prices, gap, limit)
            states, all_grown = self._with_kind(states, kind, options, gap, limit * _ROWS)
            all_kept &= all_grown and not cut
            if len(states.flag) > limit:
                all_kept = False
                states = states.rows(np.argsort(self._loss(states), kind="stable")[:limit])
            layers.append((states, options))
        fits = (states.left <= self.keep[0]) & (states.right <= self.keep[1])
        joined = np.where(fits, states.joined, -1)
        row = int(joined.argmax()) if len(joined) else 0
        if not len(joined) or joined[row] <= known:
            return None, all_kept
        return self._chosen(layers, row), all_kept

    def refuse_too_large(self) -> None:
        """So that no call takes all memory: parts of a kind are listed."""
        ways = int(self.m.sum() + self.n.sum())
        if ways > _MOST_WAYS:
            raise PlanError(
                f"keys can be kept in part in {ways:,} ways, more than can be gone through, to "
                f"keep {self.keep[0]:,} and {self.keep[1]:,} tuples; choose method='node_degree', "
                f"or divide all counts and what is kept by the same number"
            )

    def table(self, known: int) -> grid.Grid:
        """The table over both sides."""
        gap = max(self.slack, self.bound - known - 1 + self.slack)
        return grid.Grid(self.priced, self.keep, gap, self.spent)

    def by_grid(self, known: int) -> tuple[Ints, Ints] | None:
        """A better choice, if there is one."""
        table = self.table(known)
        by_kind = table.better_than(known)
        self.spent = table.spent
        if by_kind is None:
            return None
        kept = np.zeros_like(self.kinds.of), np.zeros_like(self.kinds.of)
        for index, copies in enumerate(by_kind):
            self._note(kept, index, copies)
        return kept

    def _note(self, kept: tuple[Ints, Ints], index: int, copies: list[tuple[int, int]]) -> None:
        """What is kept of the components of a kind: the first ones have as much as these."""
        components = np.flatnonzero(self.kinds.of == index)[: len(copies)]
        for side in range(2):
            kept[side][components] = [copy[side] for copy in copies]

    def _loss(self, states: _States) -> _Floats:
        """What the choices so far have lost, by the prices."""
        at_prices = self.prices[0] * (self.keep[0] - states.left)
        at_prices += self.prices[1] * (self.keep[1] - states.right)
        return self.bound - (states.joined + at_prices)

    def _with_kind(
        self, states: _States, kind: Kind, options: PartOptions, gap: float, rows: int
    ) -> tuple[_States, bool]:
        """The states after this kind; and whether these are all, or some of too many rows."""
        all_grown = True
        room = gap - self._loss(states)
        parts = []
        for flag in range(4):
            of_flag = np.flatnonzero((states.flag == flag) & (room >= -self.slack))
            fitting = np.flatnonzero(options.flag & flag == 0)
            # Options come in order of their losses: a state goes with the first of them.
            number = np.searchsorted(options.loss[fitting], room[of_flag] + self.slack, "right")
            if number.sum() > rows // 4:
                all_grown = False
                number = np.minimum(number, max(1, rows // 4 // len(number)))
            parent = np.repeat(of_flag, number)
            begin = np.cumsum(number) - number
            option = fitting[np.arange(len(parent)) - np.repeat(begin, number)]
            parts.append(
                _States(
                    flag | options.flag[option],
                    states.left[parent] + options.left[option],
                    states.right[parent] + options.right[option],
                    states.joined[parent] + options.joined[option],
                    parent,
                    option,
                    np.zeros_like(parent),
                )
            )
        grown = _together(parts)
        used = options.used[grown.option]
        parts = [
            self._flipped(grown.rows(used == number), kind, kind.copies - number, gap)
            for number in range(min(kind.copies, 2) + 1)
        ]
        return _distinct(_together(parts)), all_grown

    def _flipped(self, states: _States, kind: Kind, copies: int, gap: float) -> _States:
        """Also with any number of copies whole that are empty at the prices, or the other way."""
        sign = -1 if kind.whole else 1
        for part in bundles(copies):
            change = sign * part
            flipped = states._replace(
                left=states.left + change * kind.m,
                right=states.right + change * kind.n,
                joined=states.joined + change * kind.m * kind.n,
                flips=states.flips + part,
            )
            near = self._loss(flipped) <= gap + self.slack
            states = _together([states, flipped.rows(near)])
        return states

    def _chosen(self, layers: list[tuple[_States, PartOptions]], row: int) -> tuple[Ints, Ints]:
        """Goes back from a state of the last kind to what is kept of each component."""
        kept = np.zeros_like(self.kinds.of), np.zeros_like(self.kinds.of)
        for index, (states, options) in zip(
            reversed(self.order.tolist()), reversed(layers), strict=True
        ):
            option, flips = int(states.option[row]), int(states.flips[row])
            others = int(self.copies[index]) - int(options.used[option])
            whole = others - flips if self.whole[index] else flips
            copies = [(int(self.m[index]), int(self.n[index]))] * whole
            copies += options.special(option, int(self.m[index]))
            self._note(kept, index, copies)
            row = int(states.parent[row])
        return kept


def _together(parts: list[_States]) -> _States:
    return _States(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _distinct(states: _States) -> _States:
    """Of states that keep as many of each side, the one with the most pairs."""
    order = np.lexsort((-states.joined, states.right, states.left, states.flag))
    states = states.rows(order)
    new = np.ones(len(order), np.bool_)
    new[1:] = (
        (np.diff(states.flag) != 0) | (np.diff(states.left) != 0) | (np.diff(states.right) != 0)
    )
    return states.rows(new)
