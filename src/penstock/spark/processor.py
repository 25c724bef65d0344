"""The stateful processor: Spark's calls on one side, the task of a worker on the other.

Spark also makes one in a Python of its own on the driver, at the start of every query, only to
learn what state there is. So nothing is imported here that is not needed for that: what works
with rows is in task.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.model.counters import BucketCounts
from penstock.model.plan import Plan
from penstock.model.window import FOREVER
from penstock.spark.bucket_count import BucketCount
from penstock.spark.state.scratch import Place

if TYPE_CHECKING:
    import pandas as pd

    from penstock.spark.task import Task

__all__ = ["COUNTERS", "NAMES", "OUTPUT", "JoinProcessor", "StateStore", "horizon_ms"]

# A row of the operator's output: joined rows, or the late rows of one stream, and the
# counters of the bucket in this batch, in its first row only.
_TYPES: Final = {"int": "bigint", "float | None": "double"}
COUNTERS: Final = {field.name: _TYPES[str(field.type)] for field in fields(BucketCounts)}
OUTPUT: Final = ", ".join(
    ["stream int", "data binary", *(f"{name} {kind}" for name, kind in COUNTERS.items())]
)
NAMES: Final = ["stream", "data", *COUNTERS]


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
        all_kinds: bool,
    ) -> None:
        self._place = place
        self._buckets = buckets
        self._binding = binding
        self._plan = plan
        self._all_kinds = all_kinds
        self._horizon_ms = horizon_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state. This also runs on the driver, where there is no more to do."""
        self._store = StateStore(handle, self._horizon_ms)
        self._task: Task | None = None

    def handleInputRows(  # Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # Spark's
    ) -> Iterator[pd.DataFrame]:
        frames = list(rows)
        return self._worker().step(str(key[0]), self._store, frames, self._watermark(timerValues))

    def handleInitialState(  # Spark's name
        self,
        key: Any,
        initialState: pd.DataFrame,  # Spark's
        timerValues: Any,  # Spark's
    ) -> None:
        self._watermark(timerValues)
        self._worker().begin(self._store, initialState)

    def handleExpiredTimer(  # Spark's name
        self,
        key: Any,
        timerValues: Any,
        expiredTimerInfo: Any,  # Spark's
    ) -> Iterator[pd.DataFrame]:
        return self._worker().wake(str(key[0]), self._store, self._watermark(timerValues))

    def close(self) -> None:
        """Nothing is held between the batches that another call would have to free."""

    def _watermark(self, timers: Any) -> int:
        """The join's, in this batch."""
        spark_ms = self._store.spark_ms = timers.getCurrentWatermarkInMs()
        # Zero is Spark's word for no watermark yet.
        return BEGINNING if spark_ms <= 0 else (spark_ms + self._horizon_ms) * 1000

    def _worker(self) -> Task:
        if self._task is None:
            from penstock.spark.task import Task

            self._task = Task(
                self._binding,
                self._plan,
                self._place,
                self._buckets,
                all_kinds=self._all_kinds,
            )
        return self._task


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
