"""Which watermarks Spark is given, and what becomes of those there are.

Watermarks are declared on packed rows, with the horizon, the longest window, added to the
lateness: the results of a batch must not be behind Spark's watermark either, for the operators
that follow. The processor takes the horizon off again. With idle timeouts there is one
watermark for all streams: see idleness.py. The output of another join has a watermark already
and keeps it, for Spark forbids a second. Other watermarks are refused: a row that Spark's own
operators give out may be behind theirs, and would be late here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow.types as pt
from pyspark.sql import functions as F

from penstock.errors import InputError, SchemaError
from penstock.model.arrival_time import ARRIVAL, ARRIVAL_COLUMN
from penstock.model.binding import EVENT_TIME, Binding
from penstock.model.query import Query
from penstock.spark.idleness import TICKS, WATERMARKS, ClockProcessor, Ticker

__all__ = [
    "declared",
    "joins_before",
    "quoted",
    "union",
    "watermarked",
    "with_arrival",
    "with_event_time",
]

_WATERMARK: Final = "spark.watermarkDelayMs"  # where Spark notes a watermark on a column
_AHEAD: Final = "penstock.aheadMs"  # and we, how far all of its times are ahead of it
_JOINS: Final = "penstock.joins"  # and how many joins are behind it


def union(frames: Sequence[Any]) -> Any:
    """The rows of all."""
    return reduce(lambda left, right: left.union(right), frames)


def declared(query: Query, frames: Mapping[str, Any]) -> dict[str, int]:
    """The streams that have a watermark already: how far, in ms, they stay ahead of it."""
    ahead = {}
    for stream in query.streams:
        marked = [each for each in frames[stream.name].schema.fields if _WATERMARK in each.metadata]
        if not marked:
            continue
        names = [field.name for field in marked]
        # Spark copies marks to windows of a marked column; their times are others.
        if names != [EVENT_TIME] or _AHEAD not in marked[0].metadata:
            raise InputError(
                f"the DataFrame of stream {stream.name!r} has a watermark, on {names}; "
                "leave out withWatermark and give the stream a lateness"
            )
        if marked[0].metadata[_AHEAD] < 0:
            raise InputError(
                f"the DataFrame of stream {stream.name!r} is the output of a join whose windows "
                "count rows or arrivals, or is not inner, and comes behind the watermark; join "
                "all streams in one query, or write the output and read it from there"
            )
        if stream.time_column != EVENT_TIME:
            raise InputError(
                f"the DataFrame of stream {stream.name!r} is the output of another join, and its "
                f"time is {stream.time!r}; name {EVENT_TIME!r}, which has the join's watermark"
            )
        if stream.lateness_us or any(each.idle_timeout_us is not None for each in query.streams):
            raise InputError(
                f"the DataFrame of stream {stream.name!r} is the output of another join, whose "
                "watermark rules out a lateness for the stream and idle timeouts; leave them out"
            )
        ahead[stream.name] = marked[0].metadata[_AHEAD]
    return ahead


def watermarked(
    binding: Binding,
    frames: Mapping[str, Any],
    packed: list[Any],
    ahead: Mapping[str, int],
    horizon: int,
) -> list[Any]:
    """Packed streams, and what else there is, with the watermarks that Spark is to keep."""
    query = binding.query
    if all(stream.idle_timeout_us is None for stream in query.streams):
        return [
            _marked(blobs, "time", {})
            if stream.name in ahead
            else blobs.withWatermark(
                "time", f"{horizon + -(-stream.lateness_us // 1000)} milliseconds"
            )
            for stream, blobs in zip(query.streams, packed, strict=True)
        ]
    ticks = [
        frames[stream.name]
        .select(quoted(stream.time_column))
        .mapInArrow(Ticker(binding, number), TICKS)
        for number, stream in enumerate(query.streams)
    ]
    clock = (
        union(ticks)
        .withColumn("now_us", F.unix_micros(F.current_timestamp()))
        .groupBy("clock")
        .transformWithStateInPandas(ClockProcessor(query), WATERMARKS, "Append", "None")
        .select(
            F.lit(0).alias("bucket"),  # one that may be called for nothing
            F.lit(0).alias("stream"),
            F.timestamp_micros("time_us").alias("time"),
            F.lit(None).cast("binary").alias("data"),
        )
    )
    # First, since a union takes what is known of its columns from the first.
    return [clock.withWatermark("time", f"{horizon} milliseconds"), *packed]


def with_arrival(query: Query, name: str, frame: Any) -> Any:
    """The DataFrame of a stream with its time of arrival, if it takes that.

    Spark notes the time of a batch before it runs, and a batch that is repeated gets the same.
    """
    if query.streams[query.position(name)].time is not ARRIVAL:
        return frame
    if ARRIVAL_COLUMN in frame.columns:
        raise SchemaError(f"stream {name!r} has a column {ARRIVAL_COLUMN!r}; rename it")
    return frame.withColumn(ARRIVAL_COLUMN, F.current_timestamp())


def joins_before(frames: Iterable[Any]) -> int:
    """How many joins of ours one of these DataFrames is the output of, at most."""
    marks = [field.metadata.get(_JOINS, 0) for frame in frames for field in frame.schema.fields]
    return max(marks, default=0)


def with_event_time(rows: Any, binding: Binding, horizon: int, joins: int) -> Any:
    """Results with an event time that a following operator may use."""
    if not pt.is_timestamp(binding.event_time):
        return rows
    # The last tuple of a result was not late, and the join's watermark is ahead of Spark's. Where
    # it waited, or comes out alone, it was not late in the batch before: enough for Spark's
    # operators, which take that one's watermark for what is late, but not for ours.
    horizon = -1 if binding.query.counts or binding.query.marked else horizon
    return _marked(rows, EVENT_TIME, {_AHEAD: horizon, _JOINS: joins})


def _marked(frame: Any, marked: str, more: Mapping[str, int]) -> Any:
    """The same with a mark on the column that has a watermark; declaring it again is an error.

    By select: of what withColumn is given, a Connect server forgets the marks.
    """
    mark = {_WATERMARK: 0, **more}
    columns = [(name, F.col(quoted(name))) for name in frame.columns]
    return frame.select(
        *(
            column.alias(name, metadata=mark) if name == marked else column
            for name, column in columns
        )
    )


def quoted(column: str) -> str:
    """The name of a column as Spark reads it, whatever is in it."""
    return "`" + column.replace("`", "``") + "`"
