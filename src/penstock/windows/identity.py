"""Identities: 64-bit words for keys that are longer, of which no two keys share one.

Candidates are found by a hash and verified by value, so equal hashes of different keys cost
time, not truth. That is too late when tuples are counted by key: a window of N rows per key must
know at once which key a tuple has. Then each hash is checked against the first key that had it,
and a key that finds it taken by another goes to the next word.

Words stand in sorted levels, each more than twice as long as the one after it, so that new keys
are not sorted in among all that are there.

Keys of all streams are registered, and forgotten when no tuple has them any more. But once a
key has gone past another's word, none is forgotten: a word that became free again would give
it a second identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.arena import Flags, Words
from penstock.model.keys import KeyKind
from penstock.windows.key_words import alike

__all__ = ["Identities"]

_FEW: Final = 1 << 12
_STEP: Final = np.int64(-7046029254386353131)  # odd, so that following it comes to every word


class _Level(NamedTuple):
    """Words, sorted, and a row of key columns for each of them."""

    words: Words
    keys: list[pa.Array]

    def find(self, words: Words) -> tuple[Words, Flags]:
        """Where words are in it, and which are."""
        places = np.minimum(np.searchsorted(self.words, words), len(self.words) - 1)
        return places, self.words[places] == words


class Identities:
    """The words of registered keys; each is in one level."""

    def __init__(self, kinds: Sequence[KeyKind]) -> None:
        self._kinds = kinds
        self._levels: list[_Level] = []
        self._moved_on = False
        self._many = _FEW

    def copy(self) -> Identities:
        """Another one that has registered the same."""
        copied = Identities(self._kinds)
        copied._levels = list(self._levels)
        copied._moved_on, copied._many = self._moved_on, self._many
        return copied

    @property
    def is_crowded(self) -> bool:
        """Whether it is time to forget some."""
        return not self._moved_on and self._count > self._many

    @property
    def _count(self) -> int:
        return sum(len(level.words) for level in self._levels)

    def words(self, columns: Sequence[pa.Array], hashes: Words, present: Words) -> Words:
        """The word of each key, whose hashes are given; `present` are the rows that have one."""
        keys = [alike(column, kind) for column, kind in zip(columns, self._kinds, strict=True)]
        words: Words = hashes.copy()
        open_rows = present
        while len(open_rows):
            tried = words[open_rows]
            here = [key.take(pa.array(open_rows)) for key in keys]
            self._register(tried, here)
            open_rows = open_rows[~self._equal(tried, here)]
            words[open_rows] += _STEP
            self._moved_on |= len(open_rows) > 0
        return words

    def forget_all_but(self, words: Words) -> None:
        """Keep only the keys of these words."""
        everything = self._merged(self._levels)
        if everything is None:
            return
        kept = np.flatnonzero(np.isin(everything.words, words))
        keys = [key.take(pa.array(kept)) for key in everything.keys]
        self._levels = [_Level(everything.words[kept], keys)] if len(kept) else []
        self._many = max(_FEW, 2 * len(kept))

    def dump(self) -> dict[str, Any]:
        """Everything in it, as plain values and a record batch."""
        whole = self._merged(self._levels)
        self._levels = [] if whole is None else [whole]
        keys = None
        if whole is not None:
            names = ["word", *(str(number) for number in range(len(whole.keys)))]
            keys = pa.RecordBatch.from_arrays([pa.array(whole.words), *whole.keys], names)
        return {"keys": keys, "moved_on": self._moved_on, "many": self._many}

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Restore what was dumped for keys of the same kinds."""
        self._levels = []
        if dumped["keys"] is not None:
            words, *keys = dumped["keys"].columns
            self._levels = [_Level(words.to_numpy(), list(keys))]
        self._moved_on, self._many = dumped["moved_on"], dumped["many"]

    def _register(self, words: Words, keys: Sequence[pa.Array]) -> None:
        """Give words that are free to the first key that asks for them."""
        known = np.zeros(len(words), np.bool_)
        for level in self._levels:
            known |= level.find(words)[1]
        new, first = np.unique(words[~known], return_index=True)
        if not len(new):
            return
        rows = pa.array(np.flatnonzero(~known)[first])
        self._levels.append(_Level(new, [key.take(rows) for key in keys]))
        levels = self._levels
        while len(levels) > 1 and len(levels[-2].words) <= 2 * len(levels[-1].words):
            merged = self._merged(levels[-2:])
            assert merged is not None, "there are two"
            levels[-2:] = [merged]

    @staticmethod
    def _merged(levels: Sequence[_Level]) -> _Level | None:
        """All of these as one; None if there are none."""
        if len(levels) < 2:
            return levels[0] if levels else None
        words = np.concatenate([level.words for level in levels])
        order = np.argsort(words, kind="stable")
        keys = [
            pa.concat_arrays(parts).take(pa.array(order))
            for parts in zip(*(level.keys for level in levels), strict=True)
        ]
        return _Level(words[order], keys)

    def _equal(self, words: Words, keys: Sequence[pa.Array]) -> Flags:
        """Which keys are the ones that were registered for their words."""
        equal = np.zeros(len(words), np.bool_)
        for level in self._levels:
            places, known = level.find(words)
            rows = np.flatnonzero(known)
            if not len(rows):
                continue
            same = np.ones(len(rows), np.bool_)
            for key, registered in zip(keys, level.keys, strict=True):
                alike = pc.equal(key.take(pa.array(rows)), registered.take(pa.array(places[rows])))
                same &= alike.to_numpy(zero_copy_only=False).astype(np.bool_)
            equal[rows] = same
        return equal
