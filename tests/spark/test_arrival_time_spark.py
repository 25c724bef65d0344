"""Times of arrival on Spark: those of batches, which stay when a batch is repeated."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock as ps
from support.spark_files import Source, batch

BOTH = ps.WindowJoin(
    [ps.Stream("a", time=ps.ARRIVAL), ps.Stream("b", time=ps.ARRIVAL)],
    on="k",
    within="1 hour",
    select=["a.v", "b.v"],
)
Row = tuple[int, int, datetime]


def run(frame: DataFrame, directory: Path) -> dict[int, list[Row]]:
    """The rows of each batch."""
    batches: dict[int, list[Row]] = {}

    def keep(rows: DataFrame, number: int) -> None:
        table = rows.toArrow().to_pylist()
        batches[number] = sorted((row["a_v"], row["b_v"], row["event_time"]) for row in table)

    query = (
        frame.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return batches


def pairs(*numbers: int) -> list[tuple[int, int]]:
    """What of these batches joins, however they come."""
    tables = [[batch(seed, number) for number in numbers] for seed in (1, 2)]
    a, b = (pa.concat_tables(each).select(["k", "v"]) for each in tables)
    joined = a.join(b, "k", right_suffix="_b", join_type="inner")
    return sorted(zip(joined["v"].to_pylist(), joined["v_b"].to_pylist(), strict=True))


def test_the_time_of_a_batch(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path
) -> None:
    begun = datetime.now(UTC) - timedelta(milliseconds=1)
    results: dict[int, list[Row]] = {}
    for number in range(2):
        for seed, source in zip((1, 2), sources.values(), strict=True):
            source.write(number, batch(seed, number))
        frames = {name: source.stream(spark).drop("ts") for name, source in sources.items()}
        joined = BOTH.on_spark(frames)
        assert joined.columns == ["a_v", "b_v", "event_time"]
        results |= run(joined, tmp_path)
        time.sleep(0.01)
    assert sorted(row[:2] for rows in results.values() for row in rows) == pairs(0, 1)
    times = [sorted({row[2] for row in rows}) for rows in results.values() if rows]
    assert [len(each) for each in times] == [1, 1]
    assert begun <= times[0][0] < times[1][0] <= datetime.now(UTC)

    # The last batch with results again, as after a failure before it was committed.
    repeated = max(number for number, rows in results.items() if rows)
    commits = tmp_path / "checkpoint" / "commits"
    for number in range(repeated, max(results) + 1):
        for log in ("commits", "offsets"):
            if log == "commits" or number > repeated:
                for file in (tmp_path / "checkpoint" / log).glob(f"*{number}*"):
                    file.unlink()
    assert not (commits / str(repeated)).exists()
    frames = {name: source.stream(spark).drop("ts") for name, source in sources.items()}
    assert run(BOTH.on_spark(frames), tmp_path)[repeated] == results[repeated]


def test_beside_a_time_column_and_an_idle_timeout(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path
) -> None:
    """b's times are of 2023, and meet what arrives now in a window that has no end."""
    streams = [ps.Stream("a", time=ps.ARRIVAL, idle_timeout="1 hour"), ps.Stream("b", time="ts")]
    query = ps.WindowJoin(streams, on="k", within="unbounded", select=["a.v", "b.v"])
    for seed, source in zip((1, 2), sources.values(), strict=True):
        source.write(0, batch(seed, 0))
    frames = {name: source.stream(spark) for name, source in sources.items()}
    frames["a"] = frames["a"].drop("ts")
    results = [row for rows in run(query.on_spark(frames), tmp_path).values() for row in rows]
    assert sorted(row[:2] for row in results) == pairs(0)
    assert min(row[2] for row in results) > datetime.now(UTC) - timedelta(hours=1)


def test_whole_tables_arrive_at_once(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 1), (1, 2)], "k int, v bigint")
    table = BOTH.on_spark(a=frame, b=frame).toArrow()
    assert table.num_rows == 4
    assert len(set(table["event_time"].to_pylist())) == 1


def test_what_does_not_fit(spark: SparkSession, sources: dict[str, Source]) -> None:
    frames: dict[str, Any] = {name: source.stream(spark) for name, source in sources.items()}
    still = spark.createDataFrame([], frames["a"].schema)
    with pytest.raises(ps.InputError, match="a history of stream 'a', which takes its time of"):
        BOTH.on_spark(frames, initial={"a": still})
    with pytest.raises(ps.SchemaError, match="has a column '__arrival_time__'"):
        BOTH.on_spark(a=still.withColumnRenamed("ts", "__arrival_time__"), b=still)
