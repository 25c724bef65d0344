"""For tests of your own joins: batches in, expected rows out, a restart after every batch.

    from penstock.testing import assert_joined

    assert_joined(query, [{"orders": orders, "payments": payments}], [{"orders_order_id": 1}])

Without a Spark session the join runs embedded and is saved and restored after every batch.
With one it runs as a streaming query that is stopped and started again after every batch, on
files in a temporary directory: what comes out is what was committed. There no stream ends:
what waits in windows that count, or comes out alone, does so only if the watermark passes it.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from penstock.engine.intake import as_table
from penstock.window_join import WindowJoin

__all__ = ["assert_joined", "joined"]

Batches = Sequence[Mapping[str, Any]]


def joined(query: WindowJoin, batches: Batches, *, spark: Any = None) -> pa.Table:
    """All results of a join that is restarted after every batch.

    batches: of each a table for any of the streams: what `push` takes, or a list of rows.
    """
    tables = [{name: _table(name, rows) for name, rows in batch.items()} for batch in batches]
    return _embedded(query, tables) if spark is None else _on_spark(query, tables, spark)


def _table(name: str, rows: Any) -> pa.Table:
    if isinstance(rows, list):
        return pa.Table.from_pylist(rows)
    return as_table(rows, name)


def _schemas(batches: Sequence[Mapping[str, pa.Table]]) -> dict[str, pa.Schema]:
    return {name: table.schema for batch in batches for name, table in batch.items()}


def assert_joined(
    query: WindowJoin,
    batches: Batches,
    expected: pa.Table | Iterable[Mapping[str, Any]],
    *,
    spark: Any = None,
) -> None:
    """Raise AssertionError unless the join gives these rows, in any order.

    Only the columns of the expected rows are compared; each row counts as often as it comes.
    """
    rows = expected.to_pylist() if isinstance(expected, pa.Table) else list(expected)
    results = joined(query, batches, spark=spark)
    columns = list(dict.fromkeys(name for row in rows for name in row)) or results.column_names
    unknown = [name for name in columns if name not in results.column_names]
    assert not unknown, f"no column is called {unknown}; there are {results.column_names}"
    wanted = Counter(repr([row.get(name) for name in columns]) for row in rows)
    got = Counter(repr([row[name] for name in columns]) for row in results.to_pylist())
    missing, surplus = list((wanted - got).elements()), list((got - wanted).elements())
    assert not missing and not surplus, (
        f"of the columns {columns}, {len(missing)} expected rows are missing {missing[:5]} "
        f"and {len(surplus)} came that were not expected {surplus[:5]}"
    )


def _embedded(query: WindowJoin, batches: Batches) -> pa.Table:
    join = query.start(schemas=_schemas(batches))
    tables = []
    for batch in batches:
        tables.append(join.push(batch))
        join = query.restore(join.snapshot())
    tables.append(join.finish())
    return pa.concat_tables(tables)


def _on_spark(query: WindowJoin, batches: Batches, spark: Any) -> pa.Table:
    schemas = _schemas(batches)
    with tempfile.TemporaryDirectory(prefix="penstock-testing-") as directory:
        base = Path(directory)
        for number, batch in enumerate(batches):
            for place, name in enumerate(query.names):
                table = batch.get(name, schemas[name].empty_table())
                _write(base / f"in {place}", number, table)
            frames = {
                name: _read(spark, base / f"in {place}") for place, name in enumerate(query.names)
            }
            running = (
                query.on_spark(frames)
                .writeStream.format("parquet")
                .option("path", str(base / "out"))
                .option("checkpointLocation", str(base / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            running.awaitTermination()
        return spark.read.parquet(str(base / "out")).toArrow()


def _write(directory: Path, number: int, table: pa.Table) -> None:
    directory.mkdir(exist_ok=True)
    file = directory / f"{number:06}.parquet"
    pa.parquet.write_table(table, file)
    os.utime(file, (1_000_000_000 + number,) * 2)  # Spark reads files in the order of their age


def _read(spark: Any, directory: Path) -> Any:
    schema = spark.read.parquet(str(directory)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(directory))
