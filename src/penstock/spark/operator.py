"""The join as a DataFrame.

    stream a -- pack -- watermark --+
                                    +- union - by bucket - join - unpack -> rows
    stream b -- pack -- watermark --+

Watermarks are declared on packed rows, with the longest window added to the lateness: the
results of a batch must not be behind Spark's watermark either, for the operators that follow.
The processor takes the window off again.

The event time of the output is marked as one that a following operator may use: an
aggregation over windows of it, or another join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from penstock.engine.clock import BEGINNING, END_OF_TIME
from penstock.engine.driver import Driver
from penstock.errors import InputError, PlanError, SchemaError
from penstock.model.binding import EVENT_TIME, Binding
from penstock.model.plan import Plan
from penstock.model.query import Query
from penstock.spark.bucket import release_parts
from penstock.spark.packing import PACKED, Packer, blob_schema, read_blob
from penstock.spark.processor import OUTPUT, RESULT, JoinProcessor, horizon_ms
from penstock.spark.session import prepare_session

__all__ = ["KIND", "join_on_spark"]

KIND: Final = "kind"
_BUCKETS_PER_PARTITION: Final = 4
_WATERMARK: Final = "spark.watermarkDelayMs"  # where Spark notes a watermark on a column


def join_on_spark(
    query: Query,
    frames: Mapping[str, Any],
    plan: Plan,
    *,
    buckets: int | None,
    kind: bool,
) -> Any:
    """The joined rows, as a DataFrame: streaming if the inputs are."""
    spark, streaming = _session(query, frames)
    prepare_session(spark, streaming)
    binding = _bind(query, frames, kind)
    count = buckets or _default_buckets(spark)
    packed = []
    for stream, name in enumerate(query.names):
        blobs = frames[name].mapInArrow(Packer(binding, stream, count), PACKED)
        if streaming:
            delay = horizon_ms(binding) + -(-query.streams[stream].lateness_us // 1000)
            blobs = blobs.withWatermark("time", f"{delay} milliseconds")
        packed.append(blobs)
    grouped = reduce(lambda left, right: left.union(right), packed).groupBy("bucket")
    if streaming:
        joined = grouped.transformWithStateInPandas(
            JoinProcessor(binding, plan, keep_late=kind), OUTPUT, "Append", "EventTime"
        ).observe("penstock", *_counters())
        rows = joined.mapInArrow(Unpacker(binding, kind), _output_schema(binding, kind))
    else:
        schema = _output_schema(binding, kind)
        rows = grouped.applyInArrow(whole_join(binding, plan, kind), schema)
    return _with_event_time(rows, binding, streaming)


def _session(query: Query, frames: Mapping[str, Any]) -> tuple[Any, bool]:
    if set(frames) != set(query.names):
        raise InputError(
            f"on_spark needs a DataFrame for each stream, got {sorted(frames)}; "
            f"the streams are {query.names}"
        )
    for name, frame in frames.items():
        if not hasattr(frame, "mapInArrow"):
            raise InputError(f"stream {name!r} is a {type(frame).__name__}; pass a Spark DataFrame")
        marked = [field.name for field in frame.schema.fields if _WATERMARK in field.metadata]
        if marked:
            raise InputError(
                f"the DataFrame of stream {name!r} already has a watermark, on {marked}; leave "
                "it out and give the stream a lateness: the join declares its own"
            )
    patient = [stream.name for stream in query.streams if stream.idle_timeout_us is not None]
    if patient:
        raise PlanError(
            f"idle_timeout of {patient} cannot be kept on Spark, whose watermark waits for every "
            "stream; leave it out, or run the join embedded"
        )
    streaming = {name: frame.isStreaming for name, frame in frames.items()}
    if len(set(streaming.values())) > 1:
        raise InputError(
            f"streaming and batch DataFrames cannot be joined over windows: isStreaming is "
            f"{streaming}; read all of them in the same way"
        )
    return frames[query.names[0]].sparkSession, all(streaming.values())


def _bind(query: Query, frames: Mapping[str, Any], kind: bool) -> Binding:
    schemas = {
        stream: to_arrow_schema(frames[name].schema, timezone="UTC")
        for stream, name in enumerate(query.names)
    }
    binding = Binding.of(query).bound_with(schemas)
    if kind and KIND in [column.name for column in binding.output]:
        raise SchemaError(
            f"an output column is already called {KIND!r}; rename it with select=, or leave kind="
        )
    return binding


def _default_buckets(spark: Any) -> int:
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions", "200"))
    return _BUCKETS_PER_PARTITION * partitions


def _counters() -> list[Any]:
    names = ("produced", "late", "live", "bytes", "rebuilt")
    return [F.sum(name).alias(name) for name in names]


def _output_schema(binding: Binding, kind: bool) -> StructType:
    schema = from_arrow_schema(binding.output_schema(), prefer_timestamp_ntz=True)
    fields = [StructField(field.name, field.dataType) for field in schema.fields]
    return StructType([StructField(KIND, StringType()), *fields] if kind else fields)


def _with_event_time(rows: Any, binding: Binding, streaming: bool) -> Any:
    if not streaming or not pt.is_timestamp(binding.event_time):
        return rows
    # Declaring a watermark again would be an error; the mark says that there is one.
    marked = F.col(EVENT_TIME).alias(EVENT_TIME, metadata={_WATERMARK: 0})
    others = [F.col(f"`{name}`") for name in rows.columns if name != EVENT_TIME]
    return rows.select(*others, marked)


@dataclass(frozen=True)
class Unpacker:
    """Output blobs back to rows; made for `mapInArrow`."""

    binding: Binding
    kind: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        results = self.binding.output_schema()
        for batch in batches:
            for stream, data in zip(
                batch.column("stream").to_pylist(), batch.column("data"), strict=True
            ):
                if not data.is_valid:
                    continue
                if stream == RESULT:
                    yield _of_kind(read_blob(data.as_buffer(), results), "result", self.kind)
                else:
                    schema = blob_schema(self.binding, stream)
                    late = read_blob(data.as_buffer(), schema)
                    yield _of_kind(late_rows(self.binding, stream, late), "late", self.kind)


def _of_kind(batch: pa.RecordBatch, what: str, kind: bool) -> pa.RecordBatch:
    if not kind:
        return batch
    column = pa.repeat(pa.scalar(what, pa.string()), len(batch))
    return pa.RecordBatch.from_arrays([column, *batch.columns], [KIND, *batch.schema.names])


def late_rows(binding: Binding, stream: int, late: pa.RecordBatch) -> pa.RecordBatch:
    """Late rows of a stream in the columns of the output, those of other streams null."""
    columns = [
        late.column(out.column) if out.stream == stream else pa.nulls(len(late), out.type)
        for out in binding.output
    ]
    time = late.column(binding.query.streams[stream].time)
    schema = binding.output_schema()
    return pa.RecordBatch.from_arrays([*columns, time.cast(binding.event_time)], schema=schema)


def whole_join(binding: Binding, plan: Plan, kind: bool) -> Callable[[pa.Table], pa.Table]:
    """The join of a bucket's whole data at once, for batch DataFrames: nothing is late.

    A function of one argument, made for `applyInArrow`, which counts them.
    """

    def join(blobs: pa.Table) -> pa.Table:
        parts: dict[int, list[pa.RecordBatch]] = {}
        for stream, data in zip(blobs["stream"].to_pylist(), blobs["data"], strict=True):
            if data.is_valid:
                batch = read_blob(data.as_buffer(), blob_schema(binding, stream))
                parts.setdefault(stream, []).append(batch)
        arrivals = {
            stream: release_parts(binding, stream, batches, BEGINNING).arrivals
            for stream, batches in parts.items()
        }
        joined = Driver(binding, plan).run(arrivals, END_OF_TIME)
        if not kind:
            return joined
        return joined.add_column(0, KIND, pa.repeat(pa.scalar("result"), joined.num_rows))

    return join
