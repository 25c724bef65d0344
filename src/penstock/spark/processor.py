"""The stateful processor: Spark's calls on one side, a bucket on the other."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.engine.clock import BEGINNING
from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.model.window import FOREVER
from penstock.spark.blobs import (
    RESULT,
    Parts,
    blob_schema,
    read_blob,
    read_blobs,
    tick_time,
    write_blobs,
)
from penstock.spark.bucket import Bucket, Step
from penstock.spark.bucket_count import BucketCount
from penstock.spark.hot import HotState, ProcessMemory
from penstock.spark.kernels import take_distributed
from penstock.spark.mapped import MappedFiles
from penstock.spark.scratch import Place
from penstock.spark.worker_errors import plain_errors

__all__ = ["COUNTERS", "OUTPUT", "JoinProcessor", "horizon_ms"]

# A row of the operator's output: joined rows, or the late rows of one stream, and the
# counters of the bucket in this batch, in its first row only.
OUTPUT: Final = (
    "stream int, data binary, "
    "produced bigint, late bigint, live bigint, bytes bigint, rebuilt bigint, "
    "lost double, lost_variance double, shed bigint, ghosts bigint, unprobed bigint"
)

_NAMES: Final = [part.split()[0] for part in OUTPUT.split(", ")]
COUNTERS: Final = tuple(_NAMES[2:])
_FRAME_BYTES: Final = 8 << 20  # of output at once: each is copied several times on its way


@functools.lru_cache(maxsize=4)
def _hot_state(place: Place) -> HotState:
    """That of a query, one for each worker process: workers serve many batches."""
    root = place.root()
    return ProcessMemory() if root is None else MappedFiles(root, place.name)


def horizon_ms(binding: Binding) -> int:
    """How far behind the join's watermark Spark's is kept: no result may be behind Spark's."""
    lengths = [window.length_us for window in binding.query.windows]
    # A window without an end has no results that wait for it.
    longest = max([length for length in lengths if length < FOREVER], default=0)
    return -(-max(longest, 0) // 1000) + 1


class JoinProcessor(StatefulProcessor):
    """One bucket at a time, as Spark asks for it."""

    def __init__(
        self,
        binding: Binding,
        plan: Plan,
        place: Place,
        buckets: BucketCount,
        horizon_ms: int,
        *,
        keep_late: bool,
    ) -> None:
        self._place = place
        self._buckets = buckets
        self._binding = binding
        self._plan = plan
        self._keep_late = keep_late
        self._horizon_ms = horizon_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state. This also runs on the driver, where there is no more to do."""
        self._handle = handle
        self._store = StateStore(handle, self._horizon_ms)
        self._bucket: Bucket | None = None
        streams = range(len(self._binding.query.streams))
        self._schemas = [blob_schema(self._binding, stream) for stream in streams]

    def handleInputRows(  # Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # Spark's
    ) -> Iterator[pd.DataFrame]:
        frames = list(rows)
        streams = chain.from_iterable(frame["stream"] for frame in frames)
        data = chain.from_iterable(frame["data"] for frame in frames)
        return self._stepped(key, read_blobs(self._schemas, streams, data), timerValues)

    def handleInitialState(  # Spark's name
        self,
        key: Any,
        initialState: pd.DataFrame,  # Spark's
        timerValues: Any,  # Spark's
    ) -> None:
        batches: dict[int, list[pa.RecordBatch]] = {}
        newest: dict[int, int] = {}
        rows = zip(*(initialState[name] for name in ("stream", "time", "data")), strict=True)
        for stream, time, data in rows:
            if pd.isna(time):
                batches.setdefault(stream, []).append(read_blob(data, self._schemas[stream]))
            else:
                newest[stream] = max(newest.get(stream, BEGINNING), tick_time(data))
        self._store.spark_ms = timerValues.getCurrentWatermarkInMs()
        with plain_errors():
            self._bucket_worker().begin(self._store, batches, newest)

    def handleExpiredTimer(  # Spark's name
        self,
        key: Any,
        timerValues: Any,
        expiredTimerInfo: Any,  # Spark's
    ) -> Iterator[pd.DataFrame]:
        watermark = self._watermark(timerValues)
        with plain_errors():
            step = self._bucket_worker().wake(str(key[0]), self._store, watermark)
        if step is None:
            return
        has_lost = bool(step.lost or step.lost_variance or step.shed)
        for frame in self._output(step):
            # Of a bucket that was woken only what it gives out, or loses, belongs to the batch.
            if has_lost or frame["data"].notna().any():
                yield frame

    def close(self) -> None:
        """Nothing is held between the batches that another call would have to free."""

    def _stepped(self, key: Any, parts: tuple[Parts, Parts], timers: Any) -> Iterator[pd.DataFrame]:
        home, guests = parts
        watermark = self._watermark(timers)
        with plain_errors():
            step = self._bucket_worker().step(str(key[0]), self._store, home, watermark, guests)
        yield from self._output(step)

    def _watermark(self, timers: Any) -> int:
        """The join's, in this batch."""
        spark_ms = self._store.spark_ms = timers.getCurrentWatermarkInMs()
        # Zero is Spark's word for no watermark yet.
        return BEGINNING if spark_ms <= 0 else (spark_ms + self._horizon_ms) * 1000

    def _bucket_worker(self) -> Bucket:
        if self._bucket is None:  # not in init, which also runs on the driver
            take_distributed()
            hot = _hot_state(self._place)
            division = (self._buckets.here(), self._buckets.partitions_here())
            self._bucket = Bucket(self._binding, self._plan, hot, division)
        return self._bucket

    def _output(self, step: Step) -> Iterator[pd.DataFrame]:
        late = sum(len(rows) for rows in step.late.values())
        # Counters are summed over the rows of all buckets: each is to count once.
        counters: tuple[Any, ...] = (
            *(step.results.num_rows, late, step.live, step.bytes, int(step.rebuilt)),
            *(step.lost, step.lost_variance, step.shed, step.ghosts, step.unprobed),
        )
        # What is not counted at all is null, in all rows.
        told = tuple(None if each is None else 0 for each in counters)
        rows: list[tuple[Any, ...]] = []
        size, is_told = 0, False
        for stream, data in self._blobs(step):
            rows.append((stream, data, *(told if is_told else counters)))
            is_told = True
            size += len(data)
            if size >= _FRAME_BYTES:
                yield pd.DataFrame(rows, columns=_NAMES)
                rows, size = [], 0
        if not is_told:
            rows.append((RESULT, None, *counters))
        if rows:
            yield pd.DataFrame(rows, columns=_NAMES)

    def _blobs(self, step: Step) -> Iterator[tuple[int, bytes]]:
        for batch in step.results.to_batches():
            for data in write_blobs(batch):
                yield RESULT, data
        if self._keep_late:
            for stream, rows in step.late.items():
                for data in write_blobs(rows):
                    yield stream, data


class StateStore:
    """A bucket's calls as Spark's: one value for the manifest, one map for the segments."""

    def __init__(self, handle: StatefulProcessorHandle, horizon_ms: int) -> None:
        self._handle = handle
        self._horizon_ms = horizon_ms
        self.spark_ms = 0
        self._manifest = handle.getValueState("manifest", "data binary")
        self._segments = handle.getMapState("segments", "stream int, number bigint", "data binary")

    def read_manifest(self) -> bytes | None:
        value = self._manifest.get()
        return None if value is None else bytes(value[0])

    def write_manifest(self, data: bytes) -> None:
        self._manifest.update((data,))

    def read_segment(self, stream: int, number: int) -> bytes | None:
        value = self._segments.getValue((stream, number))
        return None if value is None else bytes(value[0])

    def write_segment(self, stream: int, number: int, data: bytes) -> None:
        self._segments.updateValue((stream, number), (data,))

    def remove_segment(self, stream: int, number: int) -> None:
        self._segments.removeKey((stream, number))

    def wake_at(self, watermark: int) -> None:
        # A timer goes off when Spark's watermark has come to it: neither before the join's has
        # come to what was asked for, nor, since that is ahead, in this same batch.
        moment = -(-watermark // 1000) - self._horizon_ms
        self._handle.registerTimer(max(moment, self.spark_ms + 1, 1))
