"""What windows take of memory, or would take: for a budget in bytes, which plans ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.errors import StateError
from penstock.kernels.arena import RECORD
from penstock.kernels.index import directory
from penstock.windows.allocator import Heap
from penstock.windows.payload.payload import Payload

if TYPE_CHECKING:
    from penstock.windows.windows import Windows

__all__ = ["SMALLEST_RING", "Footprint", "ring_size"]

SMALLEST_RING: Final = 64
_LARGEST_RING: Final = 1 << 30  # positions are 31 bits wide
_WORD: Final = 8
_UNIT_RING: Final = 1 << 12  # the ring by which the bytes of one place are measured


def ring_size(rows: int) -> int:
    """The positions of a ring for this many tuples."""
    if rows > _LARGEST_RING:
        raise StateError(
            f"a window can hold {_LARGEST_RING:,} tuples, and {rows:,} are needed; "
            "shorten the window, or spread the join over more partitions"
        )
    return 1 << max(rows - 1, SMALLEST_RING - 1).bit_length()


class Footprint:
    """Of all windows of one join."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows

    @property
    def least_bytes(self) -> int:
        """What rings and indexes take when nothing is in them any more."""
        smallest = self.directory_size(0)
        directories = [smallest if each else 0 for each in self._windows.paths.hashed]
        return self._end(directories, [SMALLEST_RING] * self._windows.count)

    def least_payload(self, schema: pa.Schema, names: Sequence[str]) -> int:
        """What columns take without a row; any of them may come to have nulls."""
        empty = Payload(schema, names, SMALLEST_RING, Heap())
        return empty.nbytes + SMALLEST_RING * len(names)

    @property
    def bytes_per_row(self) -> int:
        """About what a tuple takes, of the stream whose tuples take most."""
        return max(self.row_bytes(number) for number in range(self._windows.count))

    def row_bytes(self, number: int) -> int:
        """About what a tuple of a window takes."""
        windows = self._windows
        records = int(windows.state.windows["words"][number]) * RECORD.itemsize
        payload = windows.payloads[number]
        columns = 0 if payload is None else payload.nbytes // windows.size(number)
        return records + 2 * self.entry_bytes + columns

    @property
    def entry_bytes(self) -> int:
        """What an entry of a directory takes."""
        return _WORD * int(directory.entry_words(self._windows.count))

    @property
    def fixed_bytes(self) -> int:
        """What takes no more room when there are more tuples."""
        count = self._windows.count
        slots = sum(self.slot_bytes(each) for each in range(count))
        return self._end(self._no_directories(), [_UNIT_RING] * count) - _UNIT_RING * slots

    def slot_bytes(self, number: int) -> int:
        """What a place in a window's ring takes in the arena."""
        sizes = [_UNIT_RING] * self._windows.count
        before = self._end(self._no_directories(), sizes)
        sizes[number] *= 2
        return -(-(self._end(self._no_directories(), sizes) - before) // _UNIT_RING)

    @property
    def live_keys(self) -> dict[int, int]:
        """How many keys of each directory have a tuple or a ghost."""
        return {
            number: int(directory.live_keys(self._windows.state, number))
            for number, is_hashed in enumerate(self._windows.paths.hashed)
            if is_hashed
        }

    def directory_size(self, live: int) -> int:
        """The entries of a directory that is made for this many live keys."""
        windows = self._windows
        return directory.directory_size(windows.keys_for(live), tight=windows.is_tight)

    def _no_directories(self) -> list[int]:
        return [0] * len(self._windows.paths.hashed)

    def _end(self, directories: Sequence[int], rings: Sequence[int]) -> int:
        return self._windows.layout.places(directories, rings).end
