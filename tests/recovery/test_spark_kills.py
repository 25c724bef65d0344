"""Real Spark, really killed; state really damaged; two queries on one host.

The short version of `make kills`; docs/recovery.md tells what is promised.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from support.kills.campaign import CLUSTER, Campaign, rows_of
from support.kills.damage import DAMAGES
from support.kills.feed import QUERY, SCHEMA, Feed
from support.kills.hot_state import complaints
from support.thoroughness import often, scaled

SEED = 20_250_701
KILLS = scaled(
    quick={"executor": 1, "step": 1},
    all={"driver": 1, "executor": 2, "python": 1, "step": 3},
    ci={"driver": 1, "executor": 1, "python": 1, "step": 2},
)

# What a user is told: Spark's words for a state it cannot load, or ours for a segment.
TOLD = "CANNOT_LOAD_STATE_STORE|Checksum error|the (segment|bucket) is damaged"


@pytest.mark.slow
@pytest.mark.timeout(540)  # many JVMs are started, beside whatever else is going on
def test_nothing_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    report = Campaign(tmp_path, SEED, CLUSTER, KILLS, most_s=480).run()
    print(report)
    assert report.kills == Counter(KILLS)
    assert report.expected > scaled(quick=300, all=1000)
    assert report.rebuilt > 0
    assert report.is_exact, report
    assert complaints(tmp_path / "scratch") == []


class Runner:
    """Runs the query until it has read what there is."""

    def __init__(self, spark: SparkSession, directory: Path, seed: int) -> None:
        self.spark = spark
        self.directory = directory
        self.feed = Feed(directory / "in", seed)

    def start(self, files: int = 1) -> Any:
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files)
        frames = {name: reader.parquet(str(self.directory / "in" / name)) for name in QUERY.names}
        out = QUERY.on_spark(frames).writeStream.format("parquet").trigger(availableNow=True)
        out = out.option("checkpointLocation", str(self.directory / "checkpoint"))
        return out.start(str(self.directory / "out"))

    def committed(self) -> Counter[Any]:
        return rows_of(self.spark.read.parquet(str(self.directory / "out")).toArrow())


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_SCRATCH", directory)
        yield Path(directory)


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """A query that has read three files of each stream, and has one more to read."""
    runner = Runner(spark, tmp_path_factory.mktemp("damage"), seed=1)
    runner.feed.write(3)
    # A codec that pyarrow has too, so that a changelog can be written again. The checkpoint
    # remembers it.
    codec = "spark.sql.streaming.stateStore.compression.codec"
    spark.conf.set(codec, "zstd")
    runner.start().awaitTermination()
    spark.conf.unset(codec)
    runner.feed.write(1)
    for name in ("checkpoint", "out"):
        shutil.copytree(runner.directory / name, runner.directory / f"{name} saved")
    return runner


# Of a changelog and of a snapshot one damage that is told, and one that is mended.
OFTEN = ("half a changelog, no checksum", "half a snapshot that can be made again")


@pytest.mark.parametrize(
    "damage",
    often(DAMAGES, *OFTEN),
)
def test_damaged_state_gives_no_wrong_answer(stopped: Runner, scratch: Path, damage: str) -> None:
    for name in ("checkpoint", "out"):
        shutil.rmtree(stopped.directory / name)
        shutil.copytree(stopped.directory / f"{name} saved", stopped.directory / name)
    before = stopped.committed()
    DAMAGES[damage](stopped.directory / "checkpoint" / "state" / "0" / "0")
    for hot_state in scratch.glob("penstock-*/*"):
        shutil.rmtree(hot_state, ignore_errors=True)  # a query that ended does it too
    if damage.endswith("can be made again"):
        stopped.start().awaitTermination()
        assert stopped.committed() == rows_of(stopped.feed.answer())
        return
    with pytest.raises(PySparkException, match=TOLD):
        stopped.start().awaitTermination()
    assert stopped.committed() == before


def test_two_queries_on_one_host_at_once(
    spark: SparkSession, scratch: Path, tmp_path: Path
) -> None:
    """Both are right; what they keep is private, bounded, and gone when they have ended."""
    runners = [Runner(spark, tmp_path / str(seed), seed) for seed in (2, 3)]
    for runner in runners:
        runner.feed.write(5)
    others = set(scratch.glob("penstock-*/*"))
    queries = [runner.start() for runner in runners]
    states = 0
    while any(query.isActive for query in queries):
        assert complaints(scratch) == []
        states = max(states, len(list(scratch.glob("penstock-*/*/*"))))
        time.sleep(0.05)
    assert states > 0
    for runner, query in zip(runners, queries, strict=True):
        query.awaitTermination()
        assert runner.committed() == rows_of(runner.feed.answer())
        seen = [each["observedMetrics"]["penstock"]["rebuilt"] for each in query.recentProgress]
        assert sum(count or 0 for count in seen) == 0
    deadline = time.monotonic() + 60
    while left := set(scratch.glob("penstock-*/*")) - others:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_another_number_of_partitions_changes_nothing(
    spark: SparkSession, scratch: Path, tmp_path: Path
) -> None:
    """Spark keeps the first number for the state, whatever a user sets later."""
    runner = Runner(spark, tmp_path, seed=4)
    runner.feed.write(2)
    runner.start().awaitTermination()
    runner.feed.write(1)
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        runner.start().awaitTermination()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", partitions)
    assert runner.committed() == rows_of(runner.feed.answer())
