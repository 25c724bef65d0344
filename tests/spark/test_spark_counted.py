"""Windows that count rows or arrivals, on Spark: the embedded engine's answer.

What waits at the end of the input comes out when the watermark has passed it. So the last batch
of each query here is far ahead, and lets go of all that came before it.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import penstock as ps
from support.spark_files import (
    ARROW,
    FAR,
    SECOND,
    START,
    Source,
    batch,
    before_far,
    expected_of,
    joined,
    rows_of,
    run,
    written,
)

PER_KEY = ("3 rows per key", "4 seconds")


def query_of(a: str, b: str) -> ps.WindowJoin:
    streams = [
        ps.Stream("a", time="ts", window=a, lateness="3 seconds"),
        ps.Stream("b", time="ts", window=b, lateness="3 seconds"),
    ]
    return ps.WindowJoin(streams, on="k")


def streamed(
    spark: SparkSession, query: ps.WindowJoin, sources: dict[str, Source], **options: Any
) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.PlanWarning)
        frames = {name: source.stream(spark) for name, source in sources.items()}
        return query.on_spark(frames, **options)


@pytest.mark.parametrize("windows", [PER_KEY, ("7 rows", "2 rows per key"), ("9 arrivals",) * 2])
def test_a_stream_and_its_restart(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path, windows: tuple[str, str]
) -> None:
    """Out of order, some rows without a key; the query is started anew in the middle."""
    query = query_of(*windows)
    batches = [
        {"a": batch(1, number, rows=40), "b": batch(2, number, rows=40)}
        for number in (0, 1, 2, FAR)
    ]
    for begin, end in ((0, 2), (2, 4)):
        written(sources, batches[begin:end], first=begin)
        run(streamed(spark, query, sources), tmp_path)
    expected = expected_of(query, batches)
    assert expected.num_rows > 20
    assert rows_of(before_far(joined(spark, tmp_path))) == rows_of(expected)


@pytest.mark.parametrize("windows", [PER_KEY, ("7 rows",) * 2, ("9 arrivals",) * 2])
def test_whole_tables(
    spark: SparkSession, sources: dict[str, Source], windows: tuple[str, str]
) -> None:
    """Batch DataFrames, where the end of the input lets everything go."""
    query = query_of(*windows)
    batches = [{"a": batch(1, number), "b": batch(2, number)} for number in range(2)]
    written(sources, batches)
    frames = {name: spark.read.parquet(str(each.directory)) for name, each in sources.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.PlanWarning)
        got = query.on_spark(frames, kind=True).toArrow()
    assert set(got["kind"].to_pylist()) == {"result"}
    assert rows_of(got.drop_columns(["kind"])) == rows_of(expected_of(query, batches))


def test_one_order_of_all_keys_takes_one_bucket(
    spark: SparkSession, sources: dict[str, Source]
) -> None:
    frames = {name: source.stream(spark) for name, source in sources.items()}
    for windows in (("5 rows", "1 second"), ("5 arrivals",) * 2):
        query = query_of(*windows)
        with pytest.warns(ps.PlanWarning, match=r"\['5 .*one bucket.*'rows per key'"):
            query.on_spark(frames, buckets=1)
        with pytest.raises(ps.PlanError, match="buckets=4 cannot be"):
            query.on_spark(frames, buckets=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        query_of(*PER_KEY).on_spark(frames, buckets=4)


def of_key(key: str, *seconds: float) -> pa.Table:
    rows = [
        {"ts": START + int(each * SECOND), "k": key, "v": number, "tags": []}
        for number, each in enumerate(seconds)
    ]
    return pa.Table.from_pylist(rows, schema=ARROW)


def test_an_idle_bucket_and_an_aggregation(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path
) -> None:
    """A key that is never heard again comes out by a timer, and is not late for what follows.

    The watermark leaps over it by far more than any window.
    """
    batches = [
        {"a": of_key("x", 1, 2, 3, 4), "b": of_key("x", 5)},
        {"a": of_key("y", 1000), "b": of_key("y", 1001)},
        {"a": of_key("y", 5000), "b": of_key("y", 5000)},
    ]
    written(sources, batches)
    query = query_of(*PER_KEY)
    pairs = streamed(spark, query, sources, buckets=8)
    run(pairs, tmp_path)
    got = joined(spark, tmp_path)
    assert sorted(zip(got["a_k"].to_pylist(), got["a_v"].to_pylist(), strict=True)) == [
        *(("x", number) for number in (1, 2, 3)),
        ("y", 0),
    ]
    counted = pairs.groupBy(F.window("event_time", "10 seconds")).count()
    directory = tmp_path / "counted"
    directory.mkdir()
    run(counted.select(F.col("window.start").alias("start"), "count"), directory)
    counts = {
        int(row["start"].timestamp()) - START // SECOND: row["count"]
        for row in joined(spark, directory).to_pylist()
    }
    assert counts == {0: 3, 1000: 1}
    over = [ps.Stream("ab", time="event_time"), ps.Stream("b", time="ts")]
    again = ps.WindowJoin(over, on={"ab": "a_k", "b": "k"}, within="1 s")
    with pytest.raises(ps.InputError, match="comes behind the watermark"):
        again.on_spark(ab=pairs, b=sources["b"].stream(spark))


def test_history(spark: SparkSession, sources: dict[str, Source], tmp_path: Path) -> None:
    """What the histories have up to their own watermark is theirs; the rest comes here."""
    query = query_of(*PER_KEY)
    past = [{"a": batch(1, number), "b": batch(2, number)} for number in range(2)]
    live = [{"a": batch(1, number), "b": batch(2, number)} for number in (2, FAR)]
    history = {name: Source(tmp_path / f"old {name}") for name in "ab"}
    written(history, past)
    written(sources, live)
    initial = {name: spark.read.parquet(str(each.directory)) for name, each in history.items()}
    run(streamed(spark, query, sources, initial=initial), tmp_path)
    join = query.start()
    whole = {name: pa.concat_tables([each[name] for each in past]) for name in "ab"}
    join.push(whole)
    later = pa.concat_tables([*(join.push(each) for each in live), join.finish()])
    assert later.num_rows > 100
    assert rows_of(before_far(joined(spark, tmp_path))) == rows_of(before_far(later))
