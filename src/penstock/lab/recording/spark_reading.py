"""A recording in Spark DataFrames: surveyed and sampled where it is.

What reaches this process is counts, of frequent keys and of slots of time, and the rows of the
sample; all rows, if they are few. Keys are hashed by the same function as everywhere, so the sample
is that which would be taken here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.arena import Words
from penstock.lab.recording.key_sample import KeySample
from penstock.lab.recording.reading import FirstReading, read_twice
from penstock.lab.recording.recording import Recording, deciding_columns, slim_binding
from penstock.lab.recording.survey import StreamSurvey, arrivals_of, slot_us
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
    """All rows, or a sample of them. share, seed: as in `reading.read_twice`."""
    return read_twice(query, _FrameStreams(query, frames), share, seed)


class _FrameStreams:
    """Spark DataFrames, by stream."""

    def __init__(self, query: WindowJoin, frames: Mapping[str, Any]) -> None:
        prepare_session(frames[query.names[0]].sparkSession, streaming=False)
        self._query, self._frames = query, frames
        self._slim = [
            frames[name].select(*deciding_columns(query, stream))
            for stream, name in enumerate(query.names)
        ]

    @cached_property
    def _binding(self) -> Binding:
        schemas = [frame.limit(0).toArrow().schema for frame in self._slim]
        return slim_binding(self._query, schemas)

    def first(self, most_rows: int | None) -> FirstReading:
        some = {name: self._frames[name].limit(_WIDTH_ROWS).toArrow() for name in self._query.names}
        row_bytes = {name: each.nbytes / max(len(each), 1) for name, each in some.items()}
        if most_rows is None:
            return FirstReading(0, row_bytes, [], self._tables(self._slim))
        found = [_surveyed(frame, self._binding, at) for at, frame in enumerate(self._slim)]
        rows = sum(each for _, each in found)
        tables = self._tables(self._slim) if rows <= most_rows else None
        return FirstReading(rows, row_bytes, [survey for survey, _ in found], tables)

    def second(self, sample: KeySample) -> dict[str, pa.Table]:
        return self._tables(
            frame.mapInArrow(Taker(self._binding, stream, sample), frame.schema)
            for stream, frame in enumerate(self._slim)
        )

    def _tables(self, frames: Iterable[Any]) -> dict[str, pa.Table]:
        return {
            name: frame.toArrow() for name, frame in zip(self._query.names, frames, strict=True)
        }


def _surveyed(frame: Any, binding: Binding, stream: int) -> tuple[StreamSurvey, int]:
    """The survey of a stream, and how many rows it has."""
    width_us = slot_us(binding.query)
    counter = Counter(binding, stream, width_us)
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
