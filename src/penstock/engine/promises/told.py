"""Keys that are over, until somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.kernels.arena import Words

__all__ = ["Propagated", "Told"]

# Who never asks for them must not run out of memory because of them.
_KEPT: Final = 100_000


class Propagated(NamedTuple):
    """Keys of which no result comes any more, by column, and from when on that was promised."""

    columns: Sequence[pa.Array]
    at: Words


class Told:
    """count: how many there have been. forgotten: those that nobody asked for in time. keeps_all:
    none is forgotten."""

    def __init__(self) -> None:
        self.keeps_all = False
        self.count = 0
        self.forgotten = 0
        self._waiting: list[Propagated] = []
        self._unasked = 0

    def add(self, keys: Propagated) -> None:
        """Keep these; forget the oldest if there are too many."""
        self.count += len(keys.at)
        self._unasked += len(keys.at)
        self._waiting.append(keys)
        while not self.keeps_all and self._unasked - len(self._waiting[0].at) > _KEPT:
            oldest = self._waiting.pop(0)
            self._unasked -= len(oldest.at)
            self.forgotten += len(oldest.at)

    def drained(self) -> list[Propagated]:
        """Those since the last call."""
        waiting, self._waiting, self._unasked = self._waiting, [], 0
        return waiting

    def save(self) -> dict[str, pa.Table]:
        """Everything in it."""
        table = {
            "at": np.concatenate([np.empty(0, np.int64), *(each.at for each in self._waiting)])
        }
        for number in range(len(self._waiting[0].columns) if self._waiting else 0):
            pieces = [each.columns[number] for each in self._waiting]
            table[f"value {number}"] = pa.chunked_array(pieces)
        counts = {"propagated": [self.count], "unasked": [self.forgotten]}
        return {"told": pa.table(table), "told counts": pa.table(counts)}

    def load(self, keys: pa.Table, counts: pa.Table) -> None:
        """What was saved."""
        if len(keys):
            names = [name for name in keys.column_names if name.startswith("value ")]
            values = [keys[name].combine_chunks() for name in names]
            self._waiting = [Propagated(values, keys["at"].to_numpy())]
            self._unasked = len(keys)
        self.count, self.forgotten = (counts[name][0].as_py() for name in ("propagated", "unasked"))
