"""Time on Spark: what is late, who waits for whom, and what following operators see of it."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.tws_tester import TwsTester

import penstock as ps
from penstock.kernels.sentinels import BEGINNING
from penstock.spark.idleness import ClockProcessor, ticked
from support.spark_files import QUERY, SECOND, START, Source, batch, embedded, joined, rows_of, run


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


def test_another_join_over_the_join(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path
) -> None:
    """A join of ours over a join of ours, and one of Spark's: as a join of three streams."""
    streams = {**sources, "c": Source(tmp_path / "c")}
    batches = [
        {name: batch(seed, number, rows=30) for seed, name in enumerate("abc")}
        for number in range(4)
    ]
    for number, tables in enumerate(batches):
        for name, source in streams.items():
            source.write(number, tables[name])
    frames = {name: source.stream(spark) for name, source in streams.items()}
    first = QUERY.on_spark(a=frames["a"], b=frames["b"])
    second = ps.WindowJoin(
        [ps.Stream("ab", time="event_time"), ps.Stream("c", time="ts")],
        on={"ab": "a_k", "c": "k"},
        within="20 seconds",
        select={"a": "ab.a_v", "b": "ab.b_v", "c": "c.v"},
    )
    # At once, so that nothing can be late.
    whole = {name: pa.concat_tables([each[name] for each in batches]) for name in "abc"}
    pairs = QUERY.start().push(a=whole["a"], b=whole["b"])
    expected = rows_of(second.start().push(ab=pairs, c=whole["c"]))
    for way, frame in {
        "ours": second.on_spark(ab=first, c=frames["c"]),
        "Spark's": first.alias("ab")
        .join(
            frames["c"].withWatermark("ts", "0 seconds").alias("c"),
            F.expr(
                "a_k = c.k AND c.ts BETWEEN event_time - INTERVAL 20 SECONDS "
                "AND event_time + INTERVAL 20 SECONDS"
            ),
        )
        .select(
            F.col("a_v").alias("a"), F.col("b_v").alias("b"), F.col("c.v").alias("c"), "event_time"
        ),
    }.items():
        directory = tmp_path / way
        directory.mkdir()
        run(frame, directory)
        got = joined(spark, directory)
        assert got.num_rows > 500
        if way == "ours":
            assert rows_of(got) == expected
        else:  # Spark has its own idea of event_time
            assert _without_time(rows_of(got)) == _without_time(expected)


def _without_time(rows: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for row, count in rows.items():
        found[row.split(", ('event_time'")[0]] += count
    return found


IDLE = ps.WindowJoin(
    [ps.Stream("a", time="ts"), ps.Stream("b", time="ts", idle_timeout="1 second")],
    on="k",
    within="5 seconds",
)


def test_a_stream_that_falls_silent(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path
) -> None:
    """The other goes on without it: its tuples expire, and when it is back it is late.

    Two files are not always read in one batch, so what comes back for good is ahead of both.
    """
    back = batch(2, 8)
    back = back.filter(pa.compute.field("ts") >= pa.scalar(START + 83 * SECOND, back["ts"].type))
    frames = {name: source.stream(spark) for name, source in sources.items()}
    query = (
        IDLE.on_spark(frames, kind=True)
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        for number, tables in enumerate(
            [
                {"a": batch(1, 0), "b": batch(2, 0)},
                {"a": batch(1, 5)},  # b is 50 s behind by now
                {"a": batch(1, 6)},
                {"a": batch(1, 7), "b": batch(2, 1)},  # and late
                {"b": back},
            ]
        ):
            for name, table in tables.items():
                sources[name].write(number, table)
            query.processAllAvailable()
            if number == 0:
                time.sleep(1.5)
        live = [
            each["observedMetrics"]["penstock"]["live"]
            for each in query.recentProgress
            if each["numInputRows"]
        ]
    finally:
        query.stop()
    got = joined(spark, tmp_path)
    late = got.filter(pa.compute.equal(got["kind"], "late"))
    assert sorted(late["b_v"].drop_null().to_pylist()) == batch(2, 1)["v"].to_pylist()
    results = got.filter(pa.compute.equal(got["kind"], "result")).drop_columns(["kind"])
    join = IDLE.start(clock=lambda: 0.0)
    expected = rows_of(join.push(a=batch(1, 0), b=batch(2, 0)))
    expected += rows_of(join.push(a=batch(1, 7), b=back))
    assert rows_of(results) == expected
    assert min(live[2:]) < 120  # two batches of a's at most: all that came first has expired


def test_the_clock_without_a_query() -> None:
    """An idle stream is left out, one that speaks is heeded, and time never goes back."""
    tester = TwsTester(ClockProcessor(IDLE), timeMode="None")

    def watermark(now_s: float, **newest: int) -> list[int]:
        rows = [(0, "ab".index(name), ts, int(now_s * 1e6)) for name, ts in newest.items()]
        frame = pd.DataFrame(rows, columns=["clock", "stream", "time_us", "now_us"])
        came = tester.testInPandas(0, frame)
        return list(came["time_us"]) if len(came) else []

    assert watermark(0, a=10) == []
    assert watermark(0.5, b=7) == [7]
    assert watermark(1.4, a=20) == [7]
    assert watermark(1.6, a=30) == [30]
    assert watermark(1.7, b=15) == [30]
    assert watermark(1.8, b=40, a=50) == [40]


def test_the_clock_after_a_restart() -> None:
    """Silence is counted from the restart; another join's clock is refused."""
    state, watermark = ticked(IDLE, "first", None, {0: 10, 1: 5}, now_s=0)
    assert watermark == 5
    _, same = ticked(IDLE, "first", state, {0: 20}, now_s=9)
    assert same == 20
    _, restarted = ticked(IDLE, "second", state, {0: 20}, now_s=9)
    assert restarted == 5
    assert ticked(IDLE, "third", None, {1: 5}, now_s=0)[1] == BEGINNING
    other = ps.WindowJoin([ps.Stream("a", time="t"), ps.Stream("c", time="t")], "k", "1 s")
    with pytest.raises(ps.SnapshotError, match="its streams were"):
        ticked(other, "first", state, {}, now_s=0)
