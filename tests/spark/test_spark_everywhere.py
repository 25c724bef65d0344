"""Joins without a key on Spark: tuples stay in one bucket each and probe all of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import penstock as ps
from support.spark_files import Source, batch, joined, rows_of, run, written

STREAMS = [
    ps.Stream("a", time="ts", lateness="3 seconds"),
    ps.Stream("b", time="ts", lateness="1 second"),
]


BAND = "abs(a.v - b.v) <= 4"
CLAUSES: dict[str, Any] = {
    "band": BAND,
    "order": "a.v < b.v AND b.k <> 'key 3'",
    "udf": ps.udf(lambda v, w: pc.less_equal(pc.abs(pc.subtract(v, w)), 4), ["a.v", "b.v"]),
}


def query_of(where: Any, **more: Any) -> ps.WindowJoin:
    return ps.WindowJoin(STREAMS, where=where, within="2 seconds", **more)


def some_batches() -> list[dict[str, pa.Table]]:
    """The rows of the last but one begin before the batch ahead of it, and some are late."""
    order = (0, 1, 3, 2)
    return [
        {name: batch(seed, number, rows=50) for seed, name in enumerate("ab")} for number in order
    ]


def embedded(query: ps.WindowJoin, batches: list[dict[str, pa.Table]]) -> tuple[pa.Table, int]:
    """What comes out, and how many are late."""
    join = query.start()
    results = [join.push(each) for each in batches]
    return pa.concat_tables(results), sum(each.late for each in join.metrics.streams.values())


def test_streams(spark: SparkSession, sources: dict[str, Source], tmp_path: Path) -> None:
    """Out of order, rows of a whole batch late, a restart in the middle; nothing comes twice."""
    query = query_of(BAND)
    batches = some_batches()
    runs = []
    for begin, end in ((0, 2), (2, 4)):
        written(sources, batches[begin:end], first=begin)
        frames = {name: source.stream(spark) for name, source in sources.items()}
        runs.append(run(query.on_spark(frames, buckets=3, kind=True), tmp_path))
    expected, late = embedded(query, batches)
    assert expected.num_rows > 100
    assert late > 50
    got = joined(spark, tmp_path)
    of_kind = {
        kind: got.filter(pc.equal(got["kind"], kind)).drop_columns(["kind"])
        for kind in ("result", "late")
    }
    assert rows_of(of_kind["result"]) == rows_of(expected)
    assert of_kind["late"].num_rows == late
    counted = [
        progress["observedMetrics"]["penstock"]
        for each in runs
        for progress in each.recentProgress
        if progress["numInputRows"]
    ]
    assert sum(each["produced"] for each in counted) == expected.num_rows
    assert sum(each["late"] for each in counted) == late


def test_a_history(spark: SparkSession, sources: dict[str, Source], tmp_path: Path) -> None:
    """It stays in one bucket each too, and what comes later finds it there."""
    query = query_of(CLAUSES["udf"])
    past, live = some_batches()[:2]
    written(sources, [live])
    initial = {
        name: spark.createDataFrame(table.to_pandas(), sources[name].stream(spark).schema)
        for name, table in past.items()
    }
    frames = {name: source.stream(spark) for name, source in sources.items()}
    run(query.on_spark(frames, initial=initial), tmp_path)
    join = query.start()
    join.push(past)
    expected = join.push(live)
    assert expected.num_rows > 20
    assert rows_of(joined(spark, tmp_path)) == rows_of(expected)


@pytest.mark.parametrize("clause", list(CLAUSES))
def test_whole_tables(spark: SparkSession, sources: dict[str, Source], clause: str) -> None:
    """Batch DataFrames, in which nothing is late."""
    query = query_of(CLAUSES[clause])
    batches = some_batches()
    written(sources, batches)
    frames = {name: spark.read.parquet(str(each.directory)) for name, each in sources.items()}
    got = query.on_spark(frames, buckets=4).toArrow()
    in_time = [batches[number] for number in (0, 1, 3, 2)]
    expected, late = embedded(query, in_time)
    assert late == 0
    assert rows_of(got) == rows_of(expected)


def test_results_come_from_every_bucket(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path
) -> None:
    """One for each shuffle partition unless given, each with its share of the tuples."""
    query = query_of(CLAUSES["order"])
    batches = some_batches()[:1]
    written(sources, batches)
    frames = {name: source.stream(spark) for name, source in sources.items()}
    pairs = query.on_spark(frames).withColumn("partition", F.spark_partition_id())
    done = run(pairs, tmp_path)
    rows = joined(spark, tmp_path)
    expected, _ = embedded(query, batches)
    assert rows_of(rows.drop_columns(["partition"])) == rows_of(expected)
    shares = rows["partition"].value_counts().to_pylist()
    assert len(shares) == 2
    assert all(each["counts"] > rows.num_rows // 5 for each in shares)
    (first, *_) = [each for each in done.recentProgress if each["numInputRows"]]
    filtered = pc.sum(pc.equal(batches[0]["b"]["k"].fill_null("key 3"), "key 3")).as_py()
    # Each is stored once.
    assert first["observedMetrics"]["penstock"]["live"] == 2 * 50 - filtered


THREE = [*STREAMS, ps.Stream("c", time="ts")]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: ps.WindowJoin(THREE, where="a.v < b.v AND b.k = c.k", within="1 second"),
            "3 streams have no key in common",
        ),
        (lambda: query_of(BAND, how="left"), "how='left' without a key"),
        (lambda: query_of(BAND, how="anti"), "how='anti' without a key"),
        (
            lambda: ps.WindowJoin(STREAMS, where=BAND, within="3 rows"),
            r"windows of \['3 rows'\] count",
        ),
    ],
    ids=["three streams", "left", "anti", "rows"],
)
def test_what_cannot_be_divided(
    spark: SparkSession, make: Callable[[], ps.WindowJoin], told: str
) -> None:
    """It runs in one bucket, which is said, with the reason; more are refused."""
    query = make()
    rows = [(number, "k", number, ["x"]) for number in range(6)]
    frame = spark.createDataFrame(rows, "ts bigint, k string, v bigint, tags array<string>")
    frames = dict.fromkeys(query.names, frame)
    with pytest.warns(ps.PlanWarning, match=f"{told}.*: the whole join runs in one bucket"):
        got = query.on_spark(frames)
    with pytest.raises(ps.PlanError, match=rf"buckets=3 cannot be: .*{told}"):
        query.on_spark(frames, buckets=3)
    join = query.start(schemas=dict.fromkeys(query.names, frame.toArrow().schema))
    expected = [join.push(dict.fromkeys(query.names, frame.toArrow())), join.finish()]
    assert rows_of(got.toArrow()) == rows_of(pa.concat_tables(expected))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        query_of(BAND).on_spark(a=frame, b=frame)
