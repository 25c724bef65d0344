"""Identities: 64-bit words for keys that are longer, of which no two keys share one.

Candidates are found by a hash and verified by value, so equal hashes of different keys cost
time, not truth. Where tuples are counted by key that is too late: a window of so many rows per
key must know at once which key a tuple has. There each hash is checked against the first key
that had it, and a key that finds it taken by another goes to the next word.

Keys of all streams are registered, and forgotten when no tuple has them any more. But once a
key has gone past another's word, none is forgotten: a word that became free again would give
it a second identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.model.keys import KeyKind
from penstock.state.arena import Flags, Words
from penstock.state.keys import as_kind

__all__ = ["Identities"]

_FEW: Final = 1 << 12
_STEP: Final = np.int64(-7046029254386353131)  # odd, so that following it comes to every word


class Identities:
    """The words of registered keys, sorted, and a row of key columns for each of them."""

    def __init__(self, kinds: Sequence[KeyKind]) -> None:
        self._kinds = kinds
        self._words: Words = np.empty(0, np.int64)
        self._keys: list[pa.Array] = []
        self._moved_on = False
        self._many = _FEW

    @property
    def is_crowded(self) -> bool:
        """Whether it is time to forget some."""
        return not self._moved_on and len(self._words) > self._many

    def words(self, columns: Sequence[pa.Array], hashes: Words, present: Words) -> Words:
        """The word of each key, whose hashes are given; `present` are the rows that have one."""
        keys = [
            _without_zone(as_kind(column, kind))
            for column, kind in zip(columns, self._kinds, strict=True)
        ]
        words: Words = hashes.copy()
        open_rows = present
        while len(open_rows):
            tried = words[open_rows]
            here = [key.take(pa.array(open_rows)) for key in keys]
            self._register(tried, here)
            places, _ = self._find(tried)
            open_rows = open_rows[~self._equal(here, places)]
            words[open_rows] += _STEP
            self._moved_on |= len(open_rows) > 0
        return words

    def forget_all_but(self, words: Words) -> None:
        """Keep only the keys of these words."""
        kept = np.flatnonzero(np.isin(self._words, words))
        self._words = self._words[kept]
        self._keys = [key.take(pa.array(kept)) for key in self._keys]
        self._many = max(_FEW, 2 * len(kept))

    def dump(self) -> dict[str, Any]:
        """Everything in it, as plain values and a record batch."""
        names = [str(number) for number in range(len(self._keys))]
        keys = pa.RecordBatch.from_arrays([pa.array(self._words), *self._keys], ["word", *names])
        return {"keys": keys, "moved_on": self._moved_on, "many": self._many}

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Be what was dumped for keys of the same kinds."""
        words, *keys = dumped["keys"].columns
        self._keys = [_without_zone(key) for key in keys]
        self._words = words.to_numpy()
        self._moved_on, self._many = dumped["moved_on"], dumped["many"]

    def _find(self, words: Words) -> tuple[Words, Flags]:
        """Where words are among the registered, and which are."""
        places = np.searchsorted(self._words, words)
        inside = np.minimum(places, max(len(self._words) - 1, 0))
        known = self._words[inside] == words if len(self._words) else np.zeros(len(words), np.bool_)
        return inside, known

    def _register(self, words: Words, keys: Sequence[pa.Array]) -> None:
        """Give words that are free to the first key that asks for them."""
        _, known = self._find(words)
        new, first = np.unique(words[~known], return_index=True)
        if not len(new):
            return
        rows = pa.array(np.flatnonzero(~known)[first])
        order = np.argsort(np.concatenate([self._words, new]), kind="stable")
        self._words = np.concatenate([self._words, new])[order]
        added = [key.take(rows) for key in keys]
        if self._keys:
            added = [
                pa.concat_arrays([old, key]) for old, key in zip(self._keys, added, strict=True)
            ]
        self._keys = [key.take(pa.array(order)) for key in added]

    def _equal(self, keys: Sequence[pa.Array], places: Words) -> Flags:
        equal = np.ones(len(places), np.bool_)
        for key, registered in zip(keys, self._keys, strict=True):
            same = pc.equal(key, registered.take(pa.array(places)))
            equal &= same.to_numpy(zero_copy_only=False).astype(np.bool_)
        return equal


def _without_zone(key: pa.Array) -> pa.Array:
    """Instants of streams whose zones differ must stand in one column: as their integers."""
    return key.view(pa.int64()) if pt.is_timestamp(key.type) else key
