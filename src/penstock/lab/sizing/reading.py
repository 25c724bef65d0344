"""A recording read from streams that can be read again: whole if it is small, else sampled.

The first reading keeps the rows while they are few, and surveys the streams. If they are too many,
a second one takes the sample that the survey calls for. So no more is ever held than is joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa

from penstock.engine.residual import bound
from penstock.errors import PlanError
from penstock.lab.sizing.recording import Recording, Whole, deciding_columns
from penstock.lab.sizing.sample import KeySample, check_divisible, chosen_sample
from penstock.lab.sizing.survey import StreamSurvey, arrivals_of, slot_us, surveyed_need
from penstock.model.binding import Binding
from penstock.window_join import WindowJoin

__all__ = ["JOINED_ROWS", "Streams", "check_share", "read_recording"]

# What is joined at most, unless more is asked for: all policies in about a minute.
JOINED_ROWS: Final = 200_000

Streams = Mapping[str, Iterable[pa.RecordBatch]]
"""Batches of one schema, by stream."""


def read_recording(
    query: WindowJoin,
    opened: Callable[[], Streams],
    schemas: Mapping[str, pa.Schema],
    *,
    share: float | None = None,
    seed: int = 0,
) -> Recording:
    """All rows, or a sample of them.

    opened: the streams from their beginning, each time that it is called. share: about which part
    of the tuples to sample; when not given, all of them, or JOINED_ROWS if there are more. seed:
    of the sample.
    """
    check_share(query, share)
    reading = _Reading(query, schemas)
    keeps_all = share == 1 or not query.keys[0]
    most_rows = JOINED_ROWS if share is None else 0
    tables = reading.first(opened(), None if keeps_all else most_rows)
    if tables is not None:
        return Recording.of(query, tables, row_bytes=reading.row_bytes)
    tuples = sum(each.tuples for each in reading.surveys)
    wanted = JOINED_ROWS if share is None else max(round(share * tuples), 1)
    sample = chosen_sample([each.frequent for each in reading.surveys], wanted, seed)
    return Recording.of(
        query,
        reading.second(opened(), sample),
        row_bytes=reading.row_bytes,
        sample=sample,
        whole=Whole(sum(reading.rows), tuples, surveyed_need(query, reading.surveys)),
    )


def check_share(query: WindowJoin, share: float | None) -> None:
    """Refuse a sample that cannot be taken."""
    if share is not None and not 0 < share <= 1:
        raise PlanError(f"a sample is a part of the rows, above 0 and at most 1, got {share!r}")
    if share is not None and share < 1:
        check_divisible(query)


class _Reading:
    """Both readings of one recording."""

    def __init__(self, query: WindowJoin, schemas: Mapping[str, pa.Schema]) -> None:
        self._names = query.names
        self._columns = [deciding_columns(query, stream) for stream in range(len(query.names))]
        self._schemas = [
            pa.schema([schemas[name].field(column) for column in columns])
            for name, columns in zip(query.names, self._columns, strict=True)
        ]
        query = replace(query, select=[])
        self._binding = bound(Binding.of(query), dict(enumerate(self._schemas)))
        self.surveys = [StreamSurvey(slot_us(query)) for _ in query.names]
        self.rows = [0] * len(query.names)
        self._bytes = [0] * len(query.names)

    @property
    def row_bytes(self) -> dict[str, float]:
        """By stream, of a row with all its columns."""
        counts = zip(self._names, self._bytes, self.rows, strict=True)
        return {name: size / max(rows, 1) for name, size, rows in counts}

    def first(self, streams: Streams, most_rows: int | None) -> dict[str, pa.Table] | None:
        """Survey the streams; return their rows if there are at most `most_rows` (None: any)."""
        kept: list[list[pa.RecordBatch]] | None = [[] for _ in self._names]
        for stream, name in enumerate(self._names):
            for batch in streams[name]:
                self.rows[stream] += len(batch)
                self._bytes[stream] += batch.nbytes
                slim = batch.select(self._columns[stream])
                if most_rows is not None:
                    self.surveys[stream].add(arrivals_of(self._binding, stream, slim))
                    if sum(self.rows) > most_rows:
                        kept = None
                if kept is not None:
                    kept[stream].append(slim)
        return None if kept is None else self._tables(kept)

    def second(self, streams: Streams, sample: KeySample) -> dict[str, pa.Table]:
        """The rows of a sample."""
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
