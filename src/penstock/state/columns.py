"""Payload columns of a window, addressed by ring position (or sequence number).

    FixedWidth   numbers, times, decimals, booleans: a flat buffer
    Bytes        text and binary: [start, length] per position, the bytes in an arena
    Segments     nested and everything else: Arrow arrays, few and large

All have the same verbs. `write` puts the rows of an Arrow array at consecutive sequence
numbers; `take` builds an Arrow array from any rows; `relocate` moves rows to new numbers
and a new size; `release` may free what is before the tail. A plain list of Arrow chunks
would not do: taking one row out of hundreds of chunks costs milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc
import pyarrow.types as pt

from penstock.state.arena import Words
from penstock.state.block_copy import BLOCK, copy_block
from penstock.state.jit import kernel
from penstock.state.memory import Memory, zeros
from penstock.state.storage import empty_array

__all__ = ["Bytes", "Column", "FixedWidth", "Segments", "TooLong", "column_for"]

_MAX_INT32: Final = 2**31 - 1
_LEAST_SHRUNK: Final = 1 << 22  # buffers below this are left as they are


class TooLong(Exception):
    """So many rows do not fit in one Arrow array of the type: take fewer.

    The bytes of text exceed 32-bit offsets, or the values of a dictionary its index type.
    """


class Column(Protocol):
    """One payload column of a window. must_release: whether `release` does anything."""

    must_release: bool

    def write(self, array: pa.Array, sequence: int) -> None:
        """Keep the rows of `array` from sequence number `sequence` on."""

    def take(self, sequences: Words, positions: Words) -> pa.Array:
        """The rows at these sequence numbers, which stand at these ring positions."""

    def relocate(self, old: Words, new: Words, mask: int) -> None:
        """Move rows from old to new sequence numbers, in a ring of `mask` + 1."""

    def release(self, tail: int, head: int) -> None:
        """Rows before `tail` are gone; `head` comes next."""

    def dump(self) -> dict[str, Any]:
        """Everything in it, as plain values and the buffers themselves."""

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Be what was dumped, on its buffers."""

    @property
    def nbytes(self) -> int:
        """Memory held."""


def column_for(data_type: pa.DataType, mask: int, memory: Memory) -> Column:
    """The way to keep a type."""
    if pt.is_boolean(data_type) or _fixed_width(data_type):
        return FixedWidth(data_type, mask, memory)
    if any(test(data_type) for test in _BYTES):
        return Bytes(data_type, mask, memory)
    return Segments(data_type, memory)


_BYTES: Final = (pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary)


def _fixed_width(data_type: pa.DataType) -> bool:
    if not (pt.is_primitive(data_type) or pt.is_decimal(data_type)):
        return pt.is_fixed_size_binary(data_type) and data_type.byte_width > 0
    return bool(data_type.bit_width % 8 == 0)


