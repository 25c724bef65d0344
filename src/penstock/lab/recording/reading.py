"""A recording read from a source that can be read twice: whole if it is small, else sampled.

The first reading keeps the rows while they are few, and surveys the streams. If they are too many,
a second one takes the sample that the survey calls for. So no more is ever held than is joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from penstock.errors import PlanError
from penstock.lab.recording.key_sample import KeySample, check_divisible, chosen_sample
from penstock.lab.recording.recording import (
    Recording,
    WholeRecording,
    deciding_columns,
    slim_binding,
)
from penstock.lab.recording.survey import StreamSurvey, arrivals_of, slot_us, surveyed_need
from penstock.window_join import WindowJoin

__all__ = ["JOINED_ROWS", "FirstReading", "Streams", "read_recording", "read_twice"]

# What is joined at most, unless more is asked for: all policies in about a minute.
JOINED_ROWS: Final = 200_000

Streams = Mapping[str, Iterable[pa.RecordBatch]]
"""Batches of one schema, by stream."""


class FirstReading(NamedTuple):
    """rows: of all streams together. row_bytes: by stream, of a row with all its columns. surveys:
    one for each stream. tables: all rows; None if they are too many."""

    rows: int
    row_bytes: Mapping[str, float]
    surveys: Sequence[StreamSurvey]
    tables: Mapping[str, pa.Table] | None


class TwiceReadable(Protocol):
    """Streams that can be read twice, for the columns that decide the answer."""

    def first(self, most_rows: int | None) -> FirstReading:
        """Survey the streams, and return their rows if there are at most `most_rows`. None: return
        the rows in any case, without a survey."""
        ...

    def second(self, sample: KeySample) -> Mapping[str, pa.Table]:
        """The rows of a sample."""
        ...


def read_recording(
    query: WindowJoin,
    opened: Callable[[], Streams],
    schemas: Mapping[str, pa.Schema],
    *,
    share: float | None = None,
    seed: int = 0,
) -> Recording:
    """All rows, or a sample of them.

    opened: the streams from their beginning, each time that it is called. share, seed: as in
    `read_twice`.
    """
    return read_twice(query, _BatchStreams(query, opened, schemas), share, seed)


def read_twice(
    query: WindowJoin, streams: TwiceReadable, share: float | None, seed: int
) -> Recording:
    """All rows, or a sample of them.

    share: about which part of the tuples to sample; when not given, all of them, or JOINED_ROWS if
    there are more. seed: of the sample.
    """
    if share is not None and not 0 < share <= 1:
        raise PlanError(f"a sample is a part of the rows, above 0 and at most 1, got {share!r}")
    if share is not None and share < 1:
        check_divisible(query)
    keeps_all = share == 1 or not query.keys[0]
    most_rows = JOINED_ROWS if share is None else 0
    first = streams.first(None if keeps_all else most_rows)
    if first.tables is not None:
        return Recording.of(query, first.tables, row_bytes=first.row_bytes)
    tuples = sum(each.tuples for each in first.surveys)
    wanted = JOINED_ROWS if share is None else max(round(share * tuples), 1)
    sample = chosen_sample([each.frequent for each in first.surveys], wanted, seed)
    return Recording.of(
        query,
        streams.second(sample),
        row_bytes=first.row_bytes,
        sample=sample,
        whole=WholeRecording(first.rows, tuples, surveyed_need(query, first.surveys)),
    )


class _BatchStreams:
    """Streams that come in batches."""

    def __init__(
        self,
        query: WindowJoin,
        opened: Callable[[], Streams],
        schemas: Mapping[str, pa.Schema],
    ) -> None:
        self._names, self._opened = query.names, opened
        self._columns = [deciding_columns(query, stream) for stream in range(len(query.names))]
        self._schemas = [
            pa.schema([schemas[name].field(column) for column in columns])
            for name, columns in zip(query.names, self._columns, strict=True)
        ]
        self._binding = slim_binding(query, self._schemas)
        self._slot_us = slot_us(query)

    def first(self, most_rows: int | None) -> FirstReading:
        streams = self._opened()
        kept: list[list[pa.RecordBatch]] | None = [[] for _ in self._names]
        surveys = [StreamSurvey(self._slot_us) for _ in self._names]
        row_bytes, total = {}, 0
        for stream, name in enumerate(self._names):
            rows, size = 0, 0
            for batch in streams[name]:
                rows, size = rows + len(batch), size + batch.nbytes
                slim = batch.select(self._columns[stream])
                if most_rows is not None:
                    surveys[stream].add(arrivals_of(self._binding, stream, slim))
                    if total + rows > most_rows:
                        kept = None
                if kept is not None:
                    kept[stream].append(slim)
            row_bytes[name] = size / max(rows, 1)
            total += rows
        tables = None if kept is None else self._tables(kept)
        return FirstReading(total, row_bytes, surveys, tables)

    def second(self, sample: KeySample) -> dict[str, pa.Table]:
        streams = self._opened()
        return self._tables(
            [
                [
                    sample.rows_of(self._binding, stream, batch.select(self._columns[stream]))
                    for batch in streams[name]
                ]
                for stream, name in enumerate(self._names)
            ]
        )

    def _tables(self, batches: list[list[pa.RecordBatch]]) -> dict[str, pa.Table]:
        return {
            name: pa.Table.from_batches(each, schema)
            for name, each, schema in zip(self._names, batches, self._schemas, strict=True)
        }
