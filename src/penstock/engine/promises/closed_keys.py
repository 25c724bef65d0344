"""Closed keys: which streams have closed a key, and from when on.

A key has a row from the first promise about it on. It is found by its word and told apart from
another key of the same word by its value: the second of two such keys gets no row, so what is
promised about it saves no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrivals import of_one_type
from penstock.kernels.arena import Flags, Words
from penstock.kernels.jit import EntryPoint
from penstock.kernels.punctuation import rules
from penstock.kernels.punctuation.key_rows import (
    FREE,
    NEVER,
    KeyTable,
    add_rows,
    enter_rows,
    find_rows,
    is_repeated,
)
from penstock.model.keys import KeyKind, are_words
from penstock.windows.key_words import alike

__all__ = ["NEVER", "ClosedKeys", "are_repeated"]

_FIRST_ROWS: Final = 16
_GROWTH: Final = 2  # room is made for one in N more
_PLACES: Final = 2  # of the index, for each row that there is room for
_BYTES: Final = 2  # of bits that say whether a key may be known, the same

_find = EntryPoint(find_rows)
_add = EntryPoint(add_rows)
_enter = EntryPoint(enter_rows)
_are_broken = EntryPoint(rules.are_broken)
_need_not_stay = EntryPoint(rules.need_not_stay)
_note = EntryPoint(rules.note)
_settle = EntryPoint(rules.settle)
_die = EntryPoint(rules.die)
_take_told = EntryPoint(rules.take_told)


class ClosedKeys:
    """count: rows that the table has. table: what is known of them."""

    def __init__(self, streams: int) -> None:
        self._streams = streams
        self.count = 0
        self.table = self._empty(_FIRST_ROWS)
        self._values: list[list[pa.Array]] = []  # by column, in pieces that follow each other

    def _empty(self, room: int) -> KeyTable:
        return KeyTable(
            np.zeros(_BYTES * room, np.uint8),
            np.full(_PLACES * room, FREE, np.int32),
            np.empty(room, np.int64),
            np.full((self._streams, room), NEVER),
            np.zeros((self._streams, room), np.bool_),
            np.zeros(room, np.bool_),
            np.zeros(room, np.bool_),
        )

    @property
    def nbytes(self) -> int:
        """Memory held."""
        of_values = sum(piece.nbytes for pieces in self._values for piece in pieces)
        return sum(each.nbytes for each in self.table) + of_values

    @property
    def at(self) -> Words:
        """at[s, row]: from when on stream s has closed a key."""
        return self.table.at

    @property
    def dead(self) -> Flags:
        """dead[row]: no combination of a key can come any more."""
        return self.table.dead

    @property
    def told(self) -> Flags:
        """told[row]: that has been given out."""
        return self.table.told

    def words(self, rows: Words) -> Words:
        """The words of keys."""
        return self.table.keys[rows]

    # From keys to rows.

    def find(
        self, words: Words, columns: Sequence[pa.Array], kinds: Sequence[KeyKind]
    ) -> Words | None:
        """The row of each key, or FREE; None if there is none."""
        rows = self.of_words(words)
        return None if rows is None else self._verified(rows, columns, kinds)

    def of_words(self, words: Words) -> Words | None:
        """The rows of the keys that these words were given to first; None if there are none."""
        if not self.count:
            return None
        rows = np.empty(len(words), np.int64)
        return rows if _find(self.table, of_one_type(words), rows) else None

    def add(self, words: Words, columns: Sequence[pa.Array], kinds: Sequence[KeyKind]) -> Words:
        """The row of each key, where keys that have none get one; FREE if it is another key's."""
        self._reserve(len(words))
        rows, before = np.empty(len(words), np.int64), self.count
        self.count = _add(self.table, before, of_one_type(words), rows)
        if self.count > before and not are_words(kinds):
            # The first to ask for a row has its key: rows are given out in their order.
            new = np.flatnonzero(rows == np.maximum.accumulate(np.maximum(rows, before - 1)))
            new = pa.array(new[np.diff(rows[new], prepend=before - 1) > 0])
            if not self._values:
                self._values = [[] for _ in columns]
            for pieces, column, kind in zip(self._values, columns, kinds, strict=True):
                _append(pieces, alike(column, kind).take(new))
        return self._verified(rows, columns, kinds)

    def _verified(
        self, rows: Words, columns: Sequence[pa.Array], kinds: Sequence[KeyKind]
    ) -> Words:
        if len(kinds) == 1 and kinds[0].exact:
            return rows
        known = np.flatnonzero(rows != FREE)
        if len(known):
            same = np.ones(len(known), np.bool_)
            for column, kind, value in zip(columns, kinds, self.values(rows[known]), strict=True):
                equal = pc.equal(alike(column, kind).take(pa.array(known)), alike(value, kind))
                same &= equal.fill_null(False).to_numpy(zero_copy_only=False)
            rows[known[~same]] = FREE
        return rows

    def values(self, rows: Words) -> list[pa.Array]:
        """The keys of rows, by column."""
        if not self._values:
            return [pa.array(self.table.keys[rows])]
        return [
            pa.chunked_array(pieces).take(pa.array(rows)).combine_chunks()
            for pieces in self._values
        ]

    # What follows from rows: `kernels.punctuation.rules`.

    def broken(self, stream: int, rows: Words, ts: Words) -> Words:
        """Which tuples of a stream, with the keys of these rows, it had promised not to bring."""
        out = np.empty(len(rows), np.int64)
        return out[: _are_broken(self.table, stream, rows, of_one_type(ts), out)]

    def unneeded(self, stream: int, rows: Words, passed: int) -> Flags | None:
        """Whether nothing that comes can meet a tuple of a stream with the keys of these rows; None
        if that is so of none."""
        out = np.empty(len(rows), np.bool_)
        return out if _need_not_stay(self.table, stream, rows, passed, out) else None

    def note(
        self, stream: int, rows: Words, at: Words, *, is_single: bool = False
    ) -> tuple[Words, Words, Flags]:
        """Have a stream close keys; the rows of those that it had not, or not from so early on;
        from when on; and which of them it had not. is_single: whether each has one tuple in the
        stream, which has come."""
        out = np.empty((3, len(rows)), np.int64)
        count = _note(self.table, (stream, is_single), rows, of_one_type(at), out)
        return out[0, :count], out[1, :count], out[2, :count] != 0

    def settle(self, stream: int, rows: Words, last: Words, passed: int) -> tuple[list[Words], int]:
        """What follows of keys that a stream has closed, whose last tuples end at `last`: the rows
        whose tuples can go, by stream; then, of keys that are not dead, rows, and when to look
        again. And how many have died."""
        out = np.empty((self._streams + 2, len(rows)), np.int64)
        counts = np.zeros(self._streams + 2, np.int64)
        _settle(self.table, (stream, passed), of_one_type(rows), of_one_type(last), out, counts)
        *ends, died = counts.tolist()
        return [each[:end] for each, end in zip(out, [*ends, ends[-1]], strict=True)], died

    def die(self, rows: Words) -> Words:
        """Mark keys as dead; those that were not."""
        out = np.empty(len(rows), np.int64)
        return out[: _die(self.table, of_one_type(rows), out)]

    def take_told(self, preserved: Words, rows: Words, passed: int) -> Words:
        """Mark dead keys as given out, of which nothing can come out alone; those that were not."""
        out = np.empty(len(rows), np.int64)
        return out[: _take_told(self.table, preserved, of_one_type(rows), passed, out)]

    # Room, and forgetting.

    def _reserve(self, more: int) -> None:
        """Make room for more rows."""
        room, needed = len(self.table.keys), self.count + more
        if needed > room:
            self._move(slice(self.count), max(needed, room + room // _GROWTH))

    def keep(self, rows: Words) -> Words:
        """Forget all other rows; where each row is now, or FREE."""
        places = np.full(self.count, FREE)
        places[rows] = np.arange(len(rows))
        room = max(_FIRST_ROWS, len(rows) + len(rows) // _GROWTH)
        if self._values:
            self._values = [[column] for column in self.values(rows)]
        self._move(rows, room)
        return places

    def _move(self, rows: Words | slice, room: int) -> None:
        """Into a table of another size, with some of the rows."""
        old, self.table = self.table, self._empty(room)
        self.count = len(old.keys[rows])
        for name in ("keys", "at", "came", "dead", "told"):
            getattr(self.table, name)[..., : self.count] = getattr(old, name)[..., rows]
        _enter(self.table, self.count)

    def saved(self) -> pa.Table:
        """All of them, to be saved."""
        rows = np.arange(self.count)
        columns = {name: getattr(self.table, name)[rows] for name in ("dead", "told")}
        columns["word"] = self.table.keys[rows]
        for name in ("at", "came"):
            for stream, each in enumerate(getattr(self.table, name)):
                columns[f"{name} {stream}"] = each[rows]
        values = self.values(rows) if self._values else []
        return pa.table(
            columns | {f"value {number}": column for number, column in enumerate(values)}
        )

    def load(self, saved: pa.Table) -> None:
        """Those of a table."""
        names = [name for name in saved.column_names if name.startswith("value ")]
        self._values = [[saved[name].combine_chunks()] for name in names]
        self.count = len(saved)
        self.table = self._empty(max(_FIRST_ROWS, self.count + self.count // _GROWTH))
        for name, column in (("keys", "word"), ("dead", "dead"), ("told", "told")):
            getattr(self.table, name)[: self.count] = saved[column].to_numpy()
        for name in ("at", "came"):
            for stream, each in enumerate(getattr(self.table, name)):
                each[: self.count] = saved[f"{name} {stream}"].to_numpy()
        _enter(self.table, self.count)


def are_repeated(words: Words) -> bool:
    """Whether some word stands there twice."""
    places = np.full(_PLACES * len(words), FREE, np.int32)
    return len(words) > 1 and bool(is_repeated(places, of_one_type(words)))


def _append(pieces: list[pa.Array], piece: pa.Array) -> None:
    """Keep pieces few: each more than twice as long as the one after it."""
    pieces.append(piece)
    while len(pieces) > 1 and len(pieces[-2]) <= 2 * len(pieces[-1]):
        pieces[-2:] = [pa.concat_arrays(pieces[-2:])]
