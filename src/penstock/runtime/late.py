"""The side output of late tuples: kept until drained, the newest of them if never drained."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

__all__ = ["KEPT_LATE_ROWS", "LateRows"]

# A user who never asks for late rows must not run out of memory because of them.
KEPT_LATE_ROWS: Final = 100_000


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
            excess = min(self._rows - KEPT_LATE_ROWS, len(self.batches[0]))
            self.batches[0] = self.batches[0][excess:]
            if not len(self.batches[0]):
                del self.batches[0]
            self._rows -= excess
            forgotten += excess
        return forgotten

    def table(self, schema: pa.Schema | None) -> pa.Table:
        """The late rows."""
        return pa.Table.from_batches(self.batches, schema or pa.schema([]))

    def drain(self, schema: pa.Schema | None) -> pa.Table:
        """The late rows, which are then no longer kept."""
        table = self.table(schema)
        self.batches, self._rows = [], 0
        return table
