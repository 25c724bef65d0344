"""The join on Spark: the embedded engine's answer, whatever way Spark takes to it.

One small session serves the whole file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import penstock as ps
from penstock.testing import assert_joined

SCHEMA = "ts timestamp, k string, v bigint, tags array<string>"
ARROW = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.string()),
        ("v", pa.int64()),
        ("tags", pa.list_(pa.string())),
    ]
)
START = 1_700_000_000_000_000
SECOND = 1_000_000

QUERY = ps.WindowJoin(
    [ps.Stream("a", time="ts"), ps.Stream("b", time="ts", lateness="2 seconds")],
    on="k",
    within="5 seconds",
)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def batch(seed: int, number: int, rows: int = 60) -> pa.Table:
    """Rows of ten seconds, out of order within two, some of them without a key."""
    random = np.random.default_rng([seed, number])
    times = np.sort(random.integers(0, 10 * SECOND, rows)) + random.integers(0, 2 * SECOND, rows)
    keys = [None if key == 0 else f"key {key}" for key in random.integers(0, 9, rows)]
    return pa.Table.from_arrays(
        [
            pa.array(START + number * 10 * SECOND + np.sort(times), ARROW.field("ts").type),
            pa.array(keys, pa.string()),
            pa.array(number * rows + np.arange(rows)),
            pa.array([[key or "", "x"] for key in keys], ARROW.field("tags").type),
        ],
        schema=ARROW,
    )


class Source:
    """A directory that Spark reads as a stream, one file in each batch, in their order."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def write(self, number: int, table: pa.Table) -> None:
        file = self.directory / f"{number:03}.parquet"
        pq.write_table(table, file)
        os.utime(file, (START // SECOND + number, START // SECOND + number))

    def stream(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.directory))


def rows_of(table: pa.Table) -> Counter[str]:
    return Counter(str(sorted(row.items())) for row in table.to_pylist())


def run(frame: DataFrame, directory: Path) -> Any:
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(directory / "out"))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def joined(spark: SparkSession, directory: Path) -> pa.Table:
    return spark.read.parquet(str(directory / "out")).toArrow()


def embedded(batches: list[dict[str, pa.Table]]) -> pa.Table:
    join = QUERY.start()
    return pa.concat_tables([join.push(each) for each in batches])


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Source]:
    return {name: Source(tmp_path / name) for name in "ab"}


def test_a_stream_and_its_restart(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path
) -> None:
    """Three batches, a restart with another index, two more: each result once."""
    batches = [{"a": batch(1, number), "b": batch(2, number)} for number in range(5)]
    for plan, part in (("hash", range(3)), ("buckets(4)", range(3, 5))):
        for number in part:
            for name, source in sources.items():
                source.write(number, batches[number][name])
        frames = {name: source.stream(spark) for name, source in sources.items()}
        run(QUERY.on_spark(frames, indexes=plan), tmp_path)
    expected = embedded(batches)
    assert expected.num_rows > 500
    assert rows_of(joined(spark, tmp_path)) == rows_of(expected)


def test_late_rows_and_counters(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path
) -> None:
    """A batch that comes ten batches after its time is late, and handed out as such."""
    order = [0, 10, 11, 1]
    batches = [{"a": batch(1, number), "b": batch(2, number)} for number in order]
    for number, tables in enumerate(batches):
        for name, source in sources.items():
            source.write(number, tables[name])
    frames = {name: source.stream(spark) for name, source in sources.items()}
    query = run(QUERY.on_spark(frames, kind=True), tmp_path)
    got = joined(spark, tmp_path)
    late = got.filter(pa.compute.equal(got["kind"], "late"))
    assert late.num_rows == 120
    assert sorted(late["a_v"].drop_null().to_pylist()) == batches[3]["a"]["v"].to_pylist()
    results = got.filter(pa.compute.equal(got["kind"], "result")).drop_columns(["kind"])
    assert rows_of(results) == rows_of(embedded(batches))
    seen = [each["observedMetrics"]["penstock"] for each in query.recentProgress]
    assert sum(each["late"] or 0 for each in seen) == 120


def test_an_aggregation_over_the_join(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path
) -> None:
    """The event time of the output is one that Spark's own windows can use."""
    batches = [{"a": batch(1, number), "b": batch(2, number)} for number in range(4)]
    for number, tables in enumerate(batches):
        for name, source in sources.items():
            source.write(number, tables[name])
    frames = {name: source.stream(spark) for name, source in sources.items()}
    windowed = QUERY.on_spark(frames).groupBy(F.window("event_time", "10 seconds")).count()
    run(windowed.select(F.col("window.start").alias("start"), "count"), tmp_path)
    counts = {row["start"]: row["count"] for row in joined(spark, tmp_path).to_pylist()}
    whole = embedded(batches)
    slots = Counter(ts // (10 * SECOND) for ts in whole["event_time"].cast("int64").to_pylist())
    first = min(slots)
    assert len(counts) >= 2
    for start, count in counts.items():
        assert slots[int(start.timestamp()) // 10] == count
    assert min(int(start.timestamp()) // 10 for start in counts) == first


def test_whole_tables(spark: SparkSession, sources: dict[str, Source]) -> None:
    """Batch DataFrames: the same answer, and nothing is late."""
    batches = [{"a": batch(1, number), "b": batch(2, number)} for number in range(3)]
    for number, tables in enumerate(batches):
        for name, source in sources.items():
            source.write(number, tables[name])
    frames = {name: spark.read.parquet(str(each.directory)) for name, each in sources.items()}
    assert rows_of(QUERY.on_spark(frames).toArrow()) == rows_of(embedded(batches))


def test_users_own_tests(spark: SparkSession) -> None:
    """`penstock.testing` on Spark: a restart after every batch."""
    batches = [{"a": batch(1, number), "b": batch(2, number)} for number in range(2)]
    assert_joined(QUERY, batches, embedded(batches), spark=spark)


def test_what_does_not_fit(spark: SparkSession, sources: dict[str, Source]) -> None:
    frames = {name: source.stream(spark) for name, source in sources.items()}
    still = spark.createDataFrame([], SCHEMA)
    with pytest.raises(ps.InputError, match="each stream"):
        QUERY.on_spark(a=frames["a"])
    with pytest.raises(ps.InputError, match="already has a watermark"):
        QUERY.on_spark(a=frames["a"].withWatermark("ts", "1 second"), b=frames["b"])
    with pytest.raises(ps.InputError, match="isStreaming"):
        QUERY.on_spark(a=frames["a"], b=still)
    with pytest.raises(ps.InputError, match="Spark DataFrame"):
        QUERY.on_spark(a=frames["a"], b=5)
    idle = [ps.Stream("a", time="ts", idle_timeout="1 minute"), ps.Stream("b", time="ts")]
    with pytest.raises(ps.PlanError, match="idle_timeout"):
        ps.WindowJoin(idle, on="k", within="1 second").on_spark(frames)
    with pytest.raises(ps.SchemaError, match="no key column 'k'"):
        QUERY.on_spark(a=still.drop("k"), b=still)
