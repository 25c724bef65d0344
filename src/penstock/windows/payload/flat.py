"""Flat buffers addressed by ring position, and which positions of them are null."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.kernels.arena import Words
from penstock.windows.allocator import Allocator

__all__ = ["Validity", "moved", "packed", "put", "unpacked"]


def unpacked(buffer: pa.Buffer | None, offset: int, length: int) -> npt.NDArray[np.uint8]:
    if buffer is None:
        return np.ones(length, np.uint8)
    packed = np.frombuffer(buffer, np.uint8)
    first = offset // 8
    bits = np.unpackbits(
        packed[first : (offset + length + 7) // 8], count=offset % 8 + length, bitorder="little"
    )
    return bits[offset % 8 :]


def packed(bits: npt.NDArray[np.uint8]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(bits, bitorder="little"))


def put(target: npt.NDArray[Any], start: int, values: npt.NDArray[Any]) -> None:
    """Copy into a ring from position `start`, around its end if need be."""
    room = len(target) - start
    if len(values) <= room:
        target[start : start + len(values)] = values
    else:
        target[start:] = values[:room]
        target[: len(values) - room] = values[room:]


class Validity:
    """Which positions are null; nothing is kept until the first null comes."""

    def __init__(self, memory: Allocator) -> None:
        self._memory = memory
        self.valid: npt.NDArray[np.uint8] | None = None

    def write(self, array: pa.Array, start: int, size: int) -> None:
        if array.null_count:
            if self.valid is None:
                self.valid = self._memory.allocate(size)
                self.valid[:] = 1
            put(self.valid, start, unpacked(array.buffers()[0], array.offset, len(array)))
        elif self.valid is not None:
            put(self.valid, start, np.ones(len(array), np.uint8))

    def take(self, positions: Words) -> pa.Buffer | None:
        return None if self.valid is None else packed(self.valid.take(positions))

    def relocate(self, old: Words, new: Words, size: int) -> None:
        if self.valid is not None:
            target = self.valid if size == len(self.valid) else self._memory.allocate(size)
            self.valid = moved(self.valid, old, new, target)

    @property
    def nbytes(self) -> int:
        return 0 if self.valid is None else self.valid.nbytes


def moved(
    values: npt.NDArray[Any], old: Words, new: Words, target: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Copy ring entries of old sequence numbers to new ones in another ring, and return it."""
    target[new & (len(target) - 1)] = values[old & (len(values) - 1)]
    return target
