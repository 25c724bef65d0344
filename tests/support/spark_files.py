"""Files that Spark reads as streams, and the rows that came out of a query."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import penstock as ps

SCHEMA = "ts timestamp, k string, v bigint, tags array<string>"
ARROW = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.string()),
        ("v", pa.int64()),
        ("tags", pa.list_(pa.string())),
    ]
)
START = 1_700_000_000_000_000
SECOND = 1_000_000
FAR = 30  # the number of a batch that is ahead of all the others

QUERY = ps.WindowJoin(
    [ps.Stream("a", time="ts"), ps.Stream("b", time="ts", lateness="2 seconds")],
    on="k",
    within="5 seconds",
)


def batch(seed: int, number: int, rows: int = 60) -> pa.Table:
    """Rows of ten seconds, out of order within two, some of them without a key."""
    random = np.random.default_rng([seed, number])
    times = np.sort(random.integers(0, 10 * SECOND, rows)) + random.integers(0, 2 * SECOND, rows)
    keys = [None if key == 0 else f"key {key}" for key in random.integers(0, 9, rows)]
    return pa.Table.from_arrays(
        [
            pa.array(START + number * 10 * SECOND + np.sort(times), ARROW.field("ts").type),
            pa.array(keys, pa.string()),
            pa.array(number * rows + np.arange(rows)),
            pa.array([[key or "", "x"] for key in keys], ARROW.field("tags").type),
        ],
        schema=ARROW,
    )


class Source:
    """A directory that Spark reads as a stream, one file in each batch, in their order."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def write(self, number: int, table: pa.Table) -> None:
        file = self.directory / f"{number:03}.parquet"
        pq.write_table(table, file)
        os.utime(file, (START // SECOND + number, START // SECOND + number))

    def stream(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.directory))


def rows_of(table: pa.Table) -> Counter[str]:
    return Counter(str(sorted(row.items())) for row in table.to_pylist())


def run(frame: DataFrame, directory: Path) -> Any:
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(directory / "out"))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def joined(spark: SparkSession, directory: Path) -> pa.Table:
    return spark.read.parquet(str(directory / "out")).toArrow()


def embedded(batches: list[dict[str, pa.Table]]) -> pa.Table:
    join = QUERY.start()
    return pa.concat_tables([join.push(each) for each in batches])


def before_far(table: pa.Table) -> pa.Table:
    """Of results, those that the last batch let go."""
    far = pa.scalar(START + FAR * 10 * SECOND, ARROW.field("ts").type)
    return table.filter(pc.less(table["event_time"], far))


def expected_of(query: ps.WindowJoin, batches: list[dict[str, pa.Table]]) -> pa.Table:
    join = query.start()
    return before_far(pa.concat_tables([*(join.push(each) for each in batches), join.finish()]))


def written(sources: dict[str, Source], batches: list[dict[str, pa.Table]], first: int = 0) -> None:
    for number, tables in enumerate(batches, first):
        for name, source in sources.items():
            source.write(number, tables[name])
