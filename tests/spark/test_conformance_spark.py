"""The cases of conformance.py on Spark: a batch for each step, a restart for each run.

The sources come in step: a stream that has no rows in a step gets an empty file. What the
watermark of a step lets go comes with the batch after it; at the end of a run Spark makes one
without rows for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from support.conformance import CASES, SHIFT, Case, Step, in_order, table, without_nothing

EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
SETTINGS = {"spark.sql.shuffle.partitions": "1", EMPTY_BATCHES: "true"}


@pytest.fixture(scope="module")
def small(spark: SparkSession) -> Iterator[SparkSession]:
    """One bucket in one partition: its counters are then those of the whole join."""
    before = {name: spark.conf.get(name) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


@dataclass
class Batch:
    """What came out of one, and its counters; Spark gives none for one without rows."""

    rows: pa.Table
    counters: Mapping[str, Any] | None

    def results(self, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        rows = self.rows.filter(pc.equal(self.rows["kind"], "result")).select(columns)
        return in_order(zip(*rows.to_pydict().values(), strict=True))

    def late(self, names: Sequence[str]) -> dict[str, list[int]]:
        rows = self.rows.filter(pc.equal(self.rows["kind"], "late"))
        columns = {name: f"{name}_v" for name in names if f"{name}_v" in rows.column_names}
        return {name: rows[each].drop_null().to_pylist() for name, each in columns.items()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_on_spark(small: SparkSession, case: Case, tmp_path: Path) -> None:
    numbers = count()
    for run, steps in enumerate(case.runs):
        for step in steps:
            write(tmp_path, case.query.names, step, next(numbers))
        batches = run_of(small, case, tmp_path, case.pieces[run] if case.pieces else None)
        before: Step | None = None
        for step in steps:
            batch = batches.pop(0)
            passed = before.passed if before else []
            assert batch.results(case.columns) == in_order([*step.new, *passed])
            late = batch.late(case.query.names)
            assert without_nothing(late) == without_nothing(step.late)
            live = step.live if step.live_on_spark is None else step.live_on_spark
            if live is not None:
                assert batch.counters is not None
                total = sum(live.values()) if isinstance(live, Mapping) else live
                assert batch.counters["live"] == total
            before = step
        rest = [row for batch in batches for row in batch.results(case.columns)]
        assert in_order(rest) == in_order(before.passed if before else [])


def write(directory: Path, names: Sequence[str], step: Step, number: int) -> None:
    for name in names:
        (directory / name).mkdir(exist_ok=True)
        file = directory / name / f"{number:03}.parquet"
        pq.write_table(table(step.rows.get(name, [])), file)
        os.utime(file, (SHIFT + number,) * 2)  # Spark reads files in the order of their age


def run_of(spark: SparkSession, case: Case, directory: Path, partitions: int | None) -> list[Batch]:
    """The query from its checkpoint to the end of its input, batch by batch."""
    # Of an inner join nothing comes out because time has passed.
    spark.conf.set(EMPTY_BATCHES, str(case.query.how != "inner").lower())
    rows: dict[int, pa.Table] = {}
    frames: dict[str, Any] = {}
    for name in case.query.names:
        reader = spark.readStream.schema("k bigint, ts timestamp, v bigint")
        frame = reader.option("maxFilesPerTrigger", 1).parquet(str(directory / name))
        frames[name] = frame.repartition(partitions) if partitions else frame

    def keep(frame: Any, number: int) -> None:
        rows[number] = frame.toArrow()

    query = (
        case.query.on_spark(frames, kind=True, buckets=1)
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    counters = {
        progress["batchId"]: progress["observedMetrics"]["penstock"].asDict()
        for progress in query.recentProgress
        if progress["numInputRows"]
    }
    return [Batch(rows[number], counters.get(number)) for number in sorted(rows)]
