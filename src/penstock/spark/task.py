"""What a worker does when Spark calls for a bucket: rows in, frames of blobs and counters out."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from itertools import chain
from typing import Any, Final

import pandas as pd
import pyarrow as pa

from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.spark.bucket_count import BucketCount
from penstock.spark.processor import NAMES, StateStore
from penstock.spark.rows.blobs import (
    BROKEN,
    OVER,
    RESULT,
    read_blob,
    read_blobs,
    tick_time,
    write_blobs,
)
from penstock.spark.rows.over import over_rows
from penstock.spark.rows.packing import blob_schemas
from penstock.spark.sent_kernels import take_distributed
from penstock.spark.state.bucket import Bucket, BucketStep
from penstock.spark.state.hot import HotState, ProcessMemory
from penstock.spark.state.mapped import MappedFiles
from penstock.spark.state.scratch import Place
from penstock.spark.worker_errors import plain_errors

__all__ = ["Task"]

_FRAME_BYTES: Final = 8 << 20  # of output at once: each is copied several times on its way


@functools.lru_cache(maxsize=4)
def _hot_state(place: Place) -> HotState:
    """That of a query, one for each worker process: workers serve many batches."""
    root = place.root()
    return ProcessMemory() if root is None else MappedFiles(root, place.name)


class Task:
    """The buckets of one partition, one after another, over the store of Spark's task.

    all_kinds: whether rows that are no results are given out.
    """

    def __init__(
        self,
        binding: Binding,
        plan: Plan,
        place: Place,
        buckets: BucketCount,
        *,
        all_kinds: bool,
    ) -> None:
        take_distributed()
        division = (buckets.here(), buckets.partitions_here())
        self._bucket = Bucket(binding, plan, _hot_state(place), division)
        self._all_kinds = all_kinds
        self._binding = binding
        self._schemas = blob_schemas(binding)

    def begin(self, store: StateStore, history: pd.DataFrame) -> None:
        """A bucket gets its history."""
        batches: dict[int, list[pa.RecordBatch]] = {}
        newest: dict[int, int] = {}
        rows = zip(*(history[name] for name in ("stream", "time", "data")), strict=True)
        for stream, time, data in rows:
            if pd.isna(time):
                batches.setdefault(stream, []).append(read_blob(data, self._schemas.home[stream]))
            else:
                newest[stream] = max(newest.get(stream, BEGINNING), tick_time(data))
        with plain_errors():
            self._bucket.begin(store, batches, newest)

    def step(
        self, name: str, store: StateStore, frames: Sequence[pd.DataFrame], watermark: int
    ) -> Iterator[pd.DataFrame]:
        """A bucket gets the packed rows of a batch."""
        streams = chain.from_iterable(frame["stream"] for frame in frames)
        data = chain.from_iterable(frame["data"] for frame in frames)
        home, others = read_blobs(self._schemas, streams, data)
        with plain_errors():
            step = self._bucket.step(name, store, home, watermark, others)
        yield from self._output(step)

    def wake(self, name: str, store: StateStore, watermark: int) -> Iterator[pd.DataFrame]:
        """Time has passed, and a bucket wanted to know."""
        with plain_errors():
            step = self._bucket.wake(name, store, watermark)
        if step is None:
            return
        has_lost = bool(step.lost or step.lost_variance or step.shed or step.purged or step.over)
        for frame in self._output(step):
            # Of a bucket that was woken only what it gives out, or loses, belongs to the batch.
            if has_lost or frame["data"].notna().any():
                yield frame

    def _output(self, step: BucketStep) -> Iterator[pd.DataFrame]:
        # Counters are summed over the rows of all buckets: each is to count once.
        counters = astuple(step.counts)
        # What is not counted at all is null, in all rows.
        nothing_more = tuple(None if each is None else 0 for each in counters)
        rows: list[tuple[Any, ...]] = []
        size, is_counted = 0, False
        for stream, data in self._blobs(step):
            rows.append((stream, data, *(nothing_more if is_counted else counters)))
            is_counted = True
            size += len(data)
            if size >= _FRAME_BYTES:
                yield pd.DataFrame(rows, columns=NAMES)
                rows, size = [], 0
        if not is_counted:
            rows.append((RESULT, None, *counters))
        if rows:
            yield pd.DataFrame(rows, columns=NAMES)

    def _blobs(self, step: BucketStep) -> Iterator[tuple[int, bytes]]:
        for batch in step.results.to_batches():
            for data in write_blobs(batch):
                yield RESULT, data
        if self._all_kinds:
            for number, rows in self._others(step):
                for data in write_blobs(rows):
                    yield number, data

    def _others(self, step: BucketStep) -> Iterator[tuple[int, pa.RecordBatch]]:
        """What else comes out, and what stands in the place of a stream."""
        yield from step.late.items()
        for stream, rows in step.broken.items():
            yield BROKEN + stream, rows
        for over in step.over:
            yield OVER, over_rows(self._binding, over)
