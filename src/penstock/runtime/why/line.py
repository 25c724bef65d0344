"""The tuples of a stream that a join still has, in order, so that one can be looked up by value.

Those in the window come first, then those that wait for their turn: if rows or arrivals are
counted, that is the order in which they are. Made for a question of a user, who asks about a
tuple or two: it takes columns whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.engine.padding import microseconds
from penstock.kernels.arena import Flags, Words

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["Line", "line_of", "same_values"]


@dataclass(frozen=True)
class Line:
    """ts: event times. places: among the arrivals of all streams, if these are counted.
    live: how many of them are in the window. columns: of those asked for, the ones kept, in kept
    types."""

    ts: Words
    places: Words
    live: int
    columns: Mapping[str, pa.Array]

    def same(self, row: Mapping[str, pa.Array]) -> Flags:
        """Which tuples have these values, in the columns that are kept."""
        same = np.ones(len(self.ts), np.bool_)
        for name, value in row.items():
            if name in self.columns:
                same &= same_values(self.columns[name], value)
        return same

    def index(self, ts: int | None, row: Mapping[str, pa.Array]) -> int | None:
        """Where such a tuple is: the newest in the window, else the first that waits."""
        same = self.same(row)
        if ts is not None:
            same &= self.ts == ts
        live, waiting = np.flatnonzero(same[: self.live]), np.flatnonzero(same[self.live :])
        if len(live):
            return int(live[-1])
        return self.live + int(waiting[0]) if len(waiting) else None


# What Arrow has no comparison for.
_UNCOMPARED: Final = (
    pt.is_nested,
    pt.is_float16,
    pt.is_interval,
    lambda data_type: isinstance(data_type, pa.BaseExtensionType),
)


def same_values(column: pa.Array, value: pa.Array) -> Flags:
    """Which values of a column are the one given, both in kept types: null is null, and NaN is NaN,
    for it is a tuple that is looked for, and not what it equals."""
    if pt.is_dictionary(column.type):
        column, value = column.dictionary_decode(), value.dictionary_decode()
    if not value[0].is_valid:
        null: Flags = column.is_null().to_numpy(zero_copy_only=False)
        return null
    if any(test(column.type) for test in _UNCOMPARED):
        wanted = value[0].as_py()
        return np.array([_is_same(each, wanted) for each in column.to_pylist()], np.bool_)
    same = pc.fill_null(pc.equal(column, value[0]), False)
    if pt.is_floating(column.type) and isnan(value[0].as_py()):
        same = pc.fill_null(pc.is_nan(column), False)
    flags: Flags = same.to_numpy(zero_copy_only=False)
    return flags


def _is_same(one: Any, other: Any) -> bool:
    """Equality at any depth, where NaN is NaN."""
    if isinstance(one, float | np.floating) and isinstance(other, float | np.floating):
        return bool(one == other or (isnan(one) and isnan(other)))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_is_same(*pair) for pair in pairs)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    return bool(one == other)


def line_of(join: Join, stream: int, names: Collection[str]) -> Line:
    """That of a stream, with its columns of these names."""
    query, windows = join.query, join.driver.windows
    live, payload = windows.live_sequences(stream), windows.payloads[stream]
    waiting = join.gate.arrivals(stream) if query.counts else None
    inside = windows.timestamps(stream, live)
    columns: dict[str, list[pa.Array]] = {}
    places = inside
    if payload is not None:
        positions = payload.positions(live)
        columns = {
            name: [payload.columns[name].take(live, positions)]
            for name in names
            if name in payload.columns
        }
        if query.counts_arrivals:  # the windows have places for times
            inside = microseconds(payload.take(query.streams[stream].time_column, live))
    ts = [inside]
    if waiting is not None:
        ts.append(waiting.ts)
        places = np.concatenate([places, join.gate.places(stream)])
        for name, parts in columns.items():
            parts.append(waiting.columns[name])
    whole = {name: pa.concat_arrays(parts) for name, parts in columns.items()}
    return Line(np.concatenate(ts), places, len(live), whole)
