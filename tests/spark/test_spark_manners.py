"""What a user of Spark meets first: partitions that fit the machine, and errors in plain words."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import penstock as ps
from penstock.spark import session
from support.spark_files import QUERY, Source, batch

LONGER = ps.WindowJoin(QUERY.streams, on="k", within="6 seconds")
TOLD = "the checkpoint is of another join: window of stream 'a' was '5 seconds' and is '6 seconds'"


class Elsewhere:
    """A session of which only the settings are asked for."""

    def __init__(self, **settings: str) -> None:
        self.conf = self
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}

    def get(self, name: str, default: str | None = None) -> str | None:
        return self.settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value


def test_a_local_session_gets_as_many_partitions_as_cores(
    spark: SparkSession, sources: dict[str, Source]
) -> None:
    frames = {name: source.stream(spark) for name, source in sources.items()}
    before = spark.conf.get(session._PARTITIONS)
    try:
        spark.conf.unset(session._PARTITIONS)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ps.PlanWarning)
            QUERY.on_spark(frames)
        assert spark.conf.get(session._PARTITIONS) == "2"  # the cores of the master
        spark.conf.set(session._PARTITIONS, "7")
        QUERY.on_spark(frames)
        assert spark.conf.get(session._PARTITIONS) == "7"
    finally:
        spark.conf.set(session._PARTITIONS, str(before))


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[3]", 3), ("local[3,4]", 3), ("local[ 2 ]", 2), ("local[0]", 1)],
)
def test_cores_of_local_masters(master: str, cores: int) -> None:
    settled = Elsewhere(spark_master=master)
    session._choose_partitions(settled, streaming=True)
    assert settled.settings[session._PARTITIONS] == str(cores)
    assert (session._local_cores("local[*]") or 0) >= 1


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077", "local-cluster[2,1,1024]", ""])
def test_elsewhere_the_line_to_add_is_said(master: str) -> None:
    elsewhere: Any = Elsewhere(spark_master=master)
    line = r'add spark.conf.set\("spark.sql.shuffle.partitions", n\)'
    with pytest.warns(ps.PlanWarning, match=line):
        session._choose_partitions(elsewhere, streaming=True)
    assert session._PARTITIONS not in elsewhere.settings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session._choose_partitions(elsewhere, streaming=False)  # Spark joins small ones itself
        elsewhere.set(session._PARTITIONS, "200")
        session._choose_partitions(elsewhere, streaming=True)


def test_a_checkpoint_of_another_join_is_refused_in_plain_words(
    spark: SparkSession, sources: dict[str, Source], tmp_path: Path
) -> None:
    """Before anything runs where the checkpoint is named; else by the first batch, whose error
    begins with ours and has no traceback."""
    checkpoint = tmp_path / "checkpoint"

    def frames() -> dict[str, Any]:
        return {name: source.stream(spark) for name, source in sources.items()}

    def ran(query: ps.WindowJoin, **options: Any) -> None:
        writer = query.on_spark(frames(), **options).writeStream.format("noop")
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        writer.start().awaitTermination()

    def more(number: int) -> None:
        for seed, source in enumerate(sources.values()):
            source.write(number, batch(seed, number))

    more(0)
    ran(QUERY, checkpoint=checkpoint)  # a new one has nothing to refuse
    QUERY.on_spark(frames(), checkpoint=str(checkpoint))
    with pytest.raises(ps.SnapshotError, match=TOLD):
        LONGER.on_spark(frames(), checkpoint=checkpoint)
    with pytest.raises(ps.SnapshotError, match=r"has 8 buckets .* and this query 5 over 2; pass"):
        QUERY.on_spark(frames(), checkpoint=checkpoint, buckets=5)
    with pytest.raises(ps.InputError, match="takes the path of a checkpoint, got 7"):
        QUERY.on_spark(frames(), checkpoint=7)  # type: ignore[arg-type]  # what it is about
    more(1)
    with pytest.raises(StreamingQueryException) as caught:
        ran(LONGER)
    first, *rest = str(caught.value).splitlines()
    assert f"penstock.errors.SnapshotError: {TOLD}" in first
    assert not any("Traceback" in line or "File " in line for line in [first, *rest])


def test_the_first_block_of_the_page_runs(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parents[2] / "docs" / "spark.md"
    block = re.search(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(block[1], names)  # noqa: S102 - the page's own lines
    assert names["spark"] is spark
    (row,) = spark.read.parquet(f"{names['home']}/paid").collect()
    assert (row["orders_order_id"], row["payments_order_id"]) == (7, 7)
    assert "payments_at" in capsys.readouterr().out
