"""What a user pushes, made into checked columns. Nothing here changes a running join.

Anything Arrow can import is welcome. A batch is checked whole before any of it is taken: so
a refused batch changes nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from penstock.engine.arrivals import Intake
from penstock.engine.residual import bound
from penstock.errors import InputError, InputWarning, SchemaError, TimestampError
from penstock.model.amount import amount
from penstock.model.arrival_time import ARRIVAL, given_schema, timed_batch
from penstock.model.arrow_table import arrow_table
from penstock.model.binding import Binding
from penstock.model.query import Query
from penstock.model.time_unit import PER_UNIT_US, likely_unit
from penstock.windows.payload.storage import check_keepable, empty_array

__all__ = ["MAX_TS", "MIN_TS", "as_table", "event_times", "fit", "take_in", "warn_of_unit"]

# Years 1 to 9999, as Python's datetime and Spark have them, in microseconds.
MIN_TS: Final = -62_135_596_800_000_000
MAX_TS: Final = 253_402_300_799_999_999


def take_in(
    query: Query, binding: Binding, given: Mapping[str, Any], instant_us: int
) -> tuple[Binding, dict[int, Intake]]:
    """Check a call's tables; return the binding they need, and their rows by stream.

    instant_us: when they arrived.
    """
    batches: dict[int, pa.RecordBatch] = {}
    for name, data in given.items():
        if name not in query.names:
            raise InputError(f"no stream is called {name!r}; the streams are {query.names}")
        stream = query.names.index(name)
        known = binding.schemas[stream]
        batch = _one_batch(data, name)
        if known is not None:
            batch = fit(batch, given_schema(known), name)
        if query.streams[stream].time is ARRIVAL:
            batch = timed_batch(batch, instant_us, name)
        batches[stream] = batch
    new = {
        stream: batch.schema for stream, batch in batches.items() if binding.schemas[stream] is None
    }
    if new:
        binding = bound(binding, new)
        for stream, schema in new.items():
            check_keepable(schema, query.names[stream])
    intakes = {stream: event_times(query, stream, batch) for stream, batch in batches.items()}
    return binding, intakes


def _one_batch(data: Any, name: str) -> pa.RecordBatch:
    """All rows of `data` in one record batch, copied only if they are in pieces."""
    if isinstance(data, pa.RecordBatch):
        return data
    if not isinstance(data, pa.Table):
        data = as_table(data, name)
    batches = data.to_batches()
    if len(batches) > 1:
        batches = _combined(data, name).to_batches()
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return pa.RecordBatch.from_arrays(
            [empty_array(field.type) for field in data.schema], schema=data.schema
        )
    raise InputError(
        f"the batch for stream {name!r} holds more than 2 GiB of text in one column; "
        "push it in smaller pieces"
    )


def _combined(table: pa.Table, name: str) -> pa.Table:
    try:
        return table.combine_chunks()
    except pa.ArrowInvalid as error:
        encoded = [field.name for field in table.schema if pt.is_dictionary(field.type)]
        raise InputError(
            f"the pieces of the batch for stream {name!r} cannot be put together: {error} Its "
            f"dictionary-encoded columns are {encoded}; give them a larger index type, or push "
            "the pieces one by one"
        ) from error


def as_table(data: Any, name: str) -> pa.Table:
    """What a user gives for a stream, as an Arrow table."""
    table = arrow_table(data, f"the batch for stream {name!r}")
    if table is None:
        raise InputError(
            f"the batch for stream {name!r} is a {type(data).__name__}, which Arrow cannot import; "
            "pass a pyarrow, pandas or polars table, or anything with __arrow_c_stream__"
        )
    return table


def fit(batch: pa.RecordBatch, known: pa.Schema, name: str) -> pa.RecordBatch:
    """A batch with the columns in the known order; refused when they are not the known ones."""
    if batch.schema is known or batch.schema.equals(known):
        return batch
    there = batch.schema.names
    missing = [column for column in known.names if column not in there]
    added = [column for column in there if column not in known.names]
    if missing or added or len(there) != len(known.names):
        raise SchemaError(
            f"the columns of stream {name!r} changed: missing {missing}, new {added}; "
            f"push batches with the columns {known.names}"
        )
    columns = []
    for field in known:
        column = batch.column(there.index(field.name))
        if column.type != field.type:
            if not pt.is_null(column.type):
                told = (
                    "give its type in start(schemas=)"
                    if pt.is_null(field.type)
                    else (f"cast it to {field.type}")
                )
                raise SchemaError(
                    f"column {field.name!r} of stream {name!r} changed its type "
                    f"from {field.type} to {column.type}; {told}"
                )
            column = pa.nulls(len(column), field.type)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=known)


def event_times(query: Query, stream: int, batch: pa.RecordBatch) -> Intake:
    """A batch with its event times in whole microseconds, checked."""
    name = query.streams[stream].time_column
    where = f"time column {name!r} of stream {query.names[stream]!r}"
    array = batch.column(name)
    if array.null_count:
        raise TimestampError(
            f"{where} has {amount(array.null_count, 'null')} in {amount(len(array), 'row')}; "
            "filter them out, or fill them with the time of arrival"
        )
    values = np.frombuffer(array.buffers()[1] or b"", np.int64, len(array), 8 * array.offset)
    if not len(values):
        return Intake(batch, values, MAX_TS, MIN_TS)
    unit = array.type.unit if pt.is_timestamp(array.type) else "us"
    low = high = int(values[0])
    if len(values) > 1:
        low, high = int(values.min()), int(values.max())
    if unit == "ns":
        if (values % 1_000).any():
            raise TimestampError(
                f"{where} has nanoseconds that are not whole microseconds; "
                "truncate it to microseconds first"
            )
        low, high = low // 1_000, high // 1_000
    else:
        low, high = low * PER_UNIT_US[unit], high * PER_UNIT_US[unit]
    if low < MIN_TS or high > MAX_TS:
        worst = low if low < MIN_TS else high
        raise TimestampError(
            f"{where} has a time outside the years 1 to 9999: {worst:,} microseconds since 1970; "
            "check its unit"
        )
    if unit == "ns":
        values = values // 1_000
    elif unit != "us":
        values = values * PER_UNIT_US[unit]
    return Intake(batch, values, low, high)


def warn_of_unit(query: Query, stream: int, intake: Intake) -> None:
    """Warn if a stream's first times are integers that look like seconds or milliseconds."""
    column = query.streams[stream].time_column
    if not len(intake.ts) or not pt.is_int64(intake.batch.schema.field(column).type):
        return
    unit = likely_unit(intake.earliest, intake.latest)
    if unit is not None:
        factor = {"seconds": "1,000,000", "milliseconds": "1,000"}[unit]
        warnings.warn(
            f"time column {column!r} of stream {query.names[stream]!r} lies in early 1970, from "
            f"{intake.earliest} to {intake.latest}: integers are read as microseconds; if these "
            f"are {unit}, multiply them by {factor}",
            InputWarning,
            stacklevel=4,  # where the user calls push
        )
