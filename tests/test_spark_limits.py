"""Limits on Spark: part of the answer comes out, and the counters tell how much is missing.

What happens when attempts fail and states are lost is in test_spark_limits_recovery.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.engine.clock import BEGINNING
from penstock.model.binding import Binding
from penstock.model.limits import Limits
from penstock.model.plan import Plan
from penstock.spark.bucket import Bucket, Step
from penstock.spark.hot import ProcessMemory
from spark_files import ARROW, QUERY, SCHEMA, Source, batch, embedded, joined, rows_of, run
from spark_simulator import AttemptStore, Committed

STREAMS = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts", lateness="2 seconds")]
BAND = ps.WindowJoin(STREAMS, where="abs(a.v - b.v) <= 40", within="5 seconds")


def counters_of(runs: Sequence[Any]) -> list[dict[str, Any]]:
    """Those of all batches that touched a bucket."""
    found = [each["observedMetrics"]["penstock"] for run in runs for each in run.recentProgress]
    return [each.asDict() for each in found if each["live"] is not None]


def both(number: int, rows: int) -> dict[str, pa.Table]:
    return {name: batch(seed, number, rows) for seed, name in enumerate("ab")}


@pytest.mark.parametrize(
    ("query", "limits"),
    [
        (QUERY, Limits("120 rows", shed="prob", pool="fixed")),
        (BAND, Limits("90 rows", shed="life")),
    ],
    ids=["by key", "without a key"],
)
def test_what_is_missing_is_counted(
    spark: SparkSession,
    sources: dict[str, Source],
    tmp_path: Path,
    query: ps.WindowJoin,
    limits: Limits,
) -> None:
    """Five batches and a restart in their midst."""
    batches = [both(number, 200) for number in range(5)]
    runs = []
    for part in (range(3), range(3, 5)):
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
    assert sum(each["lost"] for each in counted) == expected.total() - got.total() > 100
    assert sum(each["lost_variance"] for each in counted) == 0
    assert all(each["live"] <= limits.memory.rows for each in counted)
    assert sum(each["shed"] for each in counted) > 500
    assert max(each["ghosts"] for each in counted) > 100
