"""Where buffers come from. Rings, indexes and flat columns ask here for every byte they hold.

So windows can live in files that other processes map, without knowing it.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["CACHE_LINE", "Allocator", "Bytes", "Heap", "zeros"]

CACHE_LINE: Final = 64

Bytes = npt.NDArray[np.uint8]


class Allocator(Protocol):
    """A source of buffers."""

    def allocate(self, size: int) -> Bytes:
        """Return `size` zeroed bytes that start on a cache line."""


class Heap:
    """The memory of this process."""

    def allocate(self, size: int) -> Bytes:
        raw = np.zeros(size + CACHE_LINE, np.uint8)
        skip = -raw.ctypes.data % CACHE_LINE
        return raw[skip : skip + size]


def zeros(memory: Allocator, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A zeroed array in some memory."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape))
    return memory.allocate(count * kind.itemsize).view(kind).reshape(shape)
