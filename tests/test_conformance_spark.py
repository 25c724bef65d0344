"""The cases of test_conformance.py on Spark: each a query over files, a batch for each step.

Times are shifted by some decades, because Spark's watermark cannot be before 1970. Batches of
both streams have to come in step: a stream that has no rows in a step gets an empty file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from spark_files import run

SHIFT = 1_700_000_000
SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])
UNBOUNDED = {"window": "1000 weeks", "lateness": "1000 weeks"}

Rows = list[tuple[int | None, float]]


@dataclass(frozen=True)
class Case:
    """steps: rows (key, seconds) by stream. expected: the seconds of each result's tuples."""

    streams: Mapping[str, Mapping[str, str]]
    steps: Sequence[Mapping[str, Rows]]
    expected: Sequence[tuple[float, ...]]
    late: Mapping[str, Sequence[float]] = field(default_factory=dict)


def of_one_key(*seconds: float) -> Rows:
    return [(1, second) for second in seconds]


def itself(*values: int) -> Rows:
    return [(value, value) for value in values]


def modulo_5(*values: int) -> Rows:
    return [(value % 5, value) for value in values]


MILLISECONDS = [tick / 1000 for tick in range(1, 5)]

CASES = {
    "Spark: inner on a column that is no time": Case(
        {"l": UNBOUNDED, "r": UNBOUNDED},
        [
            {"l": itself(1)},
            {"r": itself(1, 10)},
            {"l": itself(10)},
            {"r": itself(1)},
            {"l": itself(1)},
            {"l": itself(100), "r": itself(100)},
        ],
        [(1, 1)] * 4 + [(10, 10), (100, 100)],
    ),
    "Spark: time range, watermarks on both sides": Case(
        {
            "l": {"window": "10 seconds", "lateness": "19.999 seconds"},
            "r": {"window": "5 seconds", "lateness": "29.999 seconds"},
        },
        [
            {"l": of_one_key(20)},
            {"r": of_one_key(14, 15, 25, 26, 30, 31)},
            {"r": of_one_key(60)},
            {"l": of_one_key(49, 50, 65, 66)},
            {"l": of_one_key(30, 31)},
            {"r": of_one_key(80)},
            {"r": of_one_key(46, 50)},
        ],
        [
            *[(20, 15), (20, 25), (20, 26), (20, 30), (50, 60), (65, 60), (31, 26), (31, 30)],
            *[(31, 31), (49, 50), (50, 50)],
        ],
        {"l": [30], "r": [46]},
    ),
    "Spark: self join": Case(
        {"l": UNBOUNDED, "r": UNBOUNDED},
        [
            {"l": modulo_5(1, 2), "r": modulo_5(1, 2)},
            {"l": modulo_5(3, 6), "r": modulo_5(3, 6)},
        ],
        [(1, 1), (2, 2), (3, 3), (1, 6), (6, 1), (6, 6)],
    ),
    "Spark: three streams": Case(
        {"a": UNBOUNDED, "b": UNBOUNDED, "c": UNBOUNDED},
        [{"a": itself(1, 5), "b": itself(1, 5, 10), "c": itself(5, 10)}],
        [(5, 5, 5)],
    ),
    "Spark: plain equality of nulls": Case(
        {"l": UNBOUNDED, "r": UNBOUNDED},
        [{"l": [*itself(1, 5, 10), (None, 0)], "r": [*itself(1, 5), (None, 0)]}],
        [(1, 1), (5, 5)],
    ),
    "Flink: bounds of -1 and 1 ms": Case(
        {"l": {"window": "1 ms"}, "r": {"window": "1 ms"}},
        [{"l": of_one_key(tick), "r": of_one_key(tick)} for tick in MILLISECONDS],
        [(x, y) for x in MILLISECONDS for y in MILLISECONDS if abs(x - y) < 0.0015],
    ),
}


def written(directory: Path, number: int, rows: Rows) -> None:
    table = pa.table(
        {
            "k": [key for key, _ in rows],
            "ts": [round((SHIFT + second) * 1_000_000) for _, second in rows],
            "v": list(range(len(rows))),
        },
        schema=pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("v", pa.int64())]),
    ).cast(SCHEMA)
    directory.mkdir(exist_ok=True)
    file = directory / f"{number:03}.parquet"
    pq.write_table(table, file)
    os.utime(file, (SHIFT + number, SHIFT + number))


def seconds(values: pa.ChunkedArray) -> list[float]:
    return [round(ts / 1e6 - SHIFT, 3) for ts in values.cast(pa.int64()).to_pylist()]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_on_spark(spark: SparkSession, case: Case, tmp_path: Path) -> None:
    frames: dict[str, Any] = {}
    for name in case.streams:
        for number, step in enumerate(case.steps):
            written(tmp_path / name, number, step.get(name, []))
        reader = spark.readStream.schema("k bigint, ts timestamp, v bigint")
        frames[name] = reader.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / name))
    query = ps.WindowJoin(
        [ps.Stream(name, time="ts", **settings) for name, settings in case.streams.items()],
        on="k",
    )
    run(query.on_spark(frames, kind=True), tmp_path)
    got = spark.read.parquet(str(tmp_path / "out")).toArrow()
    results = got.filter(pa.compute.equal(got["kind"], "result"))
    times = [seconds(results[f"{name}_ts"]) for name in case.streams]
    assert sorted(zip(*times, strict=True)) == sorted(case.expected)
    late = got.filter(pa.compute.equal(got["kind"], "late"))
    for name in case.streams:
        assert sorted(seconds(late[f"{name}_ts"].drop_null())) == sorted(case.late.get(name, []))
