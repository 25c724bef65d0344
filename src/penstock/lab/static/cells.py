"""Tables with a cell for each number of tuples of either side: the most pairs that fit there.

Cell (i, j) has the most pairs of at most i tuples of the left and j of the right side. Components
are added one after the other, each of them in O(cells). Which ones a cell has taken is found out by
adding them once more, with a note of the cells that became better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "CellTables", "Cells", "RightInPart", "Room", "WholeCopies", "add_whole", "table_of",
    "taken_of",
]  # fmt: skip

Cells = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]
Room = tuple[int, int]  # tuples of the left and of the right side


class WholeCopies(NamedTuple):
    """Some `copies` of a component K(m, n) of a kind, all of them or none."""

    kind: int
    copies: int
    m: int
    n: int


class RightInPart(NamedTuple):
    """A component with its right side in part: m tuples of the left, and `low` to `high` of the
    right, each of them for `worth` pairs. Of one that is there anyway it is by how much less: then
    m is 0, and `low` and `high` are negative."""

    kind: int
    m: int
    worth: int
    low: int
    high: int


def add_whole(table: Cells, item: WholeCopies) -> None:
    """Takes it where that is better."""
    m, n = item.copies * item.m, item.copies * item.n
    if m < table.shape[0] and n < table.shape[1]:
        joined = item.copies * item.m * item.n
        np.maximum(table[m:, n:], table[:-m, :-n] + joined, out=table[m:, n:])


def add_part(table: Cells, before: Cells, part: RightInPart) -> None:
    """Takes it where that is better, together with what is in `before`.

    Of all columns j - y the best one for column j is wanted, by what is there plus y times the
    worth: the maximum of what is there less the worth of all columns before, over a window."""
    if part.high < 0:
        mirrored = part._replace(worth=-part.worth, low=-part.high, high=-part.low)
        add_part(table[:, ::-1], before[:, ::-1], mirrored)
        return
    rows, columns = table.shape
    low, high = part.low, min(part.high, columns - 1)
    if part.m >= rows or low > high:
        return
    worth = part.worth * np.arange(columns, dtype=table.dtype)
    most = before[: rows - part.m, : columns - low] - worth[: columns - low]
    width = 1
    while width <= high - low:  # columns in the windows that end at each
        step = min(width, high - low + 1 - width)
        np.maximum(most[:, step:], most[:, :-step], out=most[:, step:])
        width += step
    most += worth[low:]
    np.maximum(table[part.m :, low:], most, out=table[part.m :, low:])


def table_of(items: Iterable[WholeCopies], room: Room, dtype: type[Any]) -> Cells:
    """The most pairs of whole components, for all room up to this."""
    table: Cells = np.zeros((room[0] + 1, room[1] + 1), dtype)
    for item in items:
        add_whole(table, item)
    return table


def taken_of(items: list[WholeCopies], room: Room, dtype: type[Any]) -> list[WholeCopies]:
    """Which of the items have the most pairs in this room."""
    table = table_of([], room, dtype)
    notes = [_Notes.of(table, partial(add_whole, table, item)) for item in items]
    taken = []
    row, column = room
    for item, noted in zip(reversed(items), reversed(notes), strict=True):
        if noted.has(row, column):
            taken.append(item)
            row, column = row - item.copies * item.m, column - item.copies * item.n
    return taken


class CellTables:
    """One of whole components, and one of these and at most one with its right side in part.

    If that one is there anyway, and makes room, the second table has `extra` columns before those
    of the first: for less than no room."""

    def __init__(self, room: Room, dtype: type[Any], *, with_notes: bool = False) -> None:
        self.whole: Cells = table_of([], room, dtype)
        # The same one, until there is a component in part.
        self.part = self.whole.copy() if with_notes else self.whole
        self.extra = 0
        self._notes: list[tuple[WholeCopies | RightInPart, _Notes, int]] | None = (
            [] if with_notes else None
        )

    def add(self, item: WholeCopies) -> None:
        """Takes it where that is better."""
        add_whole(self.whole, item)
        if self.part is not self.whole:
            self._noted(item, partial(add_whole, self.part, item))

    def add_either(self, item: WholeCopies | None, part: RightInPart) -> None:
        """Takes a component, if it may be whole, or a part of it, where that is better."""
        before = self.whole
        if part.high < 0:
            self.extra = -part.low
            self.part = _with_columns(self.part, self.extra)
            before = _with_columns(self.whole, self.extra)
        elif self.part is self.whole:
            self.part = self.whole.copy()
        if item is not None:
            self._noted(item, partial(add_whole, self.part, item))
        target = self.part[:, self.part.shape[1] - before.shape[1] :]
        self._noted(part, partial(add_part, target, before, part))
        if item is not None:
            add_whole(self.whole, item)

    def back(self, room: Room) -> tuple[list[WholeCopies], RightInPart | None, Room]:
        """What a cell of the second table has taken, from the last to the one in part, or to the
        first; and the room that there was for that and what came before it."""
        assert self._notes is not None, "notes were taken"
        taken: list[WholeCopies] = []
        row, column = room
        for each, noted, extra in reversed(self._notes):
            if noted.has(row, column + extra):
                if isinstance(each, RightInPart):
                    return taken, each, (row, column)
                taken.append(each)
                row, column = row - each.copies * each.m, column - each.copies * each.n
        return taken, None, (row, column)

    def _noted(self, each: WholeCopies | RightInPart, add: Callable[[], None]) -> None:
        if self._notes is None:
            add()
        else:
            self._notes.append((each, _Notes.of(self.part, add), self.extra))


class _Notes(NamedTuple):
    """A bit for each cell of a table."""

    bits: npt.NDArray[np.uint8]
    columns: int

    @classmethod
    def of(cls, table: Cells, add: Callable[[], None]) -> _Notes:
        """The cells that became better by adding something."""
        before = table.copy()
        add()
        return cls(np.packbits(table > before), table.shape[1])

    def has(self, row: int, column: int) -> bool:
        cell = row * self.columns + column
        return bool(self.bits[cell >> 3] >> (7 - (cell & 7)) & 1)


def _with_columns(table: Cells, number: int) -> Cells:
    """The table with `number` more columns before the first, in which nothing fits."""
    nothing = np.iinfo(table.dtype).min // 2
    return np.pad(table, ((0, 0), (number, 0)), constant_values=nothing)