def _bits(buffer: pa.Buffer | None, offset: int, length: int) -> npt.NDArray[np.uint8]:
    if buffer is None:
        return np.ones(length, np.uint8)
    packed = np.frombuffer(buffer, np.uint8)
    first = offset // 8
    bits = np.unpackbits(
        packed[first : (offset + length + 7) // 8], count=offset % 8 + length, bitorder="little"
    )
    return bits[offset % 8 :]


def _packed(bits: npt.NDArray[np.uint8]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(bits, bitorder="little"))


def _put(target: npt.NDArray[Any], start: int, values: npt.NDArray[Any]) -> None:
    """Copy into a ring from position `start`, around its end if need be."""
    room = len(target) - start
    if len(values) <= room:
        target[start : start + len(values)] = values
    else:
        target[start:] = values[:room]
        target[: len(values) - room] = values[room:]


class _Validity:
    """Which positions are null; nothing is kept until the first null comes."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.valid: npt.NDArray[np.uint8] | None = None

    def write(self, array: pa.Array, start: int, size: int) -> None:
        if array.null_count:
            if self.valid is None:
                self.valid = self._memory.allocate(size)
                self.valid[:] = 1
            _put(self.valid, start, _bits(array.buffers()[0], array.offset, len(array)))
        elif self.valid is not None:
            _put(self.valid, start, np.ones(len(array), np.uint8))

    def take(self, positions: Words) -> pa.Buffer | None:
        return None if self.valid is None else _packed(self.valid.take(positions))

    def relocate(self, old: Words, new: Words, size: int) -> None:
        if self.valid is not None:
            self.valid = _moved(self.valid, old, new, self._memory.allocate(size))

    @property
    def nbytes(self) -> int:
        return 0 if self.valid is None else self.valid.nbytes


def _moved(
    values: npt.NDArray[Any], old: Words, new: Words, target: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Copy ring entries of old sequence numbers to new ones in another ring, and return it."""
    target[new & (len(target) - 1)] = values[old & (len(values) - 1)]
    return target


class FixedWidth:
    """A flat buffer of values of one width; booleans take a byte each."""

    must_release = False

    def __init__(self, data_type: pa.DataType, mask: int, memory: Memory) -> None:
        self.type = data_type
        self._memory = memory
        self._boolean = pt.is_boolean(data_type)
        width = 1 if self._boolean else data_type.bit_width // 8
        # Values are moved, never looked at: any type of the right width will do.
        self._dtype = np.dtype(f"u{width}") if width in (1, 2, 4, 8) else np.dtype(f"V{width}")
        self._values = zeros(memory, (mask + 1,), self._dtype)
        self._validity = _Validity(memory)

    def write(self, array: pa.Array, sequence: int) -> None:
        start = sequence & (len(self._values) - 1)
        buffer = array.buffers()[1]
        if self._boolean:
            values: npt.NDArray[Any] = _bits(buffer, array.offset, len(array))
        else:
            skip = array.offset * self._dtype.itemsize
            values = np.frombuffer(buffer, self._dtype, len(array), skip)
        _put(self._values, start, values)
        self._validity.write(array, start, len(self._values))

    def take(self, sequences: Words, positions: Words) -> pa.Array:
        taken = self._values.take(positions)
        data = _packed(taken) if self._boolean else pa.py_buffer(taken)
        return pa.Array.from_buffers(
            self.type, len(positions), [self._validity.take(positions), data]
        )

    def relocate(self, old: Words, new: Words, mask: int) -> None:
        target = zeros(self._memory, (mask + 1,), self._dtype)
        self._values = _moved(self._values, old, new, target)
        self._validity.relocate(old, new, mask + 1)

    def release(self, tail: int, head: int) -> None:
        pass

    def dump(self) -> dict[str, Any]:
        return {"values": self._values, "valid": self._validity.valid}

    def load(self, dumped: Mapping[str, Any]) -> None:
        self._values, self._validity.valid = dumped["values"], dumped["valid"]

    @property
    def nbytes(self) -> int:
        return int(self._values.nbytes) + self._validity.nbytes


class Bytes:
    """Text and binary: where each value starts and how long it is, and the bytes.

    Starts are logical: they count all bytes ever written, and `_base` of them are gone. Bytes
    are appended; when the buffer is full, what is live moves to another with as much room
    again. Each byte is so moved O(1) times on average.
    """

    must_release = True

    def __init__(self, data_type: pa.DataType, mask: int, memory: Memory) -> None:
        self.type = data_type
        self._memory = memory
        self._large = pt.is_large_string(data_type) or pt.is_large_binary(data_type)
        self._offset = np.int64 if self._large else np.int32
        self._spans = zeros(memory, (mask + 1, 2), np.int64)
        self._data = memory.allocate(_room_for(0))
        self._base = 0  # logical start of the buffer
        self._first = 0  # logical start of what is live
        self._end = 0  # logical end of what is written
        self._validity = _Validity(memory)

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
        _put(self._spans, start, spans)
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
        total = _measure(self._spans, positions, offsets)
        if not self._large and total > _MAX_INT32:
            raise TooLong
        data = np.empty(total + BLOCK, np.uint8)
        _gather(self._spans, self._data, self._base, positions, offsets, data)
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
        total = _measure(self._spans, positions, offsets)
        data = self._memory.allocate(_room_for(total))
        _gather(self._spans, self._data, self._base, positions, offsets, data)
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
    """A buffer for so many bytes and as many again, and the block that is read too much."""
    return 2 * length + 1024 + BLOCK


@kernel
def _measure(spans: Words, positions: Words, offsets: Any) -> int:
    total = 0
    offsets[0] = 0
    for each in range(len(positions)):
        total += spans[positions[each], 1]
        offsets[each + 1] = total
    return total


@kernel
def _gather(
    spans: Words, source: Any, base: int, positions: Words, offsets: Any, target: Any
) -> None:
    for each in range(len(positions)):
        start = spans[positions[each], 0] - base
        to = offsets[each]
        for done in range(0, spans[positions[each], 1], BLOCK):
            copy_block(target, to + done, source, start + done)


class Segments:
    """Arrow arrays of consecutive rows. Neighbours of like size are merged, so there are
    O(log rows) of them, and each row is copied O(log rows) times."""

    must_release = True

    def __init__(self, data_type: pa.DataType, memory: Memory) -> None:
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
        if len(old) == 0 or np.array_equal(old, new):
            return
        arrays, starts, done = [], [], 0
        for start, array in zip(self._starts, self._arrays, strict=True):
            rows = old[(old >= start) & (old < start + len(array))] - start
            arrays.append(array.take(pa.array(rows)))
            starts.append(int(new[0]) + done)
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
