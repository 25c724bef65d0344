"""The cases of conformance.py on Spark: a batch for each step, a restart for each run.

The sources come in step: a stream that has no rows in a step gets an empty file. What the
watermark of a step lets go comes with the batch after it; at the end of a run Spark makes one
without rows for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
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
from support.thoroughness import often, scaled

EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
# Cases that run at the same time, each in a session of its own.
AT_ONCE = 1
# A case of each kind: what leaves by time, ranges, outer joins, restarts. `make test` runs these.
OFTEN = (
    "Spark StreamingJoinSuite: windowed inner join with watermark",
    "Spark StreamingJoinSuite: left outer join with a range of time",
    "Spark StreamingJoinSuite: match and eviction of one key in one batch (SPARK-38684)",
    "Spark StreamingJoinSuite: restart with another number of input partitions (SPARK-29438)",
    "Flink IntervalJoinOperator: bounds (-3, -1), neither closed",
    "Flink IntervalJoinOperator: sides that are not alike",
)
# All of them in `make test-all`; in `.ci/run` every other one beside those that `make test` runs.
TRIED = scaled(
    quick=list(CASES),
    ci=[each for at, each in enumerate(CASES) if at % 2 or each in OFTEN],
    all=list(CASES),
)


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


Ran = dict[str, Future[list[list[Batch]]]]


@pytest.fixture(scope="module")
def ran(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ran]:
    """The batches of each run of all cases that are tested."""
    tested = {
        item.callspec.params["name"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test_on_spark.__name__
        if item.module is request.module
    }
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            name: pool.submit(runs_of, spark, case, tmp_path_factory.mktemp("case"))
            for name, case in CASES.items()
            if name in tested
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", often(TRIED, *OFTEN))
def test_on_spark(ran: Ran, name: str) -> None:
    case = CASES[name]
    for steps, batches in zip(case.runs, ran[name].result(), strict=True):
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


def test_those_that_run_often_are_cases() -> None:
    assert set(OFTEN) <= set(CASES)


def runs_of(spark: SparkSession, case: Case, directory: Path) -> list[list[Batch]]:
    """In a session of its own, for the settings that it needs."""
    session = spark.newSession()
    # One bucket in one partition: its counters are then those of the whole join.
    session.conf.set("spark.sql.shuffle.partitions", "1")
    # Of an inner join nothing comes out because time has passed.
    session.conf.set(EMPTY_BATCHES, str(case.query.how != "inner").lower())
    numbers = count()
    runs = []
    for run, steps in enumerate(case.runs):
        for step in steps:
            write(directory, case.query.names, step, next(numbers))
        runs.append(run_of(session, case, directory, case.pieces[run] if case.pieces else None))
    return runs


def write(directory: Path, names: Sequence[str], step: Step, number: int) -> None:
    for name in names:
        (directory / name).mkdir(exist_ok=True)
        file = directory / name / f"{number:03}.parquet"
        pq.write_table(table(step.rows.get(name, [])), file)
        os.utime(file, (SHIFT + number,) * 2)  # Spark reads files in the order of their age


def run_of(spark: SparkSession, case: Case, directory: Path, partitions: int | None) -> list[Batch]:
    """The query from its checkpoint to the end of its input, batch by batch."""
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
