"""Ways to run Spark: by spark-submit and by Spark Connect, and what is left when it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.spark import session
from penstock.spark.state.scratch import Place
from support.spark_files import QUERY, Source, batch

SCRIPT = """
import pyarrow as pa
import pyarrow.parquet as pq
import penstock as ps
from penstock.testing import assert_joined
from pyspark.sql import SparkSession
from pyspark.sql.functions import window

spark = {builder}.config("spark.sql.shuffle.partitions", "1").getOrCreate()
times = pa.array([1_700_000_000_000_000, 1_700_000_001_000_000], pa.timestamp("us", "UTC"))
table = pa.table({{"ts": times, "k": [1, 2]}})
query = ps.WindowJoin([ps.Stream("a", "ts"), ps.Stream("b", "ts")], on="k", within="1 second")
expected = [{{"a_k": 1, "b_k": 1}}, {{"a_k": 2, "b_k": 2}}]
try:
    assert_joined(query, [{{"a": table}}, {{"b": table}}], expected, spark=spark)
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "value AS k")
    counts = query.on_spark(a=stream, b=stream).groupBy(window("event_time", "1 minute")).count()
    counts.writeStream.format("noop").start().stop()  # refused unless event_time has a watermark
    print("the answer is right")
    pq.write_table(table, "{directory}/rows.parquet")
    schema, place = "ts timestamp, k long", "{directory}/checkpoint"
    rows = spark.readStream.schema(schema).parquet("{directory}/*.parquet")
    joined = query.on_spark(a=rows, b=rows, checkpoint=place)
    writer = joined.writeStream.format("noop").option("checkpointLocation", place)
    writer.trigger(availableNow=True).start().awaitTermination()
    query.on_spark(a=rows, b=rows, checkpoint=place)
    other = ps.WindowJoin(query.streams, on="k", within="2 seconds")
    other.on_spark(a=rows, b=rows, checkpoint=place)
except ps.PenstockError as error:
    print(error)
spark.stop()
"""


def output_of(command: list[str], script: str, directory: Path, **environment: str) -> str:
    """What a script prints, in an environment that says nothing of Python."""
    file = directory / "script.py"
    file.write_text(script)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    done = subprocess.run(
        [*command, str(file)],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.stdout + done.stderr[-2000:]


def check_said(said: str) -> None:
    assert "the answer is right" in said
    assert "checkpoint is of another join" in said, said


@pytest.mark.slow
def test_spark_submit(tmp_path: Path) -> None:
    """Workers of a local master use the Python of the script, without being told."""
    submit = str(Path(sys.executable).parent / "spark-submit")
    script = SCRIPT.format(builder="SparkSession.builder", directory=tmp_path)
    command = [submit, "--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    # What runs the script is for spark-submit to know; it hands it on to no worker.
    python = {"PYSPARK_DRIVER_PYTHON": sys.executable}
    check_said(output_of(command, script, tmp_path, **python))


@pytest.mark.slow  # three sessions of their own
def test_spark_connect(tmp_path: Path) -> None:
    """The same over Connect; a server whose Python has no penstock is told so."""
    builder = 'SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false")'
    script = SCRIPT.format(builder=builder, directory=tmp_path)
    python = {"PYSPARK_PYTHON": sys.executable}
    check_said(output_of([sys.executable], script, tmp_path, **python))
    bare = tmp_path / "python3"  # has all packages but the one that is installed in place
    packages = sysconfig.get_path("purelib")
    bare.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"\n'
    )
    bare.chmod(0o755)
    without = {"PYSPARK_PYTHON": str(bare), "PYTHONPATH": ""}
    told = output_of([sys.executable], script, tmp_path, **without)
    assert "workers has no penstock" in told


def test_settings_that_are_missing_or_wrong(
    spark: SparkSession, sources: dict[str, Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the session lets us set is set; what the user has set is not overruled."""
    frames = {name: source.stream(spark) for name, source in sources.items()}
    spark.conf.unset(session._PROVIDER)
    QUERY.on_spark(frames)
    assert spark.conf.get(session._PROVIDER) == session._ROCKSDB
    for name, value in session._WANTED.items():
        assert spark.conf.get(name) == value
    with pytest.raises(ps.InputError, match=r"no option 'bucket'.*'a', 'b'.*buckets"):
        QUERY.on_spark(frames, bucket=4)
    spark.conf.set(session._PROVIDER, "com.example.Other")
    with pytest.raises(ps.PlanError, match="keeps its state in RocksDB"):
        QUERY.on_spark(frames)
    spark.conf.set(session._PROVIDER, session._ROCKSDB)
    spark.conf.set(session._POLICY, "max")
    with pytest.raises(ps.PlanError, match="the fastest stream"):
        QUERY.on_spark(frames)
    spark.conf.unset(session._POLICY)


@pytest.mark.parametrize(
    ("python", "chosen", "then"),
    [
        (sys.executable, None, "penstock.spark.daemon"),
        (sys.executable, "other.daemon", "other.daemon"),
        ("/usr/bin/python3", None, None),
    ],
)
def test_workers_fork_from_our_parent_unless_told_otherwise(
    spark: SparkSession,
    sources: dict[str, Source],
    monkeypatch: pytest.MonkeyPatch,
    python: str,
    chosen: str | None,
    then: str | None,
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", python)
    live = spark._sc._jsc.sc().conf()
    before = live.get(session._DAEMON)
    try:
        live.remove(session._DAEMON)
        if chosen:
            live.set(session._DAEMON, chosen)
        QUERY.on_spark({name: source.stream(spark) for name, source in sources.items()})
        assert live.get(session._DAEMON, None) == then
    finally:
        live.set(session._DAEMON, before)


def test_hot_state_goes_with_the_query(
    spark: SparkSession,
    sources: dict[str, Source],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Private while it runs, at most two states a bucket, and nothing left when it has ended."""
    monkeypatch.setenv("PENSTOCK_SCRATCH", str(tmp_path))
    root = Place("", None).root()
    assert root is not None
    frames = {name: source.stream(spark) for name, source in sources.items()}
    query = (
        QUERY.on_spark(frames, buckets=4)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        for number in range(3):
            for seed, source in enumerate(sources.values()):
                source.write(number, batch(seed, number))
            query.processAllAvailable()
        (home,) = root.iterdir()
        assert home.stat().st_mode & 0o777 == 0o700
        states = [state.name for state in home.iterdir()]
        assert 0 < len(states) <= 2 * 4
        assert {state.stat().st_mode & 0o777 for state in home.iterdir()} == {0o700}
        assert not any(state.startswith("claimed") for state in states)
        seen = [each["observedMetrics"]["penstock"] for each in query.recentProgress]
        assert {each["hot_state"] for each in seen if each["hot_state"]} == {home.name}
        assert sum(each["rebuilt"] or 0 for each in seen) == 0
    finally:
        query.stop()
    for _ in range(100):
        if not list(root.iterdir()):
            break
        time.sleep(0.1)
    assert not list(root.iterdir())
