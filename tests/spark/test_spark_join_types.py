"""Left, right, full, semi and anti joins on Spark: the embedded engine's answer.

What matches nothing comes out when the watermark has passed its window. So the last batch of each
query here is far ahead, and lets go of all that came before it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import penstock as ps
from support.spark_files import (
    FAR,
    Source,
    batch,
    before_far,
    expected_of,
    joined,
    rows_of,
    run,
    written,
)


def query_of(how: str, **more: Any) -> ps.WindowJoin:
    streams = [
        ps.Stream("a", time="ts", window="2 seconds", lateness="3 seconds"),
        ps.Stream("b", time="ts", window="4 seconds", lateness="3 seconds"),
    ]
    return ps.WindowJoin(streams, on="k", how=how, **more)


BATCHES = [
    {"a": batch(1, number, rows=40), "b": batch(2, number, rows=40)} for number in (0, 1, 2, FAR)
]


def run_twice(
    spark: SparkSession, sources: dict[str, Source], query: ps.WindowJoin, directory: Path
) -> None:
    """All batches through a query that is started anew in the middle."""
    for begin, end in ((0, 2), (2, 4)):
        written(sources, BATCHES[begin:end], first=begin)
        frames = {name: source.stream(spark) for name, source in sources.items()}
        run(query.on_spark(frames), directory)


@pytest.mark.parametrize("how", ["full", "semi", "anti"])
def test_a_stream_and_its_restart(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path, how: str
) -> None:
    """Out of order, some rows without a key; the query is started anew in the middle."""
    query = query_of(how)
    run_twice(spark, sources, query, tmp_path)
    expected = expected_of(query, BATCHES)
    assert expected.num_rows > 10
    assert rows_of(before_far(joined(spark, tmp_path))) == rows_of(expected)


def test_windows_that_count(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path
) -> None:
    """A tuple comes out alone when newer ones have pushed it out; the last ones stay inside."""
    streams = [
        ps.Stream("a", time="ts", window="3 rows per key", lateness="3 seconds"),
        ps.Stream("b", time="ts", window="1 second", lateness="3 seconds"),
    ]
    query = ps.WindowJoin(streams, on="k", how="full")
    run_twice(spark, sources, query, tmp_path)
    join = query.start()
    expected = before_far(pa.concat_tables([join.push(each) for each in BATCHES]))
    for column in ("a_k", "b_k"):
        assert expected.filter(pc.is_null(expected[column])).num_rows > 10
    assert rows_of(before_far(joined(spark, tmp_path))) == rows_of(expected)


def test_history(spark: SparkSession, sources: dict[str, Source], tmp_path: Path) -> None:
    """Its tuples come out alone only if they match nothing in the history either."""
    query = query_of("full")
    past = {name: batch(seed, 0, rows=40) for seed, name in enumerate("ab")}
    live = [{name: batch(seed, n, rows=40) for seed, name in enumerate("ab")} for n in (1, FAR)]
    history = {name: Source(tmp_path / f"old {name}") for name in "ab"}
    written(history, [past])
    written(sources, live)
    initial = {name: spark.read.parquet(str(each.directory)) for name, each in history.items()}
    frames = {name: source.stream(spark) for name, source in sources.items()}
    run(query.on_spark(frames, initial=initial), tmp_path)
    join = query.start()
    join.push(past)
    expected = before_far(pa.concat_tables([join.push(each) for each in live]))
    alone = expected.filter(pc.is_null(expected["a_k"]))
    assert pc.min(alone["b_v"]).as_py() < 40  # of the history
    assert rows_of(before_far(joined(spark, tmp_path))) == rows_of(expected)


@pytest.mark.parametrize("how", ["full", "anti"])
def test_batch_frames(spark: SparkSession, sources: dict[str, Source], how: str) -> None:
    query = query_of(how, where="a.v < b.v")
    batches = [{"a": batch(1, number), "b": batch(2, number)} for number in (0, 1)]
    written(sources, batches)
    frames = {name: spark.read.parquet(str(source.directory)) for name, source in sources.items()}
    assert rows_of(query.on_spark(frames).toArrow()) == rows_of(whole(query, batches))


def whole(query: ps.WindowJoin, batches: list[dict[str, Any]]) -> Any:
    """The answer when nothing is late."""
    join = query.start()
    tables = {name: pa.concat_tables([each[name] for each in batches]) for name in ("a", "b")}
    return pa.concat_tables([join.push(tables), join.finish()])


def test_an_aggregation_behind_an_outer_join(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path
) -> None:
    """Rows that come out alone are behind the watermark that lets them go, and not dropped."""
    query = query_of("left")
    batches = [
        {"a": batch(1, number, rows=40), "b": batch(2, number, rows=40)}
        for number in (0, 1, FAR, 2 * FAR)
    ]
    written(sources, batches)
    frames = {name: source.stream(spark) for name, source in sources.items()}
    counts = query.on_spark(frames).groupBy(F.window("event_time", "1 second")).count()
    run(counts.select("window.start", "count"), tmp_path)
    counted = sum(row["count"] for row in joined(spark, tmp_path).to_pylist())
    assert counted >= expected_of(query, batches).num_rows


def test_what_does_not_go_together(spark: SparkSession, sources: dict[str, Source]) -> None:
    frames = {name: source.stream(spark) for name, source in sources.items()}
    streams = [ps.Stream("a", time="event_time"), ps.Stream("b", time="ts")]
    over = ps.WindowJoin(streams, on={"a": "a_k", "b": "k"}, within="1 s")
    for how in ("left", "semi"):
        outer = query_of(how).on_spark(frames)
        with pytest.raises(ps.InputError, match="or is not inner, and comes behind"):
            over.on_spark(a=outer, b=frames["b"])
    inner = query_of("inner").on_spark(frames)
    longer = ps.WindowJoin(streams, on={"a": "a_k", "b": "k"}, within="9 s", how="left")
    with pytest.raises(ps.PlanError, match="whose windows are shorter"):
        longer.on_spark(a=inner, b=frames["b"])
