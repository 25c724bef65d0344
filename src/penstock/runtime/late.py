"""The side output of late tuples: kept until drained, the newest of them if never drained.

Under a limit in bytes they are a part of what is held, and are kept within a part of the limit.
"""

from __future__ import annotations

from contextlib import suppress
from math import ceil
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.windows.payload.storage import take_rows

__all__ = ["KEPT_LATE_ROWS", "LateRows"]

# A user who never asks for late rows must not run out of memory because of them.
KEPT_LATE_ROWS: Final = 100_000
_MANY_BATCHES: Final = 1_000
_FEW_BATCHES: Final = 16  # under a limit in bytes
_BATCH_BYTES: Final = 2_000  # of an Arrow batch, beside its rows


class LateRows:
    """Late rows of one stream."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch, most_bytes: int | None = None) -> int:
        """Keep late rows; return how many rows had to be forgotten for it."""
        self.batches.append(batch)
        self._rows += len(batch)
        if len(self.batches) > (_MANY_BATCHES if most_bytes is None else _FEW_BATCHES):
            with suppress(pa.ArrowInvalid):  # dictionaries that do not fit into one
                self.batches = [pa.concat_batches(self.batches)]
        return self.fit(most_bytes)

    def fit(self, most_bytes: int | None) -> int:
        """Hold no more than `most_bytes`, None for any, and KEPT_LATE_ROWS: forget the oldest
        rows, and return how many."""
        forgotten = 0
        while self.batches and (excess := self._excess(most_bytes)):
            oldest = self.batches.pop(0)
            excess = min(excess, len(oldest))
            if excess < len(oldest):
                # Taken, not sliced: a slice would keep all of it in memory.
                self.batches.insert(0, take_rows(oldest, np.arange(excess, len(oldest))))
            self._rows -= excess
            forgotten += excess
        return forgotten

    def _excess(self, most_bytes: int | None) -> int:
        """How many of the oldest rows are too many, judged by the first batch."""
        oldest = self.batches[0]
        excess = max(self._rows - KEPT_LATE_ROWS, 0)
        if most_bytes is not None and (over := self.nbytes - most_bytes) > 0:
            share = over / max(oldest.nbytes, 1)
            excess = max(excess, min(ceil(len(oldest) * share), len(oldest)), 1)
        return excess

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(batch.nbytes + _BATCH_BYTES for batch in self.batches)

    def table(self, schema: pa.Schema | None) -> pa.Table:
        """The late rows."""
        return pa.Table.from_batches(self.batches, schema or pa.schema([]))

    def drain(self, schema: pa.Schema | None) -> pa.Table:
        """The late rows, which are then no longer kept."""
        table = self.table(schema)
        self.batches, self._rows = [], 0
        return table
