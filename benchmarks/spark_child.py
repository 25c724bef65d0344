"""One contestant on Spark, alone in a process: `python -m benchmarks.spark_child JSON`.

It works through the input, a file of each stream to a batch, until there is none left, and
prints what it took as one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQueryListener

from benchmarks.process_tree import processor_seconds
from benchmarks.spark_timers import read_times, timed_join
from benchmarks.subject import join_within

__all__ = ["CONTESTANTS", "Outcome", "Task"]

_TIMES: Final = "times"  # the directory of a timed contestant's notes
_STATE_STORE: Final = "spark.sql.streaming.stateStore"
_PROVIDERS: Final = "org.apache.spark.sql.execution.streaming.state"
_STATE_FORMAT: Final = "spark.sql.streaming.join.stateFormatVersion"
_IN_MEMORY: Final = {
    f"{_STATE_STORE}.providerClass": f"{_PROVIDERS}.HDFSBackedStateStoreProvider",
}
_IN_ROCKSDB: Final = {
    f"{_STATE_STORE}.providerClass": f"{_PROVIDERS}.RocksDBStateStoreProvider",
    f"{_STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    f"{_STATE_STORE}.rocksdb.trackTotalNumberOfRows": "false",
}
_SETTINGS: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@dataclass(frozen=True)
class Task:
    """What a child is told. scratch: an empty directory for everything it writes."""

    contestant: str
    window_s: int
    driver_memory: str
    input: str
    scratch: str


@dataclass(frozen=True)
class Outcome:
    """What a child found.

    batch_s, processor_s: seconds of each batch that had input, on the wall clock and of the
    processor, in all processes. started_at: when they began, in seconds since the epoch.
    phases_s: what Spark says they were made of, and the calls of its state store. times: of
    the workers' tasks, if they were taken.
    """

    batch_s: list[float]
    processor_s: list[float]
    started_at: list[float]
    phases_s: list[dict[str, float]]
    results: int
    state_bytes: int
    times: list[dict[str, Any]] = field(default_factory=list)


Streams = dict[str, Any]
Build = Callable[[Streams, Task], Any]


def _penstock(streams: Streams, task: Task) -> Any:
    return join_within(f"{task.window_s} seconds").on_spark(**streams)


def _timed_penstock(streams: Streams, task: Task) -> Any:
    directory = Path(task.scratch) / _TIMES
    directory.mkdir()
    return timed_join(streams, task.window_s, str(directory))


def _sparks_own(streams: Streams, task: Task) -> Any:
    """Spark's stream-stream join, with the same columns but the event time."""
    left, right = (
        frame.withWatermark("ts", "0 seconds").alias(name) for name, frame in streams.items()
    )
    within = (
        f"left.k = right.k AND right.ts BETWEEN left.ts - INTERVAL {task.window_s} SECONDS "
        f"AND left.ts + INTERVAL {task.window_s} SECONDS"
    )
    return left.join(right, F.expr(within)).select(
        *(
            F.col(f"{name}.{column}").alias(f"{name}_{column}")
            for name, frame in streams.items()
            for column in frame.columns
        )
    )


def _read_only(streams: Streams, task: Task) -> Any:
    """The rows as they are: what reading alone costs."""
    left, right = streams.values()
    return left.union(right)


# What docs/spark.md advises.
_ADVISED: Final = {
    "spark.python.daemon.module": "penstock.spark.daemon",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}

# Settings of the session, and the query.
CONTESTANTS: Final[dict[str, tuple[dict[str, str], Build]]] = {
    "penstock": (_ADVISED, _penstock),
    "spark, format 2, memory": ({_STATE_FORMAT: "2", **_IN_MEMORY}, _sparks_own),
    "spark, format 2, rocksdb": ({_STATE_FORMAT: "2", **_IN_ROCKSDB}, _sparks_own),
    "spark, format 4, memory": ({_STATE_FORMAT: "4", **_IN_MEMORY}, _sparks_own),
    "spark, format 4, rocksdb": ({_STATE_FORMAT: "4", **_IN_ROCKSDB}, _sparks_own),
    "read only": ({}, _read_only),
    "penstock, timed": (_ADVISED, _timed_penstock),
}


def run(task: Task) -> Outcome:
    """Work through all input."""
    settings, build = CONTESTANTS[task.contestant]
    spark = _session(task, settings)
    streams = {name: _stream(spark, Path(task.input) / name) for name in ("left", "right")}
    checkpoint = Path(task.scratch) / "checkpoint"
    meter = ProcessorMeter()
    spark.streams.addListener(meter)
    running = (
        build(streams, task)
        .writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    progress = [each for each in running.recentProgress if each["numInputRows"]]
    phases = [_phases(each) for each in progress]
    outcome = Outcome(
        batch_s=[each["triggerExecution"] for each in phases],
        processor_s=[meter.spent_s(each["batchId"]) for each in progress],
        started_at=[datetime.fromisoformat(each["timestamp"]).timestamp() for each in progress],
        phases_s=phases,
        results=sum(max(each["sink"]["numOutputRows"], 0) for each in running.recentProgress),
        state_bytes=_bytes_under(checkpoint / "state"),
        times=read_times(Path(task.scratch) / _TIMES),
    )
    spark.stop()
    return outcome


def _phases(progress: Any) -> dict[str, float]:
    """Seconds of the parts of a batch; those of state are added up over partitions."""
    in_ms = dict(progress["durationMs"])
    for operator in progress["stateOperators"]:
        in_ms["commit"] = operator["commitTimeMs"]
        in_ms["load"] = operator["customMetrics"].get("rocksdbLoadLatencyMs", 0)
    return {name: ms / 1000 for name, ms in in_ms.items()}


class ProcessorMeter(StreamingQueryListener):
    """Notes the processor time that had been spent when a batch was over."""

    def __init__(self) -> None:
        self._at_end: dict[int, float] = {-1: processor_seconds(os.getpid())}

    def onQueryStarted(self, event: Any) -> None: ...

    def onQueryIdle(self, event: Any) -> None: ...

    def onQueryTerminated(self, event: Any) -> None: ...

    def onQueryProgress(self, event: Any) -> None:
        self._at_end[event.progress.batchId] = processor_seconds(os.getpid())

    def spent_s(self, batch: int) -> float:
        """What a batch took; not a number for the last, if the query ended before its event."""
        not_known = float("nan")
        return self._at_end.get(batch, not_known) - self._at_end.get(batch - 1, not_known)


def _session(task: Task, settings: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.log.level", "ERROR")
    everything = {
        **_SETTINGS,
        "spark.driver.memory": task.driver_memory,
        "spark.local.dir": task.scratch,
        **settings,
    }
    for name, value in everything.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _stream(spark: SparkSession, directory: Path) -> Any:
    schema = spark.read.parquet(str(directory)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory))


def _bytes_under(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


if __name__ == "__main__":
    print(json.dumps(asdict(run(Task(**json.loads(sys.argv[1]))))))
