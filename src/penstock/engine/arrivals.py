"""The rows of one stream in one batch: as they come in, and as the loop needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.kernels.arena import Flags, Words
from penstock.windows.contents import by_contents

__all__ = ["Arrivals", "Intake", "guests_of", "muted", "of_one_type"]


class Intake(NamedTuple):
    """The rows of one stream in one batch, their event times, and the extremes of these."""

    batch: pa.RecordBatch
    ts: Words
    earliest: int
    latest: int


@dataclass(frozen=True)
class Arrivals:
    """ts: event times. words: words[w], those for path w. columns: the payload in kept types.

    mute: which meet nothing, if such tuples count as rows; None if that need not be known.
    guests: which meet others here but stay elsewhere; None when all stay. They never wait.
    """

    ts: Words
    words: Words
    columns: Mapping[str, pa.Array]
    mute: Flags | None = None
    guests: Flags | None = None

    @property
    def keys(self) -> Words:
        """Their words for the first path."""
        first: Words = self.words[0]
        return first

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, rows: Words) -> Arrivals:
        """These rows, in this order."""
        chosen = pa.array(rows)
        columns = {name: array.take(chosen) for name, array in self.columns.items()}
        mute = None if self.mute is None else self.mute[rows]
        guests = None if self.guests is None else self.guests[rows]
        words = self.words.take(rows, axis=1)
        return Arrivals(self.ts[rows], words, columns, mute, guests)

    def with_keys(self) -> Arrivals:
        """Those that have a key."""
        if self.mute is None:
            return self
        heard = self.take(np.flatnonzero(~self.mute)) if self.mute.any() else self
        return replace(heard, mute=None)

    def with_guests(self, others: Arrivals) -> Arrivals:
        """The same and others that do not stay, in order of time."""
        home = replace(self, guests=np.zeros(len(self), np.bool_))
        guests = replace(others, guests=np.ones(len(others), np.bool_))
        return Arrivals.concatenated([home, guests]).in_time_order()

    @classmethod
    def concatenated(cls, parts: Sequence[Arrivals]) -> Arrivals:
        """Some arrivals behind others."""
        columns = {
            name: pa.concat_arrays([part.columns[name] for part in parts])
            for name in parts[0].columns
        }
        ts = np.concatenate([part.ts for part in parts])
        words = np.concatenate([part.words for part in parts], axis=1)
        return cls(ts, words, columns, muted(parts), guests_of(parts))

    def slice(self, begin: int, end: int) -> Arrivals:
        """A run of rows, without copying."""
        if begin == 0 and end == len(self):
            return self
        columns = {name: array[begin:end] for name, array in self.columns.items()}
        mute = None if self.mute is None else self.mute[begin:end]
        guests = None if self.guests is None else self.guests[begin:end]
        return Arrivals(self.ts[begin:end], self.words[:, begin:end], columns, mute, guests)

    def in_time_order(self) -> Arrivals:
        """Sorted by event time, those of one instant as they came."""
        if len(self) < 2 or bool((self.ts[1:] >= self.ts[:-1]).all()):
            return self
        return self.take(np.argsort(self.ts, kind="stable"))

    def in_contents_order(self) -> Arrivals:
        """Sorted by event time, those of one instant by what is in them."""
        in_time = self.in_time_order()
        rows = by_contents(in_time.ts, in_time.columns)
        return in_time if rows is None else in_time.take(rows)

    def dump(self) -> pa.RecordBatch:
        """The same as one batch: its times, flags and words, then its columns."""
        mute = pa.nulls(len(self), pa.bool_()) if self.mute is None else pa.array(self.mute)
        words = {f"word {number}": pa.array(words) for number, words in enumerate(self.words)}
        columns = {f"column {name}": array for name, array in self.columns.items()}
        named = {"ts": pa.array(self.ts), "mute": mute, **words, **columns}
        if self.guests is not None:
            named["guests"] = pa.array(self.guests)
        return pa.RecordBatch.from_arrays(list(named.values()), list(named))

    @classmethod
    def load(cls, dumped: pa.RecordBatch) -> Arrivals:
        """The reverse of `dump`."""
        named = dict(zip(dumped.schema.names, dumped.columns, strict=True))
        mute = named["mute"]
        flags = None if mute.null_count else mute.to_numpy(zero_copy_only=False)
        words = [array.to_numpy() for name, array in named.items() if name.startswith("word ")]
        columns = {
            name.removeprefix("column "): array
            for name, array in named.items()
            if name.startswith("column ")
        }
        guests = named["guests"].to_numpy(zero_copy_only=False) if "guests" in named else None
        return cls(named["ts"].to_numpy(), np.stack(words), columns, flags, guests)


def muted(parts: Collection[Arrivals]) -> Flags | None:
    """Which of these, one behind the other, have no key; None if that need not be known."""
    if all(part.mute is None for part in parts):
        return None
    return _joined([(len(part), part.mute) for part in parts])


def guests_of(parts: Collection[Arrivals]) -> Flags | None:
    """Which of these, one behind the other, do not stay; None when all do."""
    if all(part.guests is None for part in parts):
        return None
    return _joined([(len(part), part.guests) for part in parts])


def _joined(parts: Sequence[tuple[int, Flags | None]]) -> Flags:
    return np.concatenate(
        [np.zeros(rows, np.bool_) if flags is None else flags for rows, flags in parts]
    )


def of_one_type(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same values, as all kernels are given them: numba would compile anew for what is
    read-only or has gaps."""
    if values.flags.carray:
        return values
    return np.require(values, requirements=("C_CONTIGUOUS", "WRITEABLE"))
