"""The rows of one stream in one batch: as they come in, and as the loop needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.state.arena import Flags, Words

__all__ = ["Arrivals", "Intake", "muted"]


class Intake(NamedTuple):
    """The rows of one stream in one batch, their event times, and the extremes of these."""

    batch: pa.RecordBatch
    ts: Words
    earliest: int
    latest: int


@dataclass(frozen=True)
class Arrivals:
    """ts: event times. keys: key words. columns: the payload in kept types, by name.

    mute: which have no key, where such tuples count as rows; None when none has to be known.
    """

    ts: Words
    keys: Words
    columns: Mapping[str, pa.Array]
    mute: Flags | None = None

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, rows: Words) -> Arrivals:
        """These rows, in this order."""
        chosen = pa.array(rows)
        columns = {name: array.take(chosen) for name, array in self.columns.items()}
        mute = None if self.mute is None else self.mute[rows]
        return Arrivals(self.ts[rows], self.keys[rows], columns, mute)

    def with_keys(self) -> Arrivals:
        """Those that have one."""
        if self.mute is None:
            return self
        heard = self.take(np.flatnonzero(~self.mute)) if self.mute.any() else self
        return replace(heard, mute=None)

    @classmethod
    def concatenated(cls, parts: Sequence[Arrivals]) -> Arrivals:
        """Some arrivals behind others."""
        columns = {
            name: pa.concat_arrays([part.columns[name] for part in parts])
            for name in parts[0].columns
        }
        ts = np.concatenate([part.ts for part in parts])
        return cls(ts, np.concatenate([part.keys for part in parts]), columns, muted(parts))

    def slice(self, begin: int, end: int) -> Arrivals:
        """A run of rows, without copying."""
        if begin == 0 and end == len(self):
            return self
        columns = {name: array[begin:end] for name, array in self.columns.items()}
        mute = None if self.mute is None else self.mute[begin:end]
        return Arrivals(self.ts[begin:end], self.keys[begin:end], columns, mute)

    def in_time_order(self) -> Arrivals:
        """Sorted by event time, those of one instant as they came."""
        if len(self) < 2 or bool((self.ts[1:] >= self.ts[:-1]).all()):
            return self
        return self.take(np.argsort(self.ts, kind="stable"))


def muted(parts: Collection[Arrivals]) -> Flags | None:
    """Which of these, one behind the other, have no key; None when none has to be known."""
    if all(part.mute is None for part in parts):
        return None
    return np.concatenate(
        [np.zeros(len(part), np.bool_) if part.mute is None else part.mute for part in parts]
    )
