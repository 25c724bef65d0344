"""The demo's query on Spark: started, followed batch by batch, stopped.

Results reach this process a batch at a time, as Arrow. They count when Spark has reported the
batch, so that rows, results and counters are always those of the same batches.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.cli.demo.auctions import WITHIN, Digest, auction_query, examples
from penstock.cli.demo.state import DemoState
from penstock.cli.demo.view import Refresh
from penstock.model.duration import duration_us
from penstock.samples.nexmark import Nexmark

if TYPE_CHECKING:
    from penstock.spark.batch_progress import BatchProgress

__all__ = ["BATCH_EVENTS", "DemoRun"]

BATCH_EVENTS: Final = 250_000
_POLL_S: Final = 0.1
_PATIENCE_POLLS: Final = 600  # for the last report of a query that has ended


class DemoRun:
    """One query over the streams of `work`."""

    def __init__(self, work: Nexmark, state: DemoState, refresh: Refresh) -> None:
        self._work = work
        self._state = state
        self._refresh = refresh
        self._batches: dict[int, Digest] = {}
        self._window_us = duration_us(WITHIN, "within")
        self.digest = Digest()  # of the results so far
        self.events = 0  # read so far

    def run(self, spark: Any, directory: Path, stop_asked: Callable[[], bool]) -> None:
        """Until all rows are joined, or until asked to stop."""
        from penstock.spark.batch_progress import ProgressQueue
        from penstock.spark.nexmark_source import NexmarkSource

        spark.dataSource.register(NexmarkSource)
        progress = ProgressQueue()
        spark.streams.addListener(progress)
        frames = {stream: self._frame(spark, stream) for stream in self._work.STREAMS}
        running = (
            auction_query(self._work)
            .on_spark(frames)
            .writeStream.foreachBatch(self._take)
            .option("checkpointLocation", str(directory / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        self._follow(running, progress.records, stop_asked)

    def _frame(self, spark: Any, stream: str) -> Any:
        return (
            spark.readStream.format("penstock_nexmark")
            .option("stream", stream)
            .option("seed", self._work.seed)
            .option("events", self._work.events)
            .option("events_per_batch", BATCH_EVENTS)
            .load()
        )

    def _take(self, frame: Any, number: int) -> None:
        """Called by Spark with the results of a batch."""
        results: pa.Table = frame.toArrow()
        self._batches[number] = Digest.of(results)
        if self._state.examples is None and results.num_rows:
            self._state.first_results_s = self._state.elapsed_s
            self._state.examples = examples(results)

    def _follow(
        self,
        running: Any,
        records: queue.SimpleQueue[BatchProgress | None],
        stop_asked: Callable[[], bool],
    ) -> None:
        stopped = False
        polls_after_end = 0
        while polls_after_end < _PATIENCE_POLLS:
            try:
                record = records.get(timeout=_POLL_S)
            except queue.Empty:
                polls_after_end += not running.isActive
                if not stopped and stop_asked():
                    stopped = True
                    running.stop()
                continue
            if record is None:
                break
            self._add(record)
        # A query that is stopped in the middle of a batch may complain of that.
        if not stopped and (error := running.exception()):
            raise error

    def _add(self, record: BatchProgress) -> None:
        """Count a batch that has ended."""
        state = self._state
        is_first_result = not state.results
        events = max(offset["events"] for offset in record.offsets)
        for stream in self._work.STREAMS:
            rows = self._work.rows_of(stream, events)
            state.stream_speeds[stream] = (rows - state.rows[stream]) / record.seconds
            state.rows[stream] = rows
        self.events = events
        self.digest += self._batches.pop(record.number, Digest())
        state.results = self.digest.rows
        if is_first_result and state.results:
            self._refresh("examples")
        if not record.rows:
            return  # the last batch reads nothing, and lets Spark's watermark catch up
        if state.first_batch_at is None:
            state.first_batch_at = time.perf_counter()
        state.seconds.append(record.seconds)
        state.batch_rows.append(record.rows)
        state.speeds.append(record.rows / record.seconds)
        state.late += record.late
        state.rebuilt += record.rebuilt
        state.live, state.bytes = record.live, record.bytes
        state.peak_live = max(state.peak_live, record.live)
        if record.newest_us is not None and record.spark_watermark_us is not None:
            # The join's watermark is ahead of Spark's by the window.
            state.lag_us = record.newest_us - record.spark_watermark_us - self._window_us
        self._refresh("batch")
        if state.all_rows < state.total:
            state.wait("query", f"batch {len(state.seconds) + 1}, a few seconds")
        else:
            state.wait("query", "the query ends, a few seconds")
