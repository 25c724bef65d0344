"""Payload of any length: text and binary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from penstock.kernels.arena import Words
from penstock.kernels.byte_copies import gather, measure
from penstock.kernels.intrinsics.block_copy import BLOCK
from penstock.windows.allocator import Allocator, zeros
from penstock.windows.payload.column import TooLong
from penstock.windows.payload.flat import Validity, put

__all__ = ["ByteStrings"]

_MAX_INT32: Final = 2**31 - 1
_LEAST_SHRUNK: Final = 1 << 22  # buffers below this are left as they are


class ByteStrings:
    """Text and binary: where each value starts and how long it is, and the bytes.

    Starts are logical: they count all bytes ever written, and `_base` of them are gone. Bytes
    are appended; when the buffer is full, what is live moves to another with as much room
    again. Each byte is so moved O(1) times on average.
    """

    must_release = True

    def __init__(self, data_type: pa.DataType, mask: int, memory: Allocator) -> None:
        self.type = data_type
        self._memory = memory
        self._large = pt.is_large_string(data_type) or pt.is_large_binary(data_type)
        self._offset = np.int64 if self._large else np.int32
        self._spans = zeros(memory, (mask + 1, 2), np.int64)
        self._data = memory.allocate(_room_for(0))
        self._base = 0  # logical start of the buffer
        self._first = 0  # logical start of what is live
        self._end = 0  # logical end of what is written
        self._validity = Validity(memory)

    def write(self, array: pa.Array, sequence: int) -> None:
        _, offsets_buffer, data = array.buffers()
        offsets = np.frombuffer(
            offsets_buffer, self._offset, len(array) + 1, array.offset * self._offset().itemsize
        )
        begin, length = int(offsets[0]), int(offsets[-1] - offsets[0])
        self._reserve(length)
        if length:
            at = self._end - self._base
            self._data[at : at + length] = np.frombuffer(data, np.uint8, length, begin)
        spans = np.empty((len(array), 2), np.int64)
        spans[:, 0] = offsets[:-1]  # to 64 bits first: starts count all bytes ever written
        spans[:, 0] += self._end - begin
        spans[:, 1] = np.diff(offsets)
        start = sequence & (len(self._spans) - 1)
        put(self._spans, start, spans)
        self._end += length
        self._validity.write(array, start, len(self._spans))

    def _reserve(self, length: int) -> None:
        if self._end - self._base + length + BLOCK > len(self._data):
            self._move(_room_for(self._end - self._first + length))

    def _move(self, size: int) -> None:
        live = self._data[self._first - self._base : self._end - self._base]
        data = self._memory.allocate(size)
        data[: len(live)] = live
        self._data, self._base = data, self._first

    def take(self, sequences: Words, positions: Words) -> pa.Array:
        offsets = np.empty(len(positions) + 1, self._offset)
        total = measure(self._spans, positions, offsets)
        if not self._large and total > _MAX_INT32:
            raise TooLong
        data = np.empty(total + BLOCK, np.uint8)
        gather(self._spans, self._data, self._base, positions, offsets, data)
        buffers = [
            self._validity.take(positions),
            pa.py_buffer(offsets),
            pa.py_buffer(data).slice(0, total),
        ]
        return pa.Array.from_buffers(self.type, len(positions), buffers)

    def relocate(self, old: Words, new: Words, mask: int) -> None:
        # The bytes move along, or those of rows that were swept out would stay for ever.
        positions = old & (len(self._spans) - 1)
        offsets = np.empty(len(old) + 1, np.int64)
        total = measure(self._spans, positions, offsets)
        data = self._memory.allocate(_room_for(total))
        gather(self._spans, self._data, self._base, positions, offsets, data)
        spans = zeros(self._memory, (mask + 1, 2), np.int64)
        spans[new & mask, 0] = offsets[:-1]
        spans[new & mask, 1] = np.diff(offsets)
        self._spans, self._data = spans, data
        self._base, self._first, self._end = 0, 0, total
        self._validity.relocate(old, new, mask + 1)

    def release(self, tail: int, head: int) -> None:
        # Bytes stand in order of arrival, so all before those of the oldest row are free.
        last = self._spans[tail & (len(self._spans) - 1), 0] if tail < head else self._end
        self._first = int(last)
        live = self._end - self._first
        if len(self._data) > _LEAST_SHRUNK and _room_for(live) * 4 < len(self._data):
            self._move(_room_for(live))

    def dump(self) -> dict[str, Any]:
        scalars = {"base": self._base, "first": self._first, "end": self._end}
        return {
            "spans": self._spans, "data": self._data, "valid": self._validity.valid, **scalars
        }  # fmt: skip

    def load(self, dumped: Mapping[str, Any]) -> None:
        self._spans, self._data = dumped["spans"], dumped["data"]
        self._validity.valid = dumped["valid"]
        self._base, self._first, self._end = dumped["base"], dumped["first"], dumped["end"]

    @property
    def nbytes(self) -> int:
        return int(self._spans.nbytes + self._data.nbytes) + self._validity.nbytes


def _room_for(length: int) -> int:
    """The size of a buffer for twice `length` bytes, and for the block that is read too much."""
    return 2 * length + 1024 + BLOCK
