"""The clock of a query with idle timeouts: an operator of its own, before the join.

Spark's watermark is the lowest of all streams', and a silent stream holds it for ever. So if a
stream has an idle timeout, Spark is given one watermark only, that of the join's own clock:

    time of a -- tick --+
                        +- clock - watermark --+
    time of b -- tick --+                      +- union - by bucket - join
    stream a --- pack -------------------------+
    stream b --- pack -------------------------+

The clock is the one of the embedded engine, in a single group, with Spark's time of the batch
for the wall clock: a batch that is repeated sees the same. It comes as a column, since an
operator that asks for processing time has Spark run batches without end. Sources are read
twice, the second time for the time column alone. After a restart silence is counted anew, as
after `restore`. Times are whole microseconds here: pandas would have them in the session's zone.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.engine.clock import Clock
from penstock.engine.intake import event_times
from penstock.errors import SnapshotError
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.model.query import Query
from penstock.runtime.envelope import seal, unseal
from penstock.spark.rows.packing import in_schema
from penstock.spark.worker_errors import plain_errors

__all__ = ["TICKS", "WATERMARKS", "ClockProcessor", "Ticker", "ticked"]

TICKS: Final = "clock int, stream int, time_us bigint"  # all of one group, and `now_us` added
WATERMARKS: Final = "time_us bigint"

_TICKS: Final = pa.schema([("clock", pa.int32()), ("stream", pa.int32()), ("time_us", pa.int64())])


@dataclass(frozen=True)
class Ticker:
    """The newest time of a task's rows, of which it is given the time column only."""

    binding: Binding
    stream: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        query = self.binding.query
        schema = self.binding.schemas[self.stream]
        assert schema is not None, "on Spark every stream's schema is known"
        times = pa.schema([schema.field(query.streams[self.stream].time_column)])
        newest = [
            event_times(query, self.stream, in_schema(batch, times)).latest
            for batch in batches
            if len(batch)
        ]
        if newest:
            tick = {"clock": [0], "stream": [self.stream], "time_us": [max(newest)]}
            yield pa.RecordBatch.from_pydict(tick, schema=_TICKS)


def ticked(
    query: Query, run: str, before: bytes | None, newest: Mapping[int, int], now_s: float
) -> tuple[bytes, int]:
    """The clock after a batch with these newest times: its bytes, and the join's watermark."""
    clock = Clock(query, lambda: now_s)
    heard = [now_s] * len(query.streams)
    if before is not None:
        state = json.loads(bytes(unseal(before, "clock")))
        if state["streams"] != list(query.names):
            raise SnapshotError(
                f"the checkpoint is of another join: its streams were {state['streams']}, now "
                f"they are {list(query.names)}; use the query that wrote it, or a new checkpoint"
            )
        clock.restore(state["watermarks"], state["watermark"])
        if state["run"] == run:
            heard = state["heard"]
            clock.listen(heard)
    clock.settle(clock.after(newest, clock.now()), newest)
    state = {
        "streams": query.names,
        "run": run,
        "watermarks": clock.watermarks,
        "watermark": clock.watermark,
        "heard": [now_s if stream in newest else each for stream, each in enumerate(heard)],
    }
    return seal(json.dumps(state).encode(), "clock"), clock.watermark


class ClockProcessor(StatefulProcessor):
    """Ticks of all streams in, the join's watermark out."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._run = secrets.token_hex(8)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self._state = handle.getValueState("clock", "data binary")

    def handleInputRows(  # Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # Spark's
    ) -> Iterator[pd.DataFrame]:
        newest: dict[int, int] = {}
        now_us = 0
        for frame in rows:
            now_us = int(frame["now_us"].iloc[0])
            for stream, time_us in zip(frame["stream"], frame["time_us"], strict=True):
                newest[stream] = max(newest.get(stream, BEGINNING), time_us)
        before = self._state.get() if self._state.exists() else None
        task = TaskContext.get()
        with plain_errors():
            data, watermark = ticked(
                self._query,
                # Spark's id of this run of the query.
                (task and task.getLocalProperty("spark.jobGroup.id")) or self._run,
                None if before is None else bytes(before[0]),
                newest,
                now_us / 1e6,
            )
        self._state.update((data,))
        if watermark > BEGINNING:
            yield pd.DataFrame({"time_us": [watermark]})

    def close(self) -> None:
        """Nothing to free."""
