"""A recording in Spark DataFrames: surveyed and sampled where it is.

What reaches this process is counts, of frequent keys and of slots of time, and the rows of the
sample; all rows, if they are few. Keys are hashed by the same function as everywhere, so the sample
is that which would be taken here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.residual import bound
from penstock.kernels.arena import Words
from penstock.lab.sizing.reading import JOINED_ROWS, check_share
from penstock.lab.sizing.recording import Recording, Whole, deciding_columns
from penstock.lab.sizing.sample import KeySample, chosen_sample
from penstock.lab.sizing.survey import StreamSurvey, arrivals_of, slot_us, surveyed_need
from penstock.model.binding import Binding
from penstock.spark.rows.packing import in_schema
from penstock.spark.session import prepare_session
from penstock.window_join import WindowJoin

__all__ = ["read_frames"]

# What is counted, and of what.
_COUNTED: Final = "kind int, what bigint, tuples bigint"
_SCHEMA: Final = pa.schema([("kind", pa.int32()), ("what", pa.int64()), ("tuples", pa.int64())])
_KEY, _SLOT, _ROW = 0, 1, 2
_FREQUENT: Final = 1 << 12
_WIDTH_ROWS: Final = 1_000  # to measure the width of rows by


def read_frames(
    query: WindowJoin, frames: Mapping[str, Any], *, share: float | None = None, seed: int = 0
) -> Recording:
    """All rows, or a sample of them. share, seed: as in `reading.read_recording`."""
    check_share(query, share)
    prepare_session(frames[query.names[0]].sparkSession, streaming=False)
    slim = [
        frames[name].select(*deciding_columns(query, stream))
        for stream, name in enumerate(query.names)
    ]
    widths = {name: _width(frames[name]) for name in query.names}
    if share == 1 or not query.keys[0]:
        return _whole(query, slim, widths)
    unselected = replace(query, select=[])
    schemas = [frame.limit(0).toArrow().schema for frame in slim]
    binding = bound(Binding.of(unselected), dict(enumerate(schemas)))
    width_us = slot_us(query)
    surveyed = [
        _surveyed(frame, Counter(binding, stream, width_us), width_us)
        for stream, frame in enumerate(slim)
    ]
    surveys = [survey for survey, _ in surveyed]
    rows = sum(each for _, each in surveyed)
    if share is None and rows <= JOINED_ROWS:
        return _whole(query, slim, widths)
    tuples = sum(each.tuples for each in surveys)
    wanted = JOINED_ROWS if share is None else max(round(share * tuples), 1)
    sample = chosen_sample([each.frequent for each in surveys], wanted, seed)
    tables = {
        name: frame.mapInArrow(Taker(binding, stream, sample), frame.schema).toArrow()
        for stream, (name, frame) in enumerate(zip(query.names, slim, strict=True))
    }
    whole = Whole(rows, tuples, surveyed_need(query, surveys))
    return Recording.of(query, tables, row_bytes=widths, sample=sample, whole=whole)


def _whole(query: WindowJoin, frames: list[Any], widths: Mapping[str, float]) -> Recording:
    tables = {name: frame.toArrow() for name, frame in zip(query.names, frames, strict=True)}
    return Recording.of(query, tables, row_bytes=widths)


def _width(frame: Any) -> float:
    some: pa.Table = frame.limit(_WIDTH_ROWS).toArrow()
    return float(some.nbytes) / max(len(some), 1)


def _surveyed(frame: Any, counter: Counter, width_us: int) -> tuple[StreamSurvey, int]:
    """The survey of a stream, and how many rows it has."""
    counts = frame.mapInArrow(counter, _COUNTED).groupBy("kind", "what").sum("tuples")
    counts = counts.withColumnRenamed("sum(tuples)", "tuples").persist()
    try:
        keys = counts.where(f"kind = {_KEY}")
        frequent = keys.orderBy("tuples", ascending=False).limit(_FREQUENT).toArrow()
        rest = counts.where(f"kind <> {_KEY}").toArrow()
    finally:
        counts.unpersist()
    survey = StreamSurvey(width_us)
    slots = rest.filter(pc.equal(rest["kind"], _SLOT))
    survey.add_slots(slots["what"].to_numpy(), slots["tuples"].to_numpy())
    tuples = int(slots["tuples"].to_numpy().sum())
    survey.frequent.restore(frequent["what"].to_numpy(), frequent["tuples"].to_numpy(), tuples)
    rows = rest.filter(pc.equal(rest["kind"], _ROW))["tuples"].to_numpy()
    return survey, int(rows.sum())


@dataclass(frozen=True)
class Counter:
    """Counts the tuples of a stream by key and by slot, and its rows; made for `mapInArrow`."""

    binding: Binding
    stream: int
    width_us: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = self.binding.schemas[self.stream]
        for batch in batches:
            arrivals = arrivals_of(self.binding, self.stream, in_schema(batch, schema))
            yield _counts(_KEY, arrivals.keys)
            yield _counts(_SLOT, arrivals.ts // self.width_us)
            yield _counts(_ROW, np.zeros(len(batch), np.int64))


def _counts(kind: int, what: Words) -> pa.RecordBatch:
    values, counts = np.unique(what, return_counts=True)
    kinds = np.full(len(values), kind, np.int32)
    columns = [pa.array(kinds), pa.array(values), pa.array(counts.astype(np.int64))]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


@dataclass(frozen=True)
class Taker:
    """Takes the rows of a sample; made for `mapInArrow`."""

    binding: Binding
    stream: int
    sample: KeySample

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = self.binding.schemas[self.stream]
        for batch in batches:
            yield self.sample.rows_of(self.binding, self.stream, in_schema(batch, schema))
