"""Results of tuples that have no partner: nulls in the place of the other stream's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.kernels.arena import Words
from penstock.model.binding import Binding
from penstock.windows.payload.storage import as_given

__all__ = ["event_times", "microseconds", "padded"]


def padded(
    binding: Binding,
    stream: int,
    columns: Mapping[str, pa.Array],
    ts: Words,
    names: Sequence[str],
) -> pa.RecordBatch:
    """Tuples of one stream, in kept types, as results under these names.

    Their event time is their own. ts: what they are ordered by, which is that time unless
    arrivals are counted.
    """
    query = binding.query
    arrays = [
        as_given(columns[out.column], out.type)
        if out.stream == stream
        else pa.nulls(len(ts), out.type)
        for out in binding.output
    ]
    if query.counts_arrivals:
        ts = microseconds(columns[query.streams[stream].time_column])
    return pa.RecordBatch.from_arrays([*arrays, event_times(binding, ts)], names)


def event_times(binding: Binding, ts: Words) -> pa.Array:
    """Microseconds as the event times of results."""
    whole = np.ascontiguousarray(ts)
    return pa.Array.from_buffers(binding.event_time, len(whole), [None, pa.py_buffer(whole)])


def microseconds(times: pa.Array) -> Words:
    """A time column in whole microseconds."""
    if not pa.types.is_timestamp(times.type):
        return times.to_numpy()  # integer microseconds
    whole = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
    return whole.to_numpy()
