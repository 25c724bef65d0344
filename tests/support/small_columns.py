"""Columns of small random joins: Arrow types that may meet, and a few values of each.

Domains are tiny, so that keys meet, tie, are null, NaN, or differ only in what a hash or a sign
could lose.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from math import inf, nan
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa


class Kind(NamedTuple):
    """The types whose columns can be compared as keys, and values that all of them can hold."""

    types: Sequence[pa.DataType]
    values: Sequence[Any]
    mixes: bool = True  # or all columns of a join are of one of the types


NARROW = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32())
TEXT = (
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
)

KEYS: dict[str, Kind] = {
    "integer": Kind(NARROW, (1, 2, 3, None)),
    "one integer": Kind(NARROW, (7,)),
    "wide integer": Kind(
        (pa.int64(),), (0, -1, 1 << 32, 1 << 62, -(1 << 63), (1 << 63) - 1, 0x9E3779B9)
    ),
    "uint64": Kind((pa.uint64(),), (0, 1, 1 << 63, (1 << 64) - 1, None)),
    "float": Kind((pa.float64(), pa.float32()), (0.0, -0.0, 1.5, nan, None)),
    "text": Kind(TEXT, ("", "x", "x\0", "é", None)),
    "bytes": Kind((pa.binary(), pa.large_binary()), (b"", b"\0", b"ab", None)),
    "boolean": Kind((pa.bool_(),), (True, False, None)),
    "date": Kind((pa.date32(), pa.date64()), (date(1969, 7, 20), date(2026, 1, 1), None)),
    "decimal": Kind(
        (pa.decimal128(5, 2), pa.decimal128(20, 2), pa.decimal256(40, 2)),
        (Decimal("0.00"), Decimal("-1.50"), Decimal("1.50"), None),
    ),
    "timestamp": Kind(
        (pa.timestamp("ms"), pa.timestamp("s"), pa.timestamp("us", "UTC")),
        (datetime(1969, 7, 20), datetime(2026, 1, 1), None),
        mixes=False,
    ),
    "time of day": Kind((pa.time64("us"),), (time(0), time(12, 30), None)),
}
MANY = Kind((pa.int64(), pa.int32(), pa.uint16()), tuple(range(60)))

# What `where=` compares besides: numbers of any types with each other, and text with text.
NUMBERS: dict[str, Kind] = {
    "integer": Kind(NARROW[:4], (-3, -2, -1, 0, 0, 1, 2, 3, None)),
    "wide integer": Kind(
        (pa.int64(),), (-(1 << 63), -(1 << 32), -1, 0, 2, 1 << 32, (1 << 63) - 1, None)
    ),
    "unsigned": Kind((pa.uint8(), pa.uint64()), (0, 0, 1, 2, 3, None)),
    "float": Kind((pa.float64(), pa.float32()), (-1.5, -0.0, 0.0, 0.5, 2.0, nan, inf, None)),
    "decimal": Kind(
        (pa.decimal128(6, 2),), (Decimal("-1.50"), Decimal("0.00"), Decimal("2.00"), None)
    ),
}


class Columns:
    """The columns of each stream besides its time, with their domains; made when asked for."""

    def __init__(self, rng: Random, count: int) -> None:
        self.rng = rng
        self.of: list[dict[str, tuple[pa.DataType, Sequence[Any]]]] = [{} for _ in range(count)]

    def add(self, stream: int, name: str, kind: Kind, data_type: pa.DataType | None = None) -> None:
        chosen = data_type if data_type is not None else self.rng.choice(kind.types)
        self.of[stream].setdefault(name, (chosen, kind.values))

    def add_to_all(self, names: Sequence[str], kind: Kind) -> None:
        """A column of each stream, of types that can meet as keys do."""
        one = None if kind.mixes and self.rng.random() < 0.5 else self.rng.choice(kind.types)
        for stream, name in enumerate(names):
            self.add(stream, name, kind, one)

    def number(self, stream: int) -> str:
        """A column of numbers of a stream."""
        name = self.rng.choice("xy")
        self.add(stream, name, NUMBERS[self.rng.choice(tuple(NUMBERS))])
        return name

    def row(self, stream: int, favourites: dict[str, Sequence[Any]]) -> dict[str, Any]:
        """Values for one row; of a column in `favourites` one of those."""
        return {
            name: self.rng.choice(favourites.get(name, values))
            for name, (_, values) in self.of[stream].items()
        }
