"""Payload of every other type: nested ones and what else Arrow has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from penstock.kernels.arena import Words
from penstock.windows.allocator import Allocator
from penstock.windows.payload.column import TooLong
from penstock.windows.payload.storage import empty_array

__all__ = ["ArrowRuns"]


class ArrowRuns:
    """Arrow arrays of consecutive rows. Neighbours of like size are merged, so there are
    O(log rows) of them, and each row is copied O(log rows) times."""

    must_release = True

    def __init__(self, data_type: pa.DataType, memory: Allocator) -> None:
        self.type = data_type
        self._memory = memory
        self._starts: list[int] = []
        self._arrays: list[pa.Array] = []
        self._tail = 0

    def write(self, array: pa.Array, sequence: int) -> None:
        # Copied: a slice would keep the caller's whole table, and see what he writes to it.
        self._starts.append(sequence)
        self._arrays.append(array.take(pa.array(np.arange(len(array)))))
        while len(self._arrays) > 1 and 2 * len(self._arrays[-1]) >= len(self._arrays[-2]):
            gone = min(max(self._tail - self._starts[-2], 0), len(self._arrays[-2]))
            try:
                merged = pa.concat_arrays([self._arrays[-2][gone:], self._arrays[-1]])
            except pa.ArrowInvalid:
                # Dictionaries that have too many values together, or too many bytes.
                break
            self._arrays[-2:], self._starts[-2:] = [merged], [self._starts[-2] + gone]

    def take(self, sequences: Words, positions: Words) -> pa.Array:
        segment = np.searchsorted(self._starts, sequences, side="right") - 1
        pieces, order = [], []
        for number in np.unique(segment):
            rows = np.flatnonzero(segment == number)
            local = pa.array(sequences[rows] - self._starts[number])
            pieces.append(self._arrays[number].take(local))
            order.append(rows)
        if not pieces:
            return empty_array(self.type)
        taken = pieces[0]
        if len(pieces) > 1:
            # Row i of the result stands at `back[i]` among the pieces.
            back = np.empty(len(sequences), np.int64)
            back[np.concatenate(order)] = np.arange(len(sequences))
            try:
                taken = pa.concat_arrays(pieces).take(pa.array(back))
            except pa.ArrowInvalid as error:
                raise TooLong from error
        return taken

    def relocate(self, old: Words, new: Words, mask: int) -> None:
        if len(old) == sum(map(len, self._arrays)) and np.array_equal(old, new):
            return
        arrays, starts, done = [], [], 0
        for start, array in zip(self._starts, self._arrays, strict=True):
            rows = old[(old >= start) & (old < start + len(array))] - start
            if len(rows):
                arrays.append(array.take(pa.array(rows)))
                starts.append(int(new[done]))
                done += len(rows)
        self._arrays, self._starts = arrays, starts

    def release(self, tail: int, head: int) -> None:
        self._tail = tail
        while self._arrays and self._starts[0] + len(self._arrays[0]) <= tail:
            del self._arrays[0], self._starts[0]
        if self._arrays and 2 * (tail - self._starts[0]) > len(self._arrays[0]):
            gone = tail - self._starts[0]
            # A slice would keep all of it in memory; taking copies.
            rest = pa.array(np.arange(gone, len(self._arrays[0])))
            self._arrays[0], self._starts[0] = self._arrays[0].take(rest), tail

    def dump(self) -> dict[str, Any]:
        sink = pa.BufferOutputStream()
        schema = pa.schema([("", self.type)])
        with pa.ipc.new_stream(sink, schema) as writer:
            for array in self._arrays:
                writer.write_batch(pa.RecordBatch.from_arrays([array], schema=schema))
        written = np.frombuffer(sink.getvalue(), np.uint8)
        arrays = self._memory.allocate(len(written))
        arrays[:] = written
        return {"starts": self._starts, "arrays": arrays, "tail": self._tail}

    def load(self, dumped: Mapping[str, Any]) -> None:
        self._starts, self._tail = list(dumped["starts"]), dumped["tail"]
        stream = pa.ipc.open_stream(pa.py_buffer(dumped["arrays"]))
        self._arrays = [batch.column(0) for batch in stream]

    @property
    def nbytes(self) -> int:
        return sum(array.get_total_buffer_size() for array in self._arrays)
