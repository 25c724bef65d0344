"""Functions as predicates on Spark: they go to the workers with the query."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from support.spark_files import QUERY, Source, batch, joined, rows_of, run


def test_on_spark(spark: SparkSession, sources: dict[str, Source], tmp_path: Path) -> None:
    """A lambda with a value of its own goes to the workers, also across a restart."""
    most, half = 20, 2
    query = ps.WindowJoin(
        QUERY.streams,
        on="k",
        where=[
            "a.v <> b.v",
            ps.udf(lambda v, w: pc.less(pc.abs(pc.subtract(v, w)), most), ["a.v", "b.v"]),
            ps.udf(lambda v: np.array(v) % half == 0, ["b.v"]),
        ],
        within="5 seconds",
    )
    batches = [{name: batch(seed, n) for seed, name in enumerate("ab")} for n in range(2)]
    for number, tables in enumerate(batches):
        for name, source in sources.items():
            source.write(number, tables[name])
        frames = {name: source.stream(spark) for name, source in sources.items()}
        run(query.on_spark(frames), tmp_path)
    join = query.start()
    expected = rows_of(pa.concat_tables([join.push(each) for each in batches]))
    assert sum(expected.values()) > 50
    assert rows_of(joined(spark, tmp_path)) == expected
    frames = {name: spark.read.parquet(str(each.directory)) for name, each in sources.items()}
    assert rows_of(query.on_spark(frames).toArrow()) == expected


def test_a_function_that_fails_on_spark(spark: SparkSession) -> None:
    """Its name and its error are in what Spark raises."""

    def failing(*_: pa.Array) -> pa.Array:
        raise KeyError("no such thing")

    two = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    frame = spark.createDataFrame([(1, 1, 1)], "ts bigint, k bigint, v bigint")
    query = ps.WindowJoin(two, on="k", where=ps.udf(failing, ["a.v", "b.v"]), within="10 us")
    with pytest.raises(Exception, match=r"failing' failed on 1 rows with KeyError"):
        query.on_spark(a=frame, b=frame).collect()
