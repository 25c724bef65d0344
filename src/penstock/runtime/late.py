"""The side output of late tuples: kept until drained, the newest of them if never drained."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.state.storage import take_rows

__all__ = ["KEPT_LATE_ROWS", "LateRows"]

# A user who never asks for late rows must not run out of memory because of them.
KEPT_LATE_ROWS: Final = 100_000
_MANY_BATCHES: Final = 1_000  # an Arrow batch of one row takes 2 kB


class LateRows:
    """Late rows of one stream."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> int:
        """Keep late rows; how many older ones had to be forgotten for them."""
        self.batches.append(batch)
        self._rows += len(batch)
        forgotten = 0
        while self._rows > KEPT_LATE_ROWS:
            oldest = self.batches.pop(0)
            excess = min(self._rows - KEPT_LATE_ROWS, len(oldest))
            if excess < len(oldest):
                # Taken, not sliced: a slice would keep all of it in memory.
                self.batches.insert(0, take_rows(oldest, np.arange(excess, len(oldest))))
            self._rows -= excess
            forgotten += excess
        if len(self.batches) > _MANY_BATCHES:
            with suppress(pa.ArrowInvalid):  # dictionaries that do not fit into one
                self.batches = [pa.concat_batches(self.batches)]
        return forgotten

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(batch.nbytes for batch in self.batches)

    def table(self, schema: pa.Schema | None) -> pa.Table:
        """The late rows."""
        return pa.Table.from_batches(self.batches, schema or pa.schema([]))

    def drain(self, schema: pa.Schema | None) -> pa.Table:
        """The late rows, which are then no longer kept."""
        table = self.table(schema)
        self.batches, self._rows = [], 0
        return table
