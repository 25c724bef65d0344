"""The auction streams as a streaming source of Spark's.

    spark.dataSource.register(NexmarkSource)
    spark.readStream.format("penstock_nexmark").option("stream", "bids").option(...).load()

    stream           persons, auctions or bids
    seed             another seed, other rows; 0 when not given
    events           of all three streams together, after which all of them end
    events_per_batch of all three streams together, in one batch

An offset is how many events have been read, the same in all three streams, so that they keep
step. A range of offsets gives the same rows whenever and however often it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.errors import InputError
from penstock.samples.nexmark import Nexmark

__all__ = ["NexmarkSource"]

_EVENTS: Final = "events"  # the only field of an offset
_TASK_ROWS: Final = 1 << 17
_ARROW_ROWS: Final = 1 << 15


class NexmarkSource(DataSource):
    """Made by Spark, with the options of the reader."""

    @classmethod
    def name(cls) -> str:
        return "penstock_nexmark"

    def schema(self) -> StructType:
        return from_arrow_schema(Nexmark.schema(self._stream()))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # Spark's name
        events = self._number("events", 1)
        work = Nexmark(events=events, seed=self._number("seed", None, 0))
        per_batch = self._number("events_per_batch", 1, events)
        return NexmarkReader(work, self._stream(), per_batch)

    def _stream(self) -> str:
        stream = self.options.get("stream")
        if stream not in Nexmark.STREAMS:
            raise InputError(
                f"{self.name()} was asked for stream {stream!r}; set the option stream to one of "
                f"{list(Nexmark.STREAMS)}"
            )
        return stream

    def _number(self, option: str, least: int | None, default: int | None = None) -> int:
        text = self.options.get(option, default)
        try:
            value = int(text if text is not None else "")
            if least is not None and value < least:
                raise ValueError
        except (TypeError, ValueError):
            raise InputError(
                f"option {option} of {self.name()} is {text!r}; set it to a whole number"
                + ("" if least is None else f" of at least {least}")
            ) from None
        return value


@dataclass
class EventRange(InputPartition):
    """Neighbouring rows of a stream, read by one task."""

    start: int
    stop: int


class NexmarkReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads one of the streams."""

    def __init__(self, work: Nexmark, stream: str, events_per_batch: int) -> None:
        self._work = work
        self._stream = stream
        self._events_per_batch = events_per_batch

    def initialOffset(self) -> dict[str, int]:
        return {_EVENTS: 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._events_per_batch)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """At the end this is `start` again: nothing is left to read."""
        stop = self._work.events
        if not isinstance(limit, ReadAllAvailable):
            stop = min(stop, start[_EVENTS] + self._events_per_batch)
        return {_EVENTS: stop}

    def reportLatestOffset(self) -> dict[str, int]:
        return {_EVENTS: self._work.events}

    def prepareForTriggerAvailableNow(self) -> None:
        """All there will ever be is available from the beginning."""

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        first, last = (self._work.rows_of(self._stream, each[_EVENTS]) for each in (start, end))
        tasks = -(-(last - first) // _TASK_ROWS)
        ends = [first + (last - first) * task // tasks for task in range(1, tasks + 1)]
        return [EventRange(*each) for each in zip([first, *ends], ends, strict=False)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, EventRange), "what partitions made"
        for start in range(partition.start, partition.stop, _ARROW_ROWS):
            stop = min(start + _ARROW_ROWS, partition.stop)
            yield self._work.batch(self._stream, start, stop)
