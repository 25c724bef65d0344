"""The join on Spark: the embedded engine's answer, whatever way Spark takes to it.

Restarts, batch DataFrames, history, every type; watermarks are in test_spark_watermarks.py.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import penstock as ps
from penstock.spark.bucket_count import partition_of
from penstock.testing import assert_joined
from support.spark_files import QUERY, SCHEMA, Source, batch, embedded, joined, rows_of, run


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


def test_whole_tables(spark: SparkSession, sources: dict[str, Source]) -> None:
    """Batch DataFrames: the same answer, and nothing is late."""
    batches = [{"a": batch(1, number), "b": batch(2, number)} for number in range(3)]
    for number, tables in enumerate(batches):
        for name, source in sources.items():
            source.write(number, tables[name])
    frames = {name: spark.read.parquet(str(each.directory)) for name, each in sources.items()}
    assert rows_of(QUERY.on_spark(frames).toArrow()) == rows_of(embedded(batches))


def test_history(spark: SparkSession, sources: dict[str, Source], tmp_path: Path) -> None:
    """Two batches of history, then a stream: the answer, less what history has by itself.

    Rows behind the history are late from the first batch on. A restart does not load it again.
    """
    past = [{"a": batch(1, number), "b": batch(2, number)} for number in (5, 6)]
    live = [{"a": batch(1, number), "b": batch(2, number)} for number in (7, 8)]
    live[0]["a"] = pa.concat_tables([live[0]["a"], batch(3, 0, rows=7)])
    history = {name: Source(tmp_path / f"old {name}") for name in "ab"}
    for number, tables in enumerate(past):
        for name, source in history.items():
            source.write(number, tables[name])
    initial = {name: spark.read.parquet(str(each.directory)) for name, each in history.items()}
    for number, tables in enumerate(live):
        for name, source in sources.items():
            source.write(number, tables[name])
        frames = {name: source.stream(spark) for name, source in sources.items()}
        run(QUERY.on_spark(frames, kind=True, initial=initial), tmp_path)
    got = joined(spark, tmp_path)
    results = got.filter(pa.compute.equal(got["kind"], "result")).drop_columns(["kind"])
    expected = rows_of(embedded(past + live)) - rows_of(embedded(past))
    assert sum(expected.values()) > 300
    assert rows_of(results) == expected
    late = got.filter(pa.compute.equal(got["kind"], "late"))
    assert sorted(late["a_v"].drop_null().to_pylist()) == batch(3, 0, rows=7)["v"].to_pylist()
    assert QUERY.on_spark(initial).count() == embedded(past).num_rows


EVERY_TYPE = {
    "boolean": (True, None),
    "tinyint": (-7, None),
    "smallint": (300, -300),
    "int": (2**31 - 1, None),
    "bigint": (-(2**63), 0),
    "float": (1.5, float("inf")),
    "double": (-0.0, None),
    "decimal(38,9)": (Decimal("12345678901234567890.123456789"), None),
    "string": ("tö", ""),
    "binary": (b"\0\xff", b""),
    "date": (date(1582, 10, 15), date(9999, 12, 31)),
    "timestamp": (datetime(2024, 3, 31, 1, 30), None),
    "timestamp_ntz": (datetime(1900, 1, 1, 0, 0, 0, 1), None),
    "interval day to second": (timedelta(days=-3, microseconds=1), None),
    "array<int>": ([1, None, 3], []),
    "map<string,double>": ({"a": 1.0}, {}),
    "struct<x:int,y:array<struct<z:string>>>": ((1, [("q",), None]), (None, [])),
    "array<map<int,array<timestamp>>>": ([{1: [datetime(2020, 1, 1), None]}], [None]),
    "void": (None, None),
}


def test_every_type(spark: SparkSession, tmp_path: Path) -> None:
    """Payload of every type, in a session whose zone is not UTC: as Spark itself joins it."""
    names = [f"c{number}" for number in range(len(EVERY_TYPE))]
    fields = ", ".join(
        f"{name} {kind}" for name, kind in zip(names, EVERY_TYPE, strict=True) if kind != "void"
    )
    values = [
        (number, datetime(2024, 3, 31, 0, 59, 58) + timedelta(seconds=number), *row)
        for number, row in enumerate(
            zip(*(v for k, v in EVERY_TYPE.items() if k != "void"), strict=True)
        )
    ]
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        whole = spark.createDataFrame(values, f"k int, ts timestamp, {fields}")
        whole.write.parquet(str(tmp_path / "in"))
        query = ps.WindowJoin(
            [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within="5 seconds"
        )

        def sides(reader: Any) -> Any:
            frame = reader.schema(whole.schema).parquet(str(tmp_path / "in"))
            return query.on_spark(a=frame.withColumn("void", F.lit(None)), b=frame)

        run(sides(spark.readStream), tmp_path)
        got = spark.read.parquet(str(tmp_path / "out")).drop("a_void")
        expected = spark.sql(
            "SELECT "
            + ", ".join(f"{s}.{name} AS {s}_{name}" for s in "ab" for name in whole.columns)
            + ", a.ts AS event_time FROM {whole} a JOIN {whole} b ON a.k = b.k",
            whole=whole,
        )
        assert sorted(map(str, got.collect())) == sorted(map(str, expected.collect()))
        once = sides(spark.read)
        assert sorted(map(str, once.drop("a_void").collect())) == sorted(
            map(str, expected.collect())
        )
        assert once.schema["a_void"].dataType.simpleString() == "void"
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_users_own_tests(spark: SparkSession) -> None:
    """`penstock.testing` on Spark: a restart after every batch."""
    batches = [{"a": batch(1, number), "b": batch(2, number)} for number in range(2)]
    assert_joined(QUERY, batches, embedded(batches), spark=spark)


def test_what_does_not_fit(spark: SparkSession, sources: dict[str, Source]) -> None:
    frames = {name: source.stream(spark) for name, source in sources.items()}
    still = spark.createDataFrame([], SCHEMA)
    with pytest.raises(ps.InputError, match="each stream"):
        QUERY.on_spark(a=frames["a"])
    with pytest.raises(ps.InputError, match="leave out withWatermark"):
        QUERY.on_spark(a=frames["a"].withWatermark("ts", "1 second"), b=frames["b"])
    pairs = QUERY.on_spark(frames)
    others = [ps.Stream("ab", time="a_ts"), ps.Stream("b", time="ts")]
    with pytest.raises(ps.InputError, match="name 'event_time'"):
        ps.WindowJoin(others, on={"ab": "a_k", "b": "k"}, within="1 s").on_spark(
            ab=pairs, b=frames["b"]
        )
    windowed = pairs.select(F.window("event_time", "1 second").alias("w"), "a_k")
    marked = windowed.select(F.window_time("w").alias("event_time"), "a_k")
    counted = [ps.Stream("ab", time="event_time", lateness="1 s"), ps.Stream("b", time="ts")]
    with pytest.raises(ps.InputError, match="leave"):
        ps.WindowJoin(counted, on={"ab": "a_k", "b": "k"}, within="1 s").on_spark(
            ab=marked, b=frames["b"]
        )
    with pytest.raises(ps.InputError, match="isStreaming"):
        QUERY.on_spark(a=frames["a"], b=still)
    with pytest.raises(ps.InputError, match="Spark DataFrame"):
        QUERY.on_spark(a=frames["a"], b=5)
    with pytest.raises(ps.PlanError, match="buckets must be 1 to"):
        QUERY.on_spark(frames, buckets=0)
    with pytest.raises(ps.InputError, match="needs a batch DataFrame"):
        QUERY.on_spark(frames, initial={"a": frames["a"]})
    with pytest.raises(ps.InputError, match="no stream 'c'"):
        QUERY.on_spark(frames, initial={"c": still})
    with pytest.raises(ps.InputError, match="for streaming DataFrames"):
        QUERY.on_spark(a=still, b=still, initial={"a": still})
    with pytest.raises(ps.SchemaError, match="column 'v' of stream 'a' is bigint"):
        QUERY.on_spark(frames, initial={"a": still.withColumn("v", F.lit("x"))})
    with pytest.raises(ps.SchemaError, match="no key column 'k'"):
        QUERY.on_spark(a=still.drop("k"), b=still)


def test_where_spark_sends_a_bucket(spark: SparkSession) -> None:
    """Our arithmetic is Spark's."""
    rows = spark.range(-5, 2000).selectExpr("int(id) AS b", "pmod(hash(int(id)), 7) AS p")
    assert all(partition_of(row["b"], 7) == row["p"] for row in rows.collect())
