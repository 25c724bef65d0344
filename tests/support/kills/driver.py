"""The program that is killed: one driver of the streaming query, which goes on where the last
one was stopped.

    python -m support.kills.driver <directory> <seed> <life> <master>

It tells what happens, a line of JSON each, in `<directory>/life-<life>.jsonl`. A query that
fails is started again. Every start reads the same input in another layout, drawn from the
seed: files for a batch, partitions, index. When `<directory>/enough` is there, what is left
is worked off and the committed output written to `<directory>/committed.parquet`.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from support.kills.feed import QUERY, SCHEMA

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # lives are short


def session(master: str, failures: int, temporary: Path) -> SparkSession:
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.executor.extraJavaOptions": QUICK_JVM,
        "spark.executor.memory": "1g",
        "spark.local.dir": str(temporary),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.task.maxFailures": str(failures),
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.python.daemon.module": "penstock.spark.daemon",
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        "spark.sql.streaming.stateStore.minDeltasForSnapshot": "5",
        "spark.sql.streaming.stateStore.maintenanceInterval": "3s",
    }
    builder = SparkSession.builder.master(master.format(failures=failures))
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class Life:
    """One driver, from its start to its end by itself or by another's hand."""

    def __init__(self, directory: Path, seed: str, life: str, master: str) -> None:
        self._directory = directory
        self._random = random.Random(f"layouts {seed} {life}")
        self._story = (directory / f"life-{life}.jsonl").open("a", buffering=1)
        # With one, a killed worker or executor fails the query; with eight, only its task.
        failures = self._random.choice([1, 8, 8])
        self._spark = session(master, failures, directory / "temporary")
        self._spark.sparkContext.setLogLevel("ERROR")
        self._tell("up", failures=failures)

    def run(self) -> None:
        while not self._ran_to_the_end():
            pass
        committed = self._spark.read.parquet(str(self._directory / "out")).toArrow()
        pq.write_table(committed, self._directory / "committed.parquet")
        self._tell("finished")

    def _ran_to_the_end(self) -> bool:
        told: set[Any] = set()
        try:
            query = self._start()
            while not (self._directory / "enough").exists():
                query.awaitTermination(0.2)
                self._tell_progress(query, told)
            query.processAllAvailable()
            self._tell_progress(query, told)
            query.stop()
        except PySparkException as error:
            self._tell("failed", error=str(error)[:2000])
            return False
        return True

    def _start(self) -> Any:
        frames = {name: self._stream(name) for name in QUERY.names}
        index = self._random.choice(["hash", "hash", "buckets(8)"])
        out = QUERY.on_spark(frames, indexes=index).writeStream.format("parquet")
        out = out.option("checkpointLocation", str(self._directory / "checkpoint"))
        query = out.start(str(self._directory / "out"))
        self._tell("started", index=index)
        return query

    def _stream(self, name: str) -> DataFrame:
        files, partitions = self._random.choice([1, 2, 3]), self._random.choice([0, 1, 3, 5])
        self._tell("reads", stream=name, files=files, partitions=partitions)
        reader = self._spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files)
        frame = reader.parquet(str(self._directory / "in" / name))
        return frame.repartition(partitions) if partitions else frame

    def _tell_progress(self, query: Any, told: set[Any]) -> None:
        for progress in query.recentProgress:
            moment = progress["batchId"], progress["timestamp"]
            seen = progress["observedMetrics"].get("penstock")
            if moment not in told and seen is not None:
                told.add(moment)
                self._tell("batch", number=moment[0], **seen.asDict())

    def _tell(self, event: str, **more: Any) -> None:
        self._story.write(json.dumps({"at": round(time.time(), 1), "event": event, **more}) + "\n")


if __name__ == "__main__":
    Life(Path(sys.argv[1]), *sys.argv[2:]).run()
