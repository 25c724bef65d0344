"""The best k_left and k_right tuples by a table over both: for when too many choices come close.

The knapsack of whole components is a table with a cell for each number of tuples of either side.
What is in part comes on top of it, at the end only: (x, n), (m, y), both, or (x, y), of kinds
whose loss by the prices is within the gap. That such a component is not also among the whole ones
is left open at first, which gives at least the best. If the choice then found has one too often,
its kind is either not in part in that way, or a copy of it is set aside: these cases are gone
through in the same way, the best first, until the best one is in order.

Kinds that lose more than the gap when they are empty are whole, and take no part in it but for a
copy in part.

O(t * k_left * k_right) at most for the t other kinds, once and for each kind set aside, where the
table of the paper takes O(c * k_left * k_right * m * n).
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.errors import PlanError
from penstock.shedding.static.components import Ints, bundles
from penstock.shedding.static.special import inside

__all__ = ["SMALL", "Grid"]

SMALL: Final = 1 << 28  # of all steps: less than a second
_MOST_CELLS: Final = 1 << 31  # of all steps: some seconds
_MOST_PAIRS: Final = 1 << 25
_CELLS_A_PAIR: Final = 32  # that take as long
_LEFT, _RIGHT, _BOTH = range(3)

_Item = tuple[int, int]  # a kind, and how many copies of it
_Role = tuple[int, int]  # a kind, and which of its sides is in part
_Part = tuple[int, int, int, int]  # which side is in part, the kind, and what is kept of either


class _Parts(NamedTuple):
    """Components in part, of one role, in order of their losses."""

    kind: Ints
    x: Ints  # tuples kept
    y: Ints
    left: Ints  # and what that takes of the room
    right: Ints
    joined: Ints
    loss: npt.NDArray[np.float64]

    def rows(self, rows: Ints | npt.NDArray[np.bool_]) -> _Parts:
        return _Parts(
            self.kind[rows],
            self.x[rows],
            self.y[rows],
            self.left[rows],
            self.right[rows],
            self.joined[rows],
            self.loss[rows],
        )

    def part(self, role: int, row: int) -> _Part:
        return role, int(self.kind[row]), int(self.x[row]), int(self.y[row])


class _Found(NamedTuple):
    joined: int
    parts: tuple[_Part, ...]


class Grid:
    """Kinds K(m, n) with copies, what is kept of each side, their prices, and the gap."""

    def __init__(
        self,
        kinds: tuple[Ints, Ints, Ints],
        keep: tuple[int, int],
        prices: tuple[float, float],
        gap: float,
    ) -> None:
        self.m, self.n, self.copies = kinds
        self.keep, self.prices = keep, prices
        self.profit = self.m * self.n - prices[0] * self.m - prices[1] * self.n

        self.gap = gap
        self.spent = 0
        # Whole in any case, but for a copy in part; the others of small loss are in the table.
        self.fixed = self.profit > gap
        self.wholes = np.flatnonzero(~self.fixed & (-self.profit <= gap))
        whole = np.where(self.fixed, self.copies, 0)
        self.base = int(whole @ (self.m * self.n))
        self.room = keep[0] - int(whole @ self.m), keep[1] - int(whole @ self.n)
        self.cells = (self.room[0] + 1) * (self.room[1] + 1) * (len(self.wholes) + 1)

    def better_than(self, known: int) -> list[list[tuple[int, int]]] | None:
        """By kind, what is kept of its copies; or None if what is known is the best."""
        gap = self.gap
        if min(self.room) < 0:  # no choice loses as little
            return None
        self._spend(self.cells)
        self.parts = [self._of_one_side(_LEFT), self._of_one_side(_RIGHT), self._of_both_sides()]
        # A part of a kind that is whole in any case makes room.
        self.most_room = (
            self.room[0] - min(int(parts.left.min(initial=0)) for parts in self.parts),
            self.room[1] - min(int(parts.right.min(initial=0)) for parts in self.parts),
        )
        tables: dict[tuple[_Item, ...], Ints] = {}
        heap: list[tuple[int, int, dict[int, int], frozenset[_Role]]] = []
        seen = set()

        def consider(aside: dict[int, int], banned: frozenset[_Role]) -> None:
            case = tuple(sorted(aside.items())), banned
            if case in seen:
                return
            seen.add(case)
            if case[0] not in tables:
                if tables:
                    self._spend(self.cells)
                tables[case[0]] = self._table(self._items(aside))
            found = self._closed(tables[case[0]], banned, gap)
            if found.joined > known:
                heappush(heap, (-found.joined, len(seen), aside, banned))
                results[len(seen)] = found

        results: dict[int, _Found] = {}
        consider({}, frozenset())
        while heap:
            _, number, aside, banned = heappop(heap)
            found = results.pop(number)
            whole = self._taken(self._items(aside), found)
            used = Counter(part[1] for part in found.parts)
            wrong = [
                kind
                for kind in used
                if not used[kind] <= used[kind] + whole[kind] <= self.copies[kind]
            ]
            if not wrong:
                return self._kept(whole, found)
            kind = wrong[0]
            for role, of, *_ in found.parts:
                if of == kind:
                    consider(aside, banned | {(kind, role)})
            if not self.fixed[kind] and aside.get(kind, 0) < used[kind] <= self.copies[kind]:
                consider({**aside, kind: used[kind]}, banned)
        return None

    def _spend(self, cells: int) -> None:
        """So that no call takes minutes."""
        self.spent += cells
        if self.spent > _MOST_CELLS:
            raise PlanError(
                f"the best {self.keep[0]:,} and {self.keep[1]:,} tuples are among more choices "
                f"than can be gone through, got {len(self.wholes):,} kinds of keys that come "
                f"close; choose method='node_degree', or give one number for both sides together"
            )

    def _items(self, aside: dict[int, int]) -> list[_Item]:
        return [
            (kind, part)
            for kind in self.wholes.tolist()
            for part in bundles(int(self.copies[kind]) - aside.get(kind, 0))
        ]

    def _table(self, items: list[_Item], upto: tuple[int, int] | None = None) -> Ints:
        rows, columns = upto or self.most_room
        small = int((self.copies * self.m * self.n).sum()) <= np.iinfo(np.int32).max
        table: Ints = np.zeros((rows + 1, columns + 1), np.int32 if small else np.int64)
        for item in items:
            self._add(table, item)
        return table

    def _add(self, table: Ints, item: _Item) -> None:
        kind, part = item
        m, n = part * int(self.m[kind]), part * int(self.n[kind])
        if m < table.shape[0] and n < table.shape[1]:
            joined = part * int(self.m[kind] * self.n[kind])
            np.maximum(table[m:, n:], table[:-m, :-n] + joined, out=table[m:, n:])

    def _of_one_side(self, role: int) -> _Parts:
        sizes, others = (self.m, self.n) if role == _LEFT else (self.n, self.m)
        number = sizes - 1
        kind = np.repeat(np.arange(len(sizes)), number)
        part = np.arange(len(kind)) - np.repeat(np.cumsum(number) - number, number) + 1
        x, y = (part, others[kind]) if role == _LEFT else (others[kind], part)
        return self._near(kind, x, y)

    def _of_both_sides(self) -> _Parts:
        kinds, xs, ys = [], [], []
        for kind, (m, n, profit) in enumerate(
            zip(self.m.tolist(), self.n.tolist(), self.profit.tolist(), strict=True)
        ):
            x, y, cut = inside((m, n), self.prices, max(profit, 0.0) - self.gap, _MOST_PAIRS)
            if cut:
                raise PlanError(
                    f"components of {m:,} and {n:,} tuples can be in part in more ways than can be "
                    f"gone through; choose method='node_degree', or give one number for both sides"
                )
            kinds.append(np.full(len(x), kind))
            xs.append(x)
            ys.append(y)
        return self._near(np.concatenate(kinds), np.concatenate(xs), np.concatenate(ys))

    def _near(self, kind: Ints, x: Ints, y: Ints) -> _Parts:
        loss = np.maximum(self.profit[kind], 0) + self.prices[0] * x + self.prices[1] * y - x * y
        near = np.flatnonzero(loss <= self.gap)
        near = near[np.argsort(loss[near], kind="stable")]
        kind, x, y = kind[near], x[near], y[near]
        m, n = np.where(self.fixed, self.m, 0)[kind], np.where(self.fixed, self.n, 0)[kind]
        return _Parts(kind, x, y, x - m, y - n, x * y - m * n, loss[near])

    def _allowed(self, role: int, banned: frozenset[_Role]) -> _Parts:
        """Without kinds that may not have this role; of parts that are alike, the one with the
        least loss, which is the least likely to be whole."""
        parts = self.parts[role]
        kinds = [kind for kind, of in banned if of == role]
        if kinds:
            parts = parts.rows(~np.isin(parts.kind, kinds))
        _, heads = np.unique(
            np.stack([parts.left, parts.right, parts.joined]), axis=1, return_index=True
        )
        return parts.rows(np.sort(heads))

    def _closed(self, table: Ints, banned: frozenset[_Role], gap: float) -> _Found:
        """The most with whole components and parts, if these are always others."""
        left, right, both = (self._allowed(role, banned) for role in (_LEFT, _RIGHT, _BOTH))
        best = _Found(int(table[self.room]) + self.base, ())
        for role, parts in ((_LEFT, left), (_RIGHT, right), (_BOTH, both)):
            joined = self._with(table, parts.left, parts.right, parts.joined)
            if len(joined) and joined.max() > best.joined:
                row = int(joined.argmax())
                best = _Found(int(joined[row]), (parts.part(role, row),))
        number = np.searchsorted(right.loss, gap - left.loss, "right")
        if number.sum() > _MOST_PAIRS:
            raise PlanError(
                f"{int(number.sum()):,} pairs of keys could be kept in part, more than can be gone "
                f"through; choose method='node_degree', or give one number for both sides together"
            )
        self._spend(_CELLS_A_PAIR * int(number.sum()))
        one = np.repeat(np.arange(len(number)), number)
        two = np.arange(len(one)) - np.repeat(np.cumsum(number) - number, number)
        joined = self._with(
            table,
            left.left[one] + right.left[two],
            left.right[one] + right.right[two],
            left.joined[one] + right.joined[two],
        )
        if len(joined) and joined.max() > best.joined:
            row = int(joined.argmax())
            two_parts = left.part(_LEFT, int(one[row])), right.part(_RIGHT, int(two[row]))
            best = _Found(int(joined[row]), two_parts)
        return best

    def _with(self, table: Ints, left: Ints, right: Ints, joined: Ints) -> Ints:
        fits = (left <= self.room[0]) & (right <= self.room[1])
        rows = np.where(fits, self.room[0] - left, 0)
        columns = np.where(fits, self.room[1] - right, 0)
        return np.where(fits, table[rows, columns] + joined + self.base, -1)

    def _taken(self, items: list[_Item], found: _Found) -> Counter[int]:
        """How many copies of each kind are whole in the room that the parts leave."""
        room = list(self.room)
        for _, kind, x, y in found.parts:
            room[0] -= x - int(self.m[kind] * self.fixed[kind])
            room[1] -= y - int(self.n[kind] * self.fixed[kind])
        cells = (room[0] + 1) * (room[1] + 1)
        self._spend(cells * len(items))
        table = self._table([], (room[0], room[1]))
        better = []
        for item in items:
            before = table.copy()
            self._add(table, item)
            better.append(np.packbits(table > before))
        whole = Counter(
            {kind: int(self.copies[kind]) for kind in np.flatnonzero(self.fixed).tolist()}
        )
        whole.subtract(kind for _, kind, *_ in found.parts if self.fixed[kind])
        for (kind, part), bits in zip(reversed(items), reversed(better), strict=True):
            cell = room[0] * table.shape[1] + room[1]
            if bits[cell >> 3] >> (7 - (cell & 7)) & 1:
                whole[kind] += part
                room[0] -= part * int(self.m[kind])
                room[1] -= part * int(self.n[kind])
        return whole

    def _kept(self, whole: Counter[int], found: _Found) -> list[list[tuple[int, int]]]:
        kept = [
            [(m, n)] * whole[kind]
            for kind, (m, n) in enumerate(zip(self.m.tolist(), self.n.tolist(), strict=True))
        ]
        for _, kind, x, y in found.parts:
            kept[kind].append((x, y))
        return kept
