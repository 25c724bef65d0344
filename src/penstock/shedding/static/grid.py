"""The best k_left and k_right tuples by a table over both: for when too many choices come close.

The knapsack of whole components is a table with a cell for each number of tuples of either side. What
is in part comes on top of it, at the end only: (x, n), (m, y), both, or (x, y), of kinds whose loss by
the prices is within the gap. That such a component is not also among the whole ones is left open at
first, which gives at least the best. If the choice then found has one too often, its kind is either
not in part in that way, or a copy of it is set aside: these cases are gone through in the same way,
the best first, until the best one is in order.

O(t * k_left * k_right) for t kinds that can be whole, once and for each kind set aside, where the
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

__all__ = ["Grid"]

_MOST_CELLS: Final = 1 << 33  # of all steps: some ten seconds
_MOST_BITS: Final = 1 << 32  # to go back by
_MOST_PAIRS: Final = 1 << 25
_LEFT, _RIGHT, _BOTH = range(3)

_Item = tuple[int, int]  # a kind, and how many copies of it
_Role = tuple[int, int]  # a kind, and which of its sides is in part


class _Parts(NamedTuple):
    """Components in part, of one role, in order of their losses."""

    kind: Ints
    x: Ints
    y: Ints
    loss: npt.NDArray[np.float64]

    def rows(self, rows: Ints | npt.NDArray[np.bool_]) -> _Parts:
        return _Parts(*(column[rows] for column in self))


class _Found(NamedTuple):
    joined: int
    parts: tuple[tuple[int, int, int, int], ...]  # role, kind, x, y


class Grid:
    """Kinds K(m, n) with copies, what is kept of each side, their prices, and the gap."""

    def __init__(
        self, kinds: tuple[Ints, Ints, Ints], keep: tuple[int, int], prices: tuple[float, float]
    ) -> None:
        self.m, self.n, self.copies = kinds
        self.keep, self.prices = keep, prices
        self.profit = self.m * self.n - prices[0] * self.m - prices[1] * self.n

    def better_than(self, known: int, gap: float) -> list[list[tuple[int, int]]] | None:
        """By kind, what is kept of its copies; or None if what is known is the best."""
        self.wholes = np.flatnonzero((self.profit > 0) | (-self.profit <= gap))
        cells = (self.keep[0] + 1) * (self.keep[1] + 1)
        if cells * len(self.wholes) > _MOST_CELLS:
            raise PlanError(
                f"the best {self.keep[0]:,} and {self.keep[1]:,} tuples would be searched in a "
                f"table for each of {len(self.wholes):,} kinds of keys, which takes too long; "
                f"choose method='node_degree', or give one number for both sides together"
            )
        self.parts = [self._of_one_side(_LEFT, gap), self._of_one_side(_RIGHT, gap)]
        self.parts.append(self._of_both_sides(gap))
        tables: dict[tuple[_Item, ...], Ints] = {}
        heap: list[tuple[int, int, dict[int, int], frozenset[_Role]]] = []
        seen = set()

        def consider(aside: dict[int, int], banned: frozenset[_Role]) -> None:
            case = tuple(sorted(aside.items())), banned
            if case in seen:
                return
            seen.add(case)
            if case[0] not in tables:
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
            wrong = [kind for kind in used if whole[kind] + used[kind] > self.copies[kind]]
            if not wrong:
                return self._kept(whole, found)
            kind = wrong[0]
            for role, of, *_ in found.parts:
                if of == kind:
                    consider(aside, banned | {(kind, role)})
            if aside.get(kind, 0) < used[kind] <= self.copies[kind]:
                consider({**aside, kind: used[kind]}, banned)
        return None

    def _items(self, aside: dict[int, int]) -> list[_Item]:
        return [
            (kind, part)
            for kind in self.wholes.tolist()
            for part in bundles(int(self.copies[kind]) - aside.get(kind, 0))
        ]

    def _table(self, items: list[_Item], upto: tuple[int, int] | None = None) -> Ints:
        rows, columns = upto or self.keep
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

    def _of_one_side(self, role: int, gap: float) -> _Parts:
        sizes, others = (self.m, self.n) if role == _LEFT else (self.n, self.m)
        number = sizes - 1
        kind = np.repeat(np.arange(len(sizes)), number)
        part = np.arange(len(kind)) - np.repeat(np.cumsum(number) - number, number) + 1
        x, y = (part, others[kind]) if role == _LEFT else (others[kind], part)
        return self._near(kind, x, y, gap)

    def _of_both_sides(self, gap: float) -> _Parts:
        kinds, xs, ys = [], [], []
        for kind, (m, n, profit) in enumerate(
            zip(self.m.tolist(), self.n.tolist(), self.profit.tolist(), strict=True)
        ):
            x, y, cut = inside((m, n), self.prices, max(profit, 0.0) - gap, _MOST_PAIRS)
            if cut:
                raise PlanError(
                    f"components of {m:,} and {n:,} tuples can be in part in more ways than can be "
                    f"gone through; choose method='node_degree', or give one number for both sides"
                )
            kinds.append(np.full(len(x), kind))
            xs.append(x)
            ys.append(y)
        return self._near(np.concatenate(kinds), np.concatenate(xs), np.concatenate(ys), gap)

    def _near(self, kind: Ints, x: Ints, y: Ints, gap: float) -> _Parts:
        loss = np.maximum(self.profit[kind], 0) + self.prices[0] * x + self.prices[1] * y - x * y
        near = loss <= gap
        kind, x, y, loss = kind[near], x[near], y[near], loss[near]
        order = np.argsort(loss, kind="stable")
        return _Parts(kind[order], x[order], y[order], loss[order])

    def _allowed(self, role: int, banned: frozenset[_Role]) -> _Parts:
        """Without kinds that may not have this role; of parts that are alike, the one with the
        least loss, which is the least likely to be whole."""
        parts = self.parts[role]
        kinds = [kind for kind, of in banned if of == role]
        if kinds:
            parts = parts.rows(~np.isin(parts.kind, kinds))
        _, heads = np.unique(parts.x * (self.keep[1] + 1) + parts.y, return_index=True)
        return parts.rows(np.sort(heads))

    def _closed(self, table: Ints, banned: frozenset[_Role], gap: float) -> _Found:
        """The most with whole components and parts, if these are always others."""
        left, right, both = (self._allowed(role, banned) for role in (_LEFT, _RIGHT, _BOTH))
        best = _Found(int(table[-1, -1]), ())
        for role, parts in ((_LEFT, left), (_RIGHT, right), (_BOTH, both)):
            joined = self._with(table, parts.x, parts.y, parts.x * parts.y)
            if len(joined) and joined.max() > best.joined:
                row = int(joined.argmax())
                part = role, int(parts.kind[row]), int(parts.x[row]), int(parts.y[row])
                best = _Found(int(joined[row]), (part,))
        number = np.searchsorted(right.loss, gap - left.loss, "right")
        if number.sum() > _MOST_PAIRS:
            raise PlanError(
                f"{int(number.sum()):,} pairs of keys could be kept in part, more than can be gone "
                f"through; choose method='node_degree', or give one number for both sides together"
            )
        one = np.repeat(np.arange(len(number)), number)
        two = np.arange(len(one)) - np.repeat(np.cumsum(number) - number, number)
        x, y = left.x[one] + right.x[two], left.y[one] + right.y[two]
        value = (left.x * left.y)[one] + (right.x * right.y)[two]
        joined = self._with(table, x, y, value)
        if len(joined) and joined.max() > best.joined:
            row = int(joined.argmax())
            of_left, of_right = int(one[row]), int(two[row])
            best = _Found(
                int(joined[row]),
                (
                    (_LEFT, int(left.kind[of_left]), int(left.x[of_left]), int(left.y[of_left])),
                    (
                        _RIGHT,
                        int(right.kind[of_right]),
                        int(right.x[of_right]),
                        int(right.y[of_right]),
                    ),
                ),
            )
        return best

    def _with(self, table: Ints, x: Ints, y: Ints, value: Ints) -> Ints:
        fits = (x <= self.keep[0]) & (y <= self.keep[1])
        rows, columns = np.where(fits, self.keep[0] - x, 0), np.where(fits, self.keep[1] - y, 0)
        return np.where(fits, table[rows, columns] + value, -1)

    def _taken(self, items: list[_Item], found: _Found) -> Counter[int]:
        """How many copies of each kind are whole in the room that the parts leave."""
        room = [
            keep - sum(part[2 + side] for part in found.parts)
            for side, keep in enumerate(self.keep)
        ]
        cells = (room[0] + 1) * (room[1] + 1)
        if cells * len(items) > _MOST_BITS:
            raise PlanError(
                f"the best {self.keep[0]:,} and {self.keep[1]:,} tuples take too much memory to "
                f"find; choose method='node_degree', or give one number for both sides together"
            )
        table = self._table([], (room[0], room[1]))
        better = []
        for item in items:
            before = table.copy()
            self._add(table, item)
            better.append(np.packbits(table > before))
        whole: Counter[int] = Counter()
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
