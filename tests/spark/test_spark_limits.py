"""Limits on Spark: part of the answer comes out, and the counters tell how much is missing.

What happens when attempts fail and states are lost is in test_spark_limits_recovery.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.model.limits import Limits
from support.spark_files import QUERY, SCHEMA, Source, batch, joined, rows_of, run

STREAMS = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts", lateness="2 seconds")]
SEMI = ps.WindowJoin(STREAMS, on="k", within="5 seconds", how="semi")
BAND = ps.WindowJoin(STREAMS, where="abs(a.v - b.v) <= 40", within="5 seconds")


def counters_of(runs: Sequence[Any]) -> list[dict[str, Any]]:
    """Those of all batches that touched a bucket."""
    found = [each["observedMetrics"]["penstock"] for run in runs for each in run.recentProgress]
    return [each.asDict() for each in found if each["live"] is not None]


def both(number: int, rows: int) -> dict[str, pa.Table]:
    return {name: batch(seed, number, rows) for seed, name in enumerate("ab")}


def long_after() -> dict[str, pa.Table]:
    """Rows without a key, which end all windows."""
    return {
        name: table.set_column(1, "k", pa.nulls(1, pa.string()))
        for name, table in both(100, 1).items()
    }


@pytest.mark.parametrize(
    ("query", "limits"),
    [
        (SEMI, Limits("24 rows", shed="prob", pool="fixed")),
        (BAND, Limits("90 rows", shed="life")),
        (QUERY, Limits("90 rows", service_rate=40, drop="tuple")),
    ],
    ids=["semi join", "without a key", "service rate"],
)
def test_what_is_missing_is_counted(
    spark: SparkSession,
    sources: dict[str, Source],
    tmp_path: Path,
    query: ps.WindowJoin,
    limits: Limits,
) -> None:
    """A restart in the middle. Of the semi join some losses are known when windows end, in buckets
    that no row comes to."""
    batches = [both(0, 300), both(1, 300), long_after()]
    runs = []
    for part in (range(1), range(1, 3)):
        for number in part:
            for name, source in sources.items():
                source.write(number, batches[number][name])
        frames = {name: source.stream(spark) for name, source in sources.items()}
        runs.append(run(query.on_spark(frames, limits=limits), tmp_path))
    join = query.start()
    expected = rows_of(pa.concat_tables([join.push(each) for each in batches]))
    got = rows_of(joined(spark, tmp_path))
    assert got < expected
    counted = counters_of(runs)
    assert sum(each["produced"] for each in counted) == got.total()
    assert sum(each["lost"] for each in counted) == expected.total() - got.total() > 30
    assert sum(each["lost_variance"] for each in counted) == 0
    assert all(each["live"] <= limits.memory.rows for each in counted)
    # The last batch has no rows, and only timers go off.
    assert (counted[-1]["lost"] > 0) == (query is SEMI)
    assert sum(each["shed"] for each in counted) > 300
    assert max(each["ghosts"] for each in counted) > 100


THREE = ps.WindowJoin([*STREAMS, ps.Stream("c", time="ts")], on="k", within="3 seconds")
# Of each stream in a batch, and the most that may be kept, well below what would be live.
LARGER = {"key": (QUERY, 300, 160), "band": (BAND, 300, 60), "three": (THREE, 90, 60)}


@pytest.mark.parametrize("seed", range(3))
def test_a_larger_run(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path, seed: int
) -> None:
    """Policies that are run on Spark nowhere else; pools and buckets drawn by a seed."""
    random = np.random.default_rng(seed)
    query, rows, most = LARGER[list(LARGER)[seed % len(LARGER)]]
    limits = Limits(
        f"{random.integers(most // 2, most)} rows",
        shed=["age", "oldest", "expected_life"][seed],
        pool=str(random.choice(["shared", "fixed"])),
        seed=seed,
    )
    if len(query.names) > 2:
        sources = {**sources, "c": Source(tmp_path / "c")}
    batches = [
        {name: batch(10 * seed + place, number, rows) for place, name in enumerate(query.names)}
        for number in range(3)
    ]
    for number, tables in enumerate(batches):
        for name, table in tables.items():
            sources[name].write(number, table)
    frames = {name: sources[name].stream(spark) for name in query.names}
    ran = run(query.on_spark(frames, limits=limits, buckets=int(random.integers(1, 5))), tmp_path)
    exact = query.start()
    expected = rows_of(pa.concat_tables([exact.push(each) for each in batches]))
    got = rows_of(joined(spark, tmp_path))
    assert got < expected
    counted = counters_of([ran])
    assert sum(each["lost"] for each in counted) == expected.total() - got.total() > 0
    assert all(each["live"] <= limits.memory.rows for each in counted)


def test_what_is_not_counted_is_null(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path
) -> None:
    """And a limit in bytes holds for all buckets together."""
    for name, table in both(0, 3000).items():
        sources[name].write(0, table)
    frames = {name: source.stream(spark) for name, source in sources.items()}
    limits = Limits("2 MiB", shed="oldest", loss="off")
    ran = run(QUERY.on_spark(frames, limits=limits, buckets=3), tmp_path)
    (counted,) = counters_of([ran])
    assert counted["lost"] is counted["lost_variance"] is None
    assert counted["bytes"] <= 2 << 20
    assert counted["live"] > 0
    assert counted["ghosts"] == 0


def test_what_cannot_be_limited(spark: SparkSession, sources: dict[str, Source]) -> None:
    frames = {name: source.stream(spark) for name, source in sources.items()}
    still = spark.createDataFrame([], SCHEMA)
    limits = Limits("1000 rows")
    with pytest.raises(ps.InputError, match="limits= is for streaming DataFrames"):
        QUERY.on_spark(a=still, b=still, limits=limits)
    semi = ps.WindowJoin(STREAMS, on="k", within="5 seconds", how="semi")
    with pytest.raises(ps.InputError, match="cannot begin with a history"):
        semi.on_spark(frames, limits=limits, initial={"a": still})
    with pytest.raises(ps.PlanError, match=r"too little for 7 buckets.* is the least"):
        QUERY.on_spark(frames, limits=Limits("300 KiB"), buckets=7)
    with pytest.raises(ps.PlanError, match="how='left' no tuples can be dropped"):
        ps.WindowJoin(STREAMS, on="k", within="1 s", how="left").on_spark(frames, limits=limits)
