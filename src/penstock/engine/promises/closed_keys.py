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
from penstock.kernels.punctuation.key_rows import FREE, add_rows, find_rows
from penstock.model.keys import KeyKind
from penstock.windows.key_words import alike

__all__ = ["NEVER", "ClosedKeys", "are_repeated"]

NEVER: Final = np.iinfo(np.int64).max  # later than the end of time
_FIRST_ROWS: Final = 16
_GROWTH: Final = 2  # room is made for one in N more
_PLACES: Final = 2  # of the index, for each row that there is room for


class ClosedKeys:
    """at[s, row]: from when on stream s has closed a key. dead: no combination of it can come any
    more. told: that has been given out."""

    def __init__(self, streams: int) -> None:
        self.count = 0
        self.at: Words = np.full((streams, _FIRST_ROWS), NEVER)
        self.dead: Flags = np.zeros(_FIRST_ROWS, np.bool_)
        self.told: Flags = np.zeros(_FIRST_ROWS, np.bool_)
        self._keys: Words = np.empty(_FIRST_ROWS, np.int64)
        self._places = np.full(_PLACES * _FIRST_ROWS, FREE, np.int32)
        self._values: list[list[pa.Array]] = []  # by column, in pieces that follow each other

    @property
    def nbytes(self) -> int:
        """Memory held."""
        arrays = (self.at, self.dead, self.told, self._keys, self._places)
        of_values = sum(piece.nbytes for pieces in self._values for piece in pieces)
        return sum(each.nbytes for each in arrays) + of_values

    def words(self, rows: Words) -> Words:
        """The words of keys."""
        return self._keys[rows]

    def find(self, words: Words, columns: Sequence[pa.Array], kinds: Sequence[KeyKind]) -> Words:
        """The row of each key, or FREE."""
        return self._verified(self.of_words(words), columns, kinds)

    def of_words(self, words: Words) -> Words:
        """The rows of the keys that these words were given to first."""
        rows = np.full(len(words), FREE)
        if self.count:
            find_rows(self._places, self._keys, of_one_type(words), rows)
        return rows

    def add(self, words: Words, columns: Sequence[pa.Array], kinds: Sequence[KeyKind]) -> Words:
        """The same, where keys that have none get one."""
        self._reserve(len(words))
        rows, before = np.empty(len(words), np.int64), self.count
        self.count = add_rows(self._places, self._keys, before, of_one_type(words), rows)
        if self.count > before and not _is_word(kinds):
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
            return [pa.array(self._keys[rows])]
        return [
            pa.chunked_array(pieces).take(pa.array(rows)).combine_chunks()
            for pieces in self._values
        ]

    def _reserve(self, more: int) -> None:
        """Make room for more rows."""
        room, needed = len(self._keys), self.count + more
        if needed > room:
            self._move(np.arange(self.count), max(needed, room + room // _GROWTH))

    def keep(self, rows: Words) -> Words:
        """Forget all other rows; where each row is now, or FREE."""
        places = np.full(self.count, FREE)
        places[rows] = np.arange(len(rows))
        room = max(_FIRST_ROWS, len(rows) + len(rows) // _GROWTH)
        if self._values:
            self._values = [[column] for column in self.values(rows)]
        self._move(rows, room)
        return places

    def table(self) -> pa.Table:
        """All of them, to be saved."""
        rows = np.arange(self.count)
        columns = {"word": self._keys[rows], "dead": self.dead[rows], "told": self.told[rows]}
        columns |= {f"at {stream}": at[rows] for stream, at in enumerate(self.at)}
        values = self.values(rows) if self._values else []
        return pa.table(
            columns | {f"value {number}": column for number, column in enumerate(values)}
        )

    def load(self, saved: pa.Table) -> None:
        """Those of a table."""
        self.count = len(saved)
        names = [name for name in saved.column_names if name.startswith("value ")]
        self._values = [[saved[name].combine_chunks()] for name in names]
        self._keys = saved["word"].to_numpy().copy()
        self.dead, self.told = (saved[name].to_numpy().copy() for name in ("dead", "told"))
        self.at = np.stack([saved[f"at {stream}"].to_numpy() for stream in range(len(self.at))])
        self.keep(np.arange(self.count))

    def _move(self, rows: Words, room: int) -> None:
        at = np.full((len(self.at), room), NEVER)
        at[:, : len(rows)] = self.at[:, rows]
        self.at, words = at, self._keys[rows]
        self.dead, self.told = (_moved(flags, rows, room) for flags in (self.dead, self.told))
        self._keys = np.empty(room, np.int64)
        self._places = np.full(_PLACES * room, FREE, np.int32)
        self.count = add_rows(self._places, self._keys, 0, words, np.empty(len(rows), np.int64))


def are_repeated(words: Words) -> bool:
    """Whether some word stands there twice."""
    places = np.full(_PLACES * len(words) + 1, FREE, np.int32)
    keys, rows = np.empty_like(words), np.empty_like(words)
    return add_rows(places, keys, 0, of_one_type(words), rows) < len(words)


def _is_word(kinds: Sequence[KeyKind]) -> bool:
    """Whether keys are the words that stand for them."""
    return len(kinds) == 1 and kinds[0].common == pa.int64()


def _append(pieces: list[pa.Array], piece: pa.Array) -> None:
    """Keep pieces few: each more than twice as long as the one after it."""
    pieces.append(piece)
    while len(pieces) > 1 and len(pieces[-2]) <= 2 * len(pieces[-1]):
        pieces[-2:] = [pa.concat_arrays(pieces[-2:])]


def _moved(flags: Flags, rows: Words, room: int) -> Flags:
    moved = np.zeros(room, np.bool_)
    moved[: len(rows)] = flags[rows]
    return moved
