"""The join as a DataFrame.

    stream a -- pack -- watermark --+
                                    +- union - by bucket - join - unpack -> rows
    stream b -- pack -- watermark --+

Which watermarks these are: watermarks.py. A history is packed in the same way, with ticks for
every bucket, and becomes the initial state.

The event time of the output is marked as one that a following operator may use: an
aggregation over windows of it, or another join.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.engine.residual import bound
from penstock.errors import InputError, PlanError, SchemaError
from penstock.kernels.sentinels import BEGINNING, END_OF_TIME
from penstock.model.arrival_time import ARRIVAL
from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.model.query import Query
from penstock.spark.checkpoint import check_checkpoint
from penstock.spark.division import divided
from penstock.spark.limit_checks import check_limits
from penstock.spark.processor import COUNTERS, OUTPUT, JoinProcessor, horizon_ms
from penstock.spark.rows.blobs import read_blobs
from penstock.spark.rows.over import over_rows
from penstock.spark.rows.packing import PACKED, Packer, blob_schemas
from penstock.spark.rows.unpacking import (
    KIND,
    Unpacker,
    of_kind,
    output_schema,
    stream_rows,
    with_kind,
)
from penstock.spark.sent_kernels import take_distributed
from penstock.spark.session import prepare_session, shuffle_partitions
from penstock.spark.state.bucket_batch import Batch, take_batch
from penstock.spark.state.bucket_engine import BucketEngine
from penstock.spark.state.scratch import place_for
from penstock.spark.watermarks import (
    declared,
    joins_before,
    quoted,
    union,
    watermarked,
    with_arrival,
    with_event_time,
)
from penstock.spark.worker_errors import plain_errors

__all__ = ["SparkOptions", "join_on_spark"]


@dataclass(frozen=True)
class SparkOptions:
    """What `on_spark` takes beside DataFrames and plan; described there."""

    buckets: int | None = None
    kind: bool = False
    initial: Mapping[str, Any] = field(default_factory=dict)
    metrics: str | None = None
    checkpoint: Any = None


_OPTIONS: Final = (
    "workload",
    "indexes",
    "probe_orders",
    "limits",
    "forget",
    "promises",
    *(option.name for option in fields(SparkOptions)),
)


def _check_jumps(query: Query) -> None:
    for stream in query.streams:
        if stream.max_jump_us is not None:
            raise PlanError(
                f"stream {stream.name!r} has max_jump={stream.max_jump!r}, and on Spark the "
                "watermark is Spark's own, which knows no such cap; filter out rows with times far "
                "ahead before the join, and leave max_jump out"
            )


_TOLD_AS_IT_RUNS: Final = ("punctuation", "clustered", "increasing")


def _check_history(query: Query, initial: Mapping[str, Any]) -> None:
    """Refuse the history of a stream whose promises it would have to be heard out for."""
    for stream in query.streams:
        told = [name for name in _TOLD_AS_IT_RUNS if getattr(stream, name)]
        if told and initial:
            raise InputError(
                f"stream {stream.name!r} has {told[0]}=, and what it has promised is not known "
                "from a history; leave initial= out, and read the history as part of the stream"
            )


def join_on_spark(
    query: Query,
    frames: Mapping[str, Any],
    plan: Plan,
    options: SparkOptions,
) -> Any:
    """The joined rows, as a DataFrame: streaming if the inputs are."""
    kind = options.kind
    _check_jumps(query)
    _check_history(query, options.initial)
    spark, streaming = _session(query, frames)
    prepare_session(spark, streaming)
    frames = {name: with_arrival(query, name, frame) for name, frame in frames.items()}
    binding = _bind(query, frames, kind)
    history = _history(query, frames, options.initial, streaming)
    partitions = shuffle_partitions(spark)
    count = divided(query, options.buckets, partitions, pooled=plan.limits is not None)
    if options.checkpoint is not None:
        check_checkpoint(spark, _location(options.checkpoint, streaming), binding, count)
    if plan.limits is not None:
        check_limits(binding, plan, count.here(), streaming=streaming, history=bool(history))
    packed = [
        frames[name].mapInArrow(Packer(binding, stream, count), PACKED)
        for stream, name in enumerate(query.names)
    ]
    schema = output_schema(binding, kind)
    if not streaming:
        grouped = union(packed).groupBy("bucket")
        return grouped.applyInArrow(whole_join(binding, plan, kind), schema)
    ahead = declared(query, frames)
    if query.marked and any(each < horizon_ms(binding) for each in ahead.values()):
        raise PlanError(
            f"how={query.how!r} over the output of another whose windows are shorter would give "
            "out rows behind Spark's watermark; join all streams in one query, or write the output "
            "and read it from there"
        )
    horizon = min([horizon_ms(binding), *ahead.values()])
    past = [
        history[name].mapInArrow(Packer(binding, stream, count, tick_all=True), PACKED)
        for stream, name in enumerate(query.names)
        if name in history
    ]
    place = place_for(spark)
    joins = 1 + joins_before(frames.values())
    # Spark wants different names of all counters in a query.
    metrics = options.metrics or ("penstock" if joins == 1 else f"penstock {joins}")
    joined = (
        union(watermarked(binding, frames, packed, ahead, horizon))
        .groupBy("bucket")
        .transformWithStateInPandas(
            JoinProcessor(binding, plan, place, count, horizon, all_kinds=kind),
            OUTPUT,
            "Append",
            "EventTime",
            union(past).groupBy("bucket") if past else None,
        )
        .observe(metrics, *_counters(), F.max(F.lit(place.name)).alias("hot_state"))
    )
    rows = joined.mapInArrow(Unpacker(binding, kind), schema)
    return with_event_time(rows, binding, horizon, joins)


def _location(checkpoint: Any, streaming: bool) -> str:
    if not streaming:
        raise InputError("checkpoint= is for streaming DataFrames; leave it out with batch ones")
    if not isinstance(checkpoint, str | os.PathLike):
        raise InputError(
            f"checkpoint= takes the path of a checkpoint, got {checkpoint!r}; pass what the query "
            "has as its checkpointLocation"
        )
    return os.fspath(checkpoint)


def _history(
    query: Query, frames: Mapping[str, Any], initial: Mapping[str, Any], streaming: bool
) -> dict[str, Any]:
    """The history of each stream that has one, with the columns of the stream, by name."""
    if initial and not streaming:
        raise InputError(
            "initial= is for streaming DataFrames; with batch ones, union the history with them"
        )
    history = {}
    for name, frame in initial.items():
        if name not in query.names:
            raise InputError(f"initial= has no stream {name!r}; the streams are {query.names}")
        if query.streams[query.position(name)].time is ARRIVAL:
            raise InputError(
                f"initial= has a history of stream {name!r}, which takes its time of arrival, and "
                "when its history arrived is not known; leave it out, or name a time column"
            )
        if not hasattr(frame, "mapInArrow") or frame.isStreaming:
            raise InputError(
                f"initial= needs a batch DataFrame for stream {name!r}, got "
                f"{'a streaming one' if hasattr(frame, 'mapInArrow') else type(frame).__name__}; "
                "read the history with spark.read"
            )
        wanted, given = frames[name].schema, frame.schema
        for column in wanted.fields:
            kinds = [each.dataType for each in given.fields if each.name == column.name]
            if kinds != [column.dataType]:
                raise SchemaError(
                    f"column {column.name!r} of stream {name!r} is "
                    f"{column.dataType.simpleString()}, "
                    f"and in its history {[kind.simpleString() for kind in kinds] or 'missing'}; "
                    "give the history the columns of the stream"
                )
        history[name] = frame.select(*map(quoted, wanted.names))
    return history


def _session(query: Query, frames: Mapping[str, Any]) -> tuple[Any, bool]:
    for name, given in frames.items():
        if name not in query.names and not hasattr(given, "mapInArrow"):
            raise InputError(
                f"on_spark has no option {name!r}, and no stream is called so; the streams are "
                f"{query.names}, the options {', '.join(_OPTIONS)}"
            )
    if set(frames) != set(query.names):
        raise InputError(
            f"on_spark needs a DataFrame for each stream, got {sorted(frames)}; "
            f"the streams are {query.names}"
        )
    for name, frame in frames.items():
        if not hasattr(frame, "mapInArrow"):
            raise InputError(f"stream {name!r} is a {type(frame).__name__}; pass a Spark DataFrame")
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
    binding = bound(Binding.of(query), schemas)
    if kind and KIND in [column.name for column in binding.output]:
        raise SchemaError(
            f"an output column is already called {KIND!r}; rename it with select=, or leave kind="
        )
    return binding


def _counters() -> list[Any]:
    return [F.sum(name).alias(name) for name in COUNTERS]


def whole_join(binding: Binding, plan: Plan, kind: bool) -> Callable[[pa.Table], pa.Table]:
    """The join of a bucket's whole data at once, for batch DataFrames: nothing is late.

    A function of one argument, made for `applyInArrow`, which counts them.
    """
    schemas = blob_schemas(binding)

    def join(blobs: pa.Table) -> pa.Table:
        with plain_errors():
            take_distributed()
            return joined_of(blobs)

    def joined_of(blobs: pa.Table) -> pa.Table:
        data = (each.as_buffer() if each.is_valid else None for each in blobs["data"])
        home, others = read_blobs(schemas, blobs["stream"].to_pylist(), data)
        bucket = blobs["bucket"][0].as_py()
        engine = BucketEngine(binding, plan)
        done = take_batch(engine, Batch(bucket, home, others), BEGINNING, END_OF_TIME)
        if not kind:
            return done.results
        rows = [of_kind(each, "result") for each in done.results.to_batches()]
        for stream, each in done.released.items():
            if each.broken is not None:
                rows.append(of_kind(stream_rows(binding, stream, each.broken), "broken"))
        rows += [of_kind(over_rows(binding, each), "punctuation") for each in done.over]
        return pa.Table.from_batches(rows, with_kind(binding.output_schema()))

    return join
