"""The live tuples of closed keys."""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.engine.promises.closed_keys import ClosedKeys
from penstock.kernels.arena import Words
from penstock.kernels.index.indexes import SCAN
from penstock.kernels.jit import EntryPoint
from penstock.kernels.punctuation.key_rows import FREE, index_rows
from penstock.kernels.punctuation.live_keys import live_by_index, live_by_scan
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.windows.windows import Windows

__all__ = ["LiveTuples"]

_NONE: Final = np.empty(0, np.int64)
_ROOM: Final = 1 << 8  # for the tuples of few keys, which may be many


class LiveTuples:
    """Those in the windows of a join."""

    def __init__(self, windows: Windows, keys: ClosedKeys) -> None:
        self._windows = windows
        self._keys = keys
        self._by_index = EntryPoint(live_by_index)

    def of(self, binding: Binding, number: int, rows: Words) -> tuple[Words, Words]:
        """The live tuples of keys in a window, and for each which of the rows its key has."""
        live = self._windows.live(number)
        if not live or not len(rows):
            return _NONE, _NONE
        words = self._keys.words(rows)
        out = np.empty((2, min(live, _ROOM + 2 * len(rows))), np.int64)
        count = self._written(number, words, out)
        if count > out.shape[1]:
            out = np.empty((2, count), np.int64)
            self._written(number, words, out)
        return self._of_these(binding, number, rows, out[:, :count])

    def _written(self, number: int, words: Words, out: Words) -> int:
        """How many live tuples there are; as many as fit are written."""
        state = self._windows.state
        if self._windows.kind(number) != SCAN or len(words) == 1:
            return int(self._by_index(state, number, words, out))
        places = np.full(2 * len(words), FREE, np.int32)
        index_rows(places, words, len(words))
        return int(live_by_scan(state, number, places, words, out))

    def _of_these(
        self, binding: Binding, number: int, rows: Words, found: Words
    ) -> tuple[Words, Words]:
        """Without those of other keys that share a word with one of these."""
        sequences, whose = found
        payload = self._windows.payloads[number]
        if binding.exact or payload is None or not len(sequences):
            return sequences, whose  # a ghost that is taken for another does no harm
        names = binding.query.keys[number % self._windows.streams]
        columns = [payload.take(name, sequences) for name in names]
        words = self._keys.words(rows[whose])
        found_rows = self._keys.find(words, columns, binding.key_kinds)
        same = found_rows == rows[whose]
        return sequences[same], whose[same]

    def last_end(self, binding: Binding, stream: int, rows: Words) -> Words:
        """When the last live tuple of each key ends; long ago if there is none. Ghosts count: what
        they would have met is lost, and must be seen to be."""
        last = np.full(len(rows), BEGINNING)
        numbers = [stream]
        if self._windows.has_ghosts:
            numbers.append(stream + self._windows.streams)
        for number in numbers:
            sequences, whose = self.of(binding, number, rows)
            if not len(sequences):
                continue
            ts = self._windows.timestamps(number, sequences)
            np.maximum.at(last, whose, self._windows.ends(number, ts))
        return last
