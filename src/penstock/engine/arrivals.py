"""The rows of one stream in one batch: as they come in, and as the loop needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.state.arena import Words

__all__ = ["Arrivals", "Intake"]


class Intake(NamedTuple):
    """The rows of one stream in one batch, their event times, and the extremes of these."""

    batch: pa.RecordBatch
    ts: Words
    earliest: int
    latest: int


@dataclass(frozen=True)
class Arrivals:
    """ts: event times. keys: key words. columns: the payload in kept types, by name."""

    ts: Words
    keys: Words
    columns: Mapping[str, pa.Array]

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, rows: Words) -> Arrivals:
        """These rows, in this order."""
        chosen = pa.array(rows)
        columns = {name: array.take(chosen) for name, array in self.columns.items()}
        return Arrivals(self.ts[rows], self.keys[rows], columns)

    @classmethod
    def concatenated(cls, parts: Sequence[Arrivals]) -> Arrivals:
        """Some arrivals behind others."""
        columns = {
            name: pa.concat_arrays([part.columns[name] for part in parts])
            for name in parts[0].columns
        }
        ts = np.concatenate([part.ts for part in parts])
        return cls(ts, np.concatenate([part.keys for part in parts]), columns)

    def slice(self, begin: int, end: int) -> Arrivals:
        """A run of rows, without copying."""
        if begin == 0 and end == len(self):
            return self
        columns = {name: array[begin:end] for name, array in self.columns.items()}
        return Arrivals(self.ts[begin:end], self.keys[begin:end], columns)

    def in_time_order(self) -> Arrivals:
        """Sorted by event time, those of one instant as they came."""
        if len(self) < 2 or bool((self.ts[1:] >= self.ts[:-1]).all()):
            return self
        return self.take(np.argsort(self.ts, kind="stable"))
