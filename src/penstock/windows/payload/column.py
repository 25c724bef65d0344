"""What every payload column of a window can do.

`write` puts the rows of an Arrow array at consecutive sequence numbers; `take` builds an Arrow
array from any rows; `relocate` moves rows to new numbers and a new size; `release` may free
what is before the tail. A plain list of Arrow chunks would not do: taking one row out of
hundreds of chunks costs milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from penstock.kernels.arena import Words

__all__ = ["PayloadColumn", "TooLong"]


class TooLong(Exception):
    """The rows do not fit in one Arrow array of the type: take fewer.

    The bytes of text exceed 32-bit offsets, or the values of a dictionary its index type.
    """


class PayloadColumn(Protocol):
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
        """Restore what was dumped, on its buffers."""

    @property
    def nbytes(self) -> int:
        """Memory held."""
