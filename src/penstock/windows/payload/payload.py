"""The payload of a window: its columns, all addressed by the same sequence numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.kernels.arena import Words
from penstock.windows.allocator import Allocator
from penstock.windows.payload.column import PayloadColumn
from penstock.windows.payload.columns import column_for
from penstock.windows.payload.storage import as_given, kept_type

__all__ = ["Payload"]


class Payload:
    """Columns of a window, as wide as its ring."""

    def __init__(
        self, schema: pa.Schema, names: Sequence[str], size: int, memory: Allocator
    ) -> None:
        self._size = size
        self._types = {name: schema.field(name).type for name in names}
        self.columns: Mapping[str, PayloadColumn] = {
            name: column_for(kept_type(given), size - 1, memory)
            for name, given in self._types.items()
        }

        # Flat buffers are written over in place; the others must release what is gone.
        self._releasing = [each for each in self.columns.values() if each.must_release]
        self.must_release = bool(self._releasing)

    def write(self, arrays: Mapping[str, pa.Array], sequence: int) -> None:
        """Keep one row, in kept types, for each tuple from sequence number `sequence` on."""
        for name, column in self.columns.items():
            column.write(arrays[name], sequence)

    def positions(self, sequences: Words) -> Words:
        """Where in the ring the rows of these sequence numbers stand."""
        return sequences & (self._size - 1)

    def take(self, name: str, sequences: Words) -> pa.Array:
        """Rows of one column, in the type they came in."""
        kept = self.columns[name].take(sequences, self.positions(sequences))
        return as_given(kept, self._types[name])

    def take_all(self, sequences: Words) -> dict[str, pa.Array]:
        """Rows of all columns, in kept types."""
        positions = self.positions(sequences)
        return {name: each.take(sequences, positions) for name, each in self.columns.items()}

    def relocate(self, old: Words, new: Words, size: int, *, tight: bool = False) -> None:
        """Move rows to new sequence numbers, in a ring of `size`.

        tight: give back the room of rows that are gone, even if none has to be moved.
        """
        if size == self._size and not tight and np.array_equal(old, new):
            return
        self._size = size
        for column in self.columns.values():
            column.relocate(old, new, size - 1)

    def release(self, tail: int, head: int) -> None:
        """Rows before `tail` are gone; `head` comes next."""
        for column in self._releasing:
            column.release(tail, head)

    def dump(self) -> dict[str, Any]:
        """Everything in it, as plain values and the buffers themselves."""
        columns = {name: column.dump() for name, column in self.columns.items()}
        return {"size": self._size, "columns": columns}

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Restore what was dumped, on its buffers."""
        self._size = dumped["size"]
        for name, column in self.columns.items():
            column.load(dumped["columns"][name])

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(column.nbytes for column in self.columns.values())

    def check(self, live: Words) -> None:
        """Raise AssertionError unless every live row can be read."""
        for name in self.columns:
            taken = self.take(name, live)
            taken.validate(full=True)
            assert len(taken) == len(live)
