"""The live tuples of closed keys."""

from __future__ import annotations

import numpy as np

from penstock.engine.promises.closed_keys import ClosedKeys
from penstock.kernels.arena import Words
from penstock.kernels.index.indexes import SCAN
from penstock.kernels.punctuation.key_rows import FREE, add_rows
from penstock.kernels.punctuation.live_keys import live_by_index, live_by_scan
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.windows.windows import Windows

__all__ = ["LiveTuples"]


class LiveTuples:
    """Those in the windows of a join."""

    def __init__(self, windows: Windows, keys: ClosedKeys) -> None:
        self._windows = windows
        self._keys = keys

    def of(self, binding: Binding, number: int, rows: Words) -> tuple[Words, Words]:
        """The live tuples of keys in a window, and for each which of the rows its key has."""
        windows = self._windows
        words = self._keys.words(rows)
        out = np.empty((2, windows.live(number)), np.int64)
        state = windows.state
        if not out.shape[1] or not len(words):
            return out[0, :0], out[1, :0]
        kind = int(state.paths["kind"][int(state.windows["paths"][number])])
        if kind == SCAN and len(words) > 1:
            places, keys = np.full(2 * len(words) + 1, FREE, np.int32), np.empty_like(words)
            add_rows(places, keys, 0, words, np.empty(len(words), np.int64))
            count = live_by_scan(state, number, places, keys, out[0], out[1])
        else:
            count = live_by_index(state, number, words, out[0], out[1])
        return self._of_these(binding, number, rows, out[:, :count])

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
        same = self._keys.find(words, columns, binding.key_kinds) == rows[whose]
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
            ts = self._windows.timestamps(number, sequences)
            np.maximum.at(last, whose, self._windows.ends(number, ts))
        return last
