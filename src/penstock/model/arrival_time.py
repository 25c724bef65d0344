"""Streams without a time of their own: a tuple's time is that of its arrival.

Penstock then adds the time as a column, under a name that is its own, and from there on it is
a time column like any other; but it is not shown, selected or compared.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import pyarrow as pa

from penstock.errors import SchemaError

__all__ = [
    "ARRIVAL",
    "ARRIVAL_COLUMN",
    "ArrivalTime",
    "given_schema",
    "timed_batch",
    "timed_schema",
]

ARRIVAL_COLUMN: Final = "__arrival_time__"
_TYPE: Final = pa.timestamp("us", tz="UTC")


class ArrivalTime(Enum):
    """`Stream(name, time=ARRIVAL)`: tuples have the time at which their batch was pushed."""

    ARRIVAL = "arrival"


ARRIVAL: Final = ArrivalTime.ARRIVAL


def timed_schema(schema: pa.Schema, stream: str) -> pa.Schema:
    """The columns that a stream gives, and the time that is added to them."""
    if ARRIVAL_COLUMN in schema.names:
        raise SchemaError(
            f"stream {stream!r} has a column {ARRIVAL_COLUMN!r}, the name under which its time of "
            "arrival is kept; rename it"
        )
    return schema.append(pa.field(ARRIVAL_COLUMN, _TYPE))


def given_schema(schema: pa.Schema) -> pa.Schema:
    """The columns that a stream gives, without a time that was added to them."""
    place = schema.get_field_index(ARRIVAL_COLUMN)
    return schema if place < 0 else schema.remove(place)


def timed_batch(batch: pa.RecordBatch, instant_us: int, stream: str) -> pa.RecordBatch:
    """A batch whose rows all arrived at this instant."""
    schema = timed_schema(batch.schema, stream)
    times = pa.repeat(pa.scalar(instant_us, pa.int64()), len(batch)).cast(_TYPE)
    return pa.RecordBatch.from_arrays([*batch.columns, times], schema=schema)
