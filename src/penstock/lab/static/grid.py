"""The best k_left and k_right tuples by a table over both: for when too many choices come close.

Components are gone through in order of falling n. The one whose left side is in part, (x, n), has
the fewest of the right side of all that are kept (`in_part.py`): so it comes last, after the one of
which the right side is in part, (m, y), of which more than n are kept, and after all whole ones.
What it goes with has been made without it, and it is looked at in the cells only to which it leaves
no room. That takes two tables: of whole components, and of these and one with its right side in
part.

For a component with both sides in part, (x, y), a table without it is needed. It is looked at with
the whole table first, in which it may be whole as well. That gives at least the best, and is seldom
better than what has been found; for those of which it is, tables without each are made, by halves.

O(t * k_left * k_right) for the t kinds that could be either way, times log k for those that could
be in part; the table of the paper takes O(c * k_left * k_right * m * n).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.errors import PlanError
from penstock.lab.static.cells import (
    Cells,
    CellTables,
    RightInPart,
    Room,
    WholeCopies,
    add_whole,
    table_of,
    taken_of,
)
from penstock.lab.static.components import Ints, bundles
from penstock.lab.static.in_part import InPart, Priced

__all__ = ["SMALL", "Grid"]

SMALL: Final = 1 << 28  # of one table for all kinds: about a second
_MOST_CELLS: Final = 1 << 32  # of all steps: some seconds
_MOST_CELLS_OF_ONE: Final = 1 << 25

_Copies = list[list[tuple[int, int]]]  # by kind, what is kept of its copies


class _Kept(NamedTuple):
    """A component in part, and how much is kept of it."""

    kind: int
    x: int
    y: int


class _Found(NamedTuple):
    """The most pairs, without what is there anyway; and the component in part that comes last."""

    joined: int
    last: _Kept | None


class Grid:
    """Kinds of components, what is kept of each side, and the gap. spent: cells that have been gone
    through, also for other gaps."""

    def __init__(self, kinds: Priced, keep: Room, gap: float, spent: int = 0) -> None:
        self.m, self.n, self.copies = kinds.m, kinds.n, kinds.copies
        self.keep, self.spent = keep, spent
        self.near = InPart(kinds, gap)
        there = np.where(self.near.fixed, self.copies, 0)
        self.base = int(there @ (self.m * self.n))
        self.room = (
            min(keep[0] - int(there @ self.m), self._most_used(self.m)),
            min(keep[1] - int(there @ self.n), self._most_used(self.n)),
        )
        self.cells = (self.room[0] + 1) * (self.room[1] + 1) * (int(self.near.is_whole.sum()) + 1)
        largest = int((self.copies * self.m * self.n).sum())
        largest += int(self.m.max()) * (keep[1] + 2 * int(self.n.max()))
        self.dtype: type[Any] = np.int32 if largest <= np.iinfo(np.int32).max // 4 else np.int64

    def better_than(self, known: int) -> _Copies | None:
        """By kind, what is kept of its copies; or None if what is known is the best."""
        self._make_room()
        if min(self.most_room) < 0:  # no choice loses as little
            return None
        near = self.near
        order = np.flatnonzero(
            near.is_whole | (near.left[0] <= near.left[1]) | (near.right[0] <= near.right[1])
        )
        self.order: list[int] = order[np.argsort(-self.n[order], kind="stable")].tolist()
        found, table = self._one_after_the_other(_Found(known - self.base, None))
        found = self._with_both_in_part(found, table)
        if found.joined <= known - self.base:
            return None
        return self._kept(*self._chosen(found))

    def _most_used(self, sizes: Ints) -> int:
        """How many tuples of a side all that may be whole or not has, and two in part."""
        free = np.where(self.near.fixed, 0, sizes)
        whole = np.where(self.near.is_whole, self.copies, 0)
        return int(whole @ free) + 2 * int(free.max())

    def _make_room(self) -> None:
        """A part of a component that is there anyway makes room."""
        near = self.near
        left, right = [0], [0]
        for kind in np.flatnonzero(near.fixed).tolist():
            m, n = int(self.m[kind]), int(self.n[kind])
            if near.left[0][kind] <= near.left[1][kind]:
                left.append(m - int(near.left[0][kind]))
            part = self._part(kind)
            if part is not None:
                right.append(-part.low)
            if near.in_both[kind]:
                x, y = near.inside(kind)
                left.append(m - int(x.min(initial=m)))
                right.append(n - int(y.min(initial=n)))
        self.extra = max(right)
        self.most_room = self.room[0] + max(left), self.room[1] + self.extra

    # --- one component after the other ------------------------------------------------------------

    def _one_after_the_other(self, found: _Found) -> tuple[_Found, Cells]:
        """The most with at most one component in part on each side; and the table of whole ones."""
        self._spend(self._steps(), self.most_room)
        tables = CellTables(self.most_room, self.dtype)
        for kind in self._added(tables):
            x = np.arange(self.near.left[0][kind], self.near.left[1][kind] + 1)
            parts = x, np.full_like(x, self.n[kind])
            found = self._with(found, tables.part, kind, parts, tables.extra)
        row, column = self.room[0], self.room[1] + tables.extra
        if min(row, column) >= 0 and tables.part[row, column] > found.joined:
            found = _Found(int(tables.part[row, column]), None)
        return found, tables.whole

    def _added(self, tables: CellTables) -> Iterator[int]:
        """Adds all kinds in their order. Each is given when there is a copy of it to come, for that
        may be the last one."""
        for kind in self.order:
            for item in self._wholes(kind, less=1):
                tables.add(item)
            yield kind
            last = self._item(kind) if self.near.is_whole[kind] else None
            part = self._part(kind)
            if part is not None:
                tables.add_either(last, part)
            elif last is not None:
                tables.add(last)

    def _wholes(self, kind: int, less: int = 0) -> list[WholeCopies]:
        """The components of a kind that may be whole or not, without `less` of the copies."""
        copies = int(self.copies[kind]) - less if self.near.is_whole[kind] else 0
        return [self._item(kind, part) for part in bundles(copies)]

    def _item(self, kind: int, copies: int = 1) -> WholeCopies:
        return WholeCopies(kind, copies, int(self.m[kind]), int(self.n[kind]))

    def _part(self, kind: int) -> RightInPart | None:
        """The right side of a component in part."""
        low, high = int(self.near.right[0][kind]), int(self.near.right[1][kind])
        if low > high:
            return None
        m, n = int(self.m[kind]), int(self.n[kind])
        if self.near.fixed[kind]:
            return RightInPart(kind, 0, m, low - n, high - n)
        return RightInPart(kind, m, m, low, high)

    def _with(
        self, found: _Found, table: Cells, kind: int, parts: tuple[Ints, Ints], extra: int = 0
    ) -> _Found:
        """With one of these parts of a component, in the room that it leaves, if that is better."""
        rows, columns = self._room_left(kind, *parts)
        fits = np.flatnonzero((rows >= 0) & (columns + extra >= 0))
        if not len(fits):
            return found
        x, y = parts[0][fits], parts[1][fits]
        joined = table[rows[fits], columns[fits] + extra] + x * y
        if self.near.fixed[kind]:
            joined = joined - int(self.m[kind] * self.n[kind])
        best = int(joined.argmax())
        if joined[best] <= found.joined:
            return found
        return _Found(int(joined[best]), _Kept(kind, int(x[best]), int(y[best])))

    def _room_left(self, kind: int, x: Any, y: Any) -> tuple[Any, Any]:
        there = int(self.near.fixed[kind])
        m, n = there * int(self.m[kind]), there * int(self.n[kind])
        return self.room[0] + m - x, self.room[1] + n - y

    # --- both sides of one component in part ------------------------------------------------------

    def _with_both_in_part(self, found: _Found, table: Cells) -> _Found:
        """With one of these, if that is better."""
        bounds: dict[int, int] = {}
        for kind in np.flatnonzero(self.near.in_both).tolist():
            better = self._with(found, table, kind, self.near.inside(kind))
            if not self.near.is_whole[kind]:
                found = better
            elif better is not found:
                bounds[kind] = better.joined
        if not bounds:
            return found
        items = self._all_wholes(less=bounds)
        self._spend(len(items), self.most_room)
        return self._without_each(table_of(items, self.most_room, self.dtype), bounds, found)

    def _all_wholes(self, less: Collection[int]) -> list[WholeCopies]:
        """Those of all kinds, of some of them a copy less."""
        kinds = np.flatnonzero(self.near.is_whole).tolist()
        return [item for kind in kinds for item in self._wholes(kind, int(kind in less))]

    def _without_each(self, table: Cells, bounds: dict[int, int], found: _Found) -> _Found:
        """table: without a copy of any of these kinds. Adds it for all kinds but one, in turn."""
        near = {kind: bound for kind, bound in bounds.items() if bound > found.joined}
        if not near:
            return found
        for kind in set(bounds) - set(near):
            add_whole(table, self._item(kind))
        if len(near) == 1:
            (kind,) = near
            return self._with(found, table, kind, self.near.inside(kind))
        kinds = sorted(near, key=lambda kind: -near[kind])
        for half in (kinds[: len(kinds) // 2], kinds[len(kinds) // 2 :]):
            others = set(kinds) - set(half)
            self._spend(len(others) + 1, self.most_room)
            with_others = table.copy()
            for kind in others:
                add_whole(with_others, self._item(kind))
            found = self._without_each(with_others, {kind: near[kind] for kind in half}, found)
        return found

    # --- what was chosen --------------------------------------------------------------------------

    def _chosen(self, found: _Found) -> tuple[list[WholeCopies], list[_Kept]]:
        if found.last is None:
            return self._back(None, self.room)
        kind, x, y = found.last
        room = self._room_left(kind, x, y)
        if y == self.n[kind]:
            wholes, parts = self._back(kind, room)
            return wholes, [*parts, found.last]
        items = self._all_wholes(less={kind})
        self._spend(3 * len(items), room)
        return taken_of(items, room, self.dtype), [found.last]

    def _back(self, last: int | None, room: Room) -> tuple[list[WholeCopies], list[_Kept]]:
        """What has the most pairs in this room, of what comes before the last one."""
        space = room[0], room[1] + self.extra
        self._spend(3 * self._steps(), space)
        tables = CellTables(space, self.dtype, with_notes=True)
        for kind in self._added(tables):
            if kind == last:
                break
        wholes, part, room = tables.back(room)
        if part is None:
            return wholes, []
        # Whole ones came before it, and as many of the right side are kept as go best with them.
        before = self.order[: self.order.index(part.kind)]
        items = [item for kind in before for item in self._wholes(kind)]
        items += self._wholes(part.kind, less=1)
        y = np.arange(part.low, min(part.high, room[1]) + 1)
        row, columns = room[0] - part.m, room[1] - y
        self._spend(4 * len(items), (row, int(columns.max())))
        table = table_of(items, (row, int(columns.max())), self.dtype)
        best = int((table[row, columns] + part.worth * y).argmax())
        there = int(self.n[part.kind]) if self.near.fixed[part.kind] else 0
        kept = _Kept(part.kind, int(self.m[part.kind]), there + int(y[best]))
        return [*wholes, *taken_of(items, (row, int(columns[best])), self.dtype)], [kept]

    def _kept(self, wholes: list[WholeCopies], parts: list[_Kept]) -> _Copies:
        fixed = np.flatnonzero(self.near.fixed).tolist()
        copies = Counter({kind: int(self.copies[kind]) for kind in fixed})
        for item in wholes:
            copies[item.kind] += item.copies
        copies.subtract(kind for kind, *_ in parts if self.near.fixed[kind])
        kept = [
            [(m, n)] * copies[kind]
            for kind, (m, n) in enumerate(zip(self.m.tolist(), self.n.tolist(), strict=True))
        ]
        for kind, x, y in parts:
            kept[kind].append((x, y))
        return kept

    # --- how long it takes ------------------------------------------------------------------------

    def _steps(self) -> int:
        """Over all cells of a table, to add all kinds."""
        steps = 0
        for kind in self.order:
            part = self._part(kind)
            steps += 2 * len(self._wholes(kind))
            steps += 0 if part is None else 3 + (part.high - part.low + 1).bit_length()
        return steps

    def _spend(self, steps: int, room: Room) -> None:
        """So that no call takes minutes, or all memory."""
        cells = (room[0] + 1) * (room[1] + 1)
        self.spent += steps * cells
        if cells > _MOST_CELLS_OF_ONE or self.spent > _MOST_CELLS:
            raise PlanError(
                f"the best {self.keep[0]:,} and {self.keep[1]:,} tuples are among more choices "
                f"than can be gone through, got {int(self.near.is_whole.sum()):,} kinds of keys "
                f"that come close; choose method='node_degree', or give one number for both sides "
                f"together"
            )
