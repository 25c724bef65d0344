"""Keys that are over, as rows of the output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from penstock.engine.intake import MIN_TS
from penstock.engine.promises.told import Propagated
from penstock.model.binding import Binding

__all__ = ["over_rows"]


def over_rows(binding: Binding, over: Propagated) -> pa.RecordBatch:
    """Such keys, in all columns of the output that hold the key; the time is that of the promise,
    and the rest null."""
    keys, count = binding.query.keys, len(over.at)
    columns = []
    for out in binding.output:
        if out.column in keys[out.stream]:
            values = over.columns[keys[out.stream].index(out.column)]
            columns.append(_as_type(values, out.type))
        else:
            columns.append(pa.nulls(count, out.type))
    schema = binding.output_schema()
    at = pa.array(np.maximum(over.at, MIN_TS))
    if pt.is_timestamp(binding.event_time):
        at = at.cast(pa.timestamp("us", binding.event_time.tz)).cast(binding.event_time)
    return pa.RecordBatch.from_arrays([*columns, at], schema=schema)


def _as_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of a key in the type of one stream's column; null where it cannot have them."""
    try:
        return values.cast(kind)
    except pa.ArrowException:
        return pa.array([_or_none(value, kind) for value in values], kind)


def _or_none(value: pa.Scalar, kind: pa.DataType) -> Any:
    try:
        return value.cast(kind).as_py()
    except pa.ArrowException:
        return None
