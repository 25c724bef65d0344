"""An auction site as three streams, after NEXMark: persons sign up, put up auctions, and bid.

Events are numbered through all three streams. Of every 50, the first is a person, the next 3
are auctions and 46 are bids; so the event of row m of a stream, and how many persons and
auctions there are by then, is arithmetic. Whatever else a row holds comes from random words at
its own offset. Hence a row is a pure function of (seed, stream, offset), and any rows can be
made without those before them.

Event times rise with the event number, and `disorder` moves each row forward by a random
length up to it: a row is behind an earlier one by at most that, and a join with that lateness
finds none late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from penstock.model.duration import Duration, duration_us
from penstock.samples.nexmark_columns import COLUMNS, EVENTS_PER_ROUND, PLACES, Rows

__all__ = ["Nexmark"]

_START_US: Final = 1_704_067_200_000_000  # 2024-01-01 00:00:00


@dataclass(frozen=True, kw_only=True)
class Nexmark:
    """The three streams of one seed.

    events: rows of all streams together. They are made when asked for, so it may be huge.
    rate: events per second of event time.
    disorder: how far a row may be behind an earlier one of its stream.
    """

    STREAMS: ClassVar[tuple[str, ...]] = tuple(COLUMNS)

    events: int
    seed: int = 0
    rate: float = 10_000.0
    disorder: Duration = "2 seconds"

    def __post_init__(self) -> None:
        if self.events < 0:
            raise ValueError(f"events must be zero or more, got {self.events!r}")
        if not 0 < self.rate <= 1_000_000:
            raise ValueError(
                f"rate must be above 0 and at most 1,000,000 events a second, got {self.rate!r}"
            )
        duration_us(self.disorder, "disorder")

    @staticmethod
    def schema(stream: str, columns: Sequence[str] | None = None) -> pa.Schema:
        """The columns of a stream: all, or those named."""
        kinds = {name: kind for name, (kind, _) in COLUMNS[_checked(stream)].items()}
        return pa.schema([(name, kinds[name]) for name in columns or kinds])

    @staticmethod
    def rows_of(stream: str, events: int) -> int:
        """How many of the first `events` events belong to a stream."""
        begin, count = PLACES[_checked(stream)]
        rounds, rest = divmod(events, EVENTS_PER_ROUND)
        return rounds * count + min(max(rest - begin, 0), count)

    def batch(
        self, stream: str, start: int, stop: int, columns: Sequence[str] | None = None
    ) -> pa.RecordBatch:
        """Rows `start` to `stop` of a stream, of those there are; all columns, or those named."""
        schema = self.schema(stream, columns)
        stop = min(stop, self.rows_of(stream, self.events))
        start = min(max(start, 0), max(stop, 0))
        begin, count = PLACES[stream]
        rounds, places = np.divmod(np.arange(start, stop, dtype=np.int64), count)
        rows = Rows(
            seed=self.seed,
            stream=self.STREAMS.index(stream),
            start=start,
            events=rounds * EVENTS_PER_ROUND + begin + places,
            first_us=_START_US,
            event_us=1e6 / self.rate,
            disorder_us=duration_us(self.disorder, "disorder"),
        )
        arrays = [COLUMNS[stream][name][1](rows) for name in schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def batches(
        self, batch_events: int, columns: dict[str, Sequence[str]] | None = None
    ) -> Iterator[dict[str, pa.RecordBatch]]:
        """All rows, those of `batch_events` events at a time; the last batch may be shorter."""
        if batch_events < 1:
            raise ValueError(f"a batch needs at least one event, got {batch_events!r}")
        for start in range(0, self.events, batch_events):
            stop = start + batch_events
            yield {
                stream: self.batch(
                    stream,
                    self.rows_of(stream, start),
                    self.rows_of(stream, stop),
                    (columns or {}).get(stream),
                )
                for stream in self.STREAMS
            }


def _checked(stream: str) -> str:
    if stream not in COLUMNS:
        raise ValueError(f"no stream is called {stream!r}; the streams are {Nexmark.STREAMS!r}")
    return stream
