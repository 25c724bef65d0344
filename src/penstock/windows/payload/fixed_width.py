"""Payload of one width: numbers, times, decimals, booleans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from penstock.kernels.arena import Words
from penstock.windows.allocator import Allocator, zeros
from penstock.windows.payload.flat import Validity, moved, packed, put, unpacked

__all__ = ["FixedWidth"]


class FixedWidth:
    """A flat buffer of values of one width; booleans take a byte each."""

    must_release = False

    def __init__(self, data_type: pa.DataType, mask: int, memory: Allocator) -> None:
        self.type = data_type
        self._memory = memory
        self._boolean = pt.is_boolean(data_type)
        width = 1 if self._boolean else data_type.bit_width // 8
        # Values are moved, never looked at: any type of the right width will do.
        self._dtype = np.dtype(f"u{width}") if width in (1, 2, 4, 8) else np.dtype(f"V{width}")
        self._values = zeros(memory, (mask + 1,), self._dtype)
        self._validity = Validity(memory)

    def write(self, array: pa.Array, sequence: int) -> None:
        start = sequence & (len(self._values) - 1)
        buffer = array.buffers()[1]
        if self._boolean:
            values: npt.NDArray[Any] = unpacked(buffer, array.offset, len(array))
        else:
            skip = array.offset * self._dtype.itemsize
            values = np.frombuffer(buffer, self._dtype, len(array), skip)
        put(self._values, start, values)
        self._validity.write(array, start, len(self._values))

    def take(self, sequences: Words, positions: Words) -> pa.Array:
        taken = self._values.take(positions)
        data = packed(taken) if self._boolean else pa.py_buffer(taken)
        return pa.Array.from_buffers(
            self.type, len(positions), [self._validity.take(positions), data]
        )

    def relocate(self, old: Words, new: Words, mask: int) -> None:
        target = self._values  # in place, in a ring of the same size
        if mask + 1 != len(target):
            target = zeros(self._memory, (mask + 1,), self._dtype)
        self._values = moved(self._values, old, new, target)
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
