"""DuckDB as the peer: the same join in SQL, over the whole data, with one thread, to Arrow.

It can be asked in each of `FORMS` and from each of `SOURCES`; the fastest of these ways is the
one to compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import duckdb
import pyarrow as pa

__all__ = ["Peer", "checksum"]

# Two ways to write `|left.ts - right.ts| <= window`.
FORMS: Final = {
    "between": "b.ts BETWEEN a.ts - to_microseconds({us}) AND a.ts + to_microseconds({us})",
    "integers": "abs(epoch_us(b.ts) - epoch_us(a.ts)) <= {us}",
}

# The tables loaded into DuckDB beforehand, or the Arrow tables read where they are.
SOURCES: Final = ("loaded", "arrow")

# Rows in one Arrow batch of the answer; with DuckDB's own default it is slightly slower.
_BATCH_ROWS: Final = 1_000_000


class Peer:
    """A one-thread DuckDB that holds both streams."""

    def __init__(self, tables: Mapping[str, pa.Table], window_us: int) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")
        self._names = tuple(tables)
        self._columns = {name: table.column_names for name, table in tables.items()}
        self._window_us = window_us
        for name, table in tables.items():
            self._connection.register(f"{name}_arrow", table)
            self._connection.execute(f"CREATE TABLE {name}_loaded AS FROM {name}_arrow")

    def ways(self) -> dict[str, Callable[[], pa.Table]]:
        """Every way to ask, by name."""
        return {
            f"{source}, {form}": partial(self._answer, self._sql(source, form))
            for source in SOURCES
            for form in FORMS
        }

    def _answer(self, sql: str) -> pa.Table:
        return self._connection.sql(sql).to_arrow_table(_BATCH_ROWS)

    def _sql(self, source: str, form: str) -> str:
        first, second = self._names
        columns = [
            f"{alias}.{column} AS {name}_{column}"
            for alias, name in (("a", first), ("b", second))
            for column in self._columns[name]
        ]
        near = FORMS[form].format(us=self._window_us)
        return (
            f"SELECT {', '.join(columns)}, greatest(a.ts, b.ts) AS event_time "
            f"FROM {first}_{source} a JOIN {second}_{source} b ON a.k = b.k AND {near}"
        )


def checksum(table: pa.Table) -> tuple[int, int]:
    """The number of rows, and a sum over all their values that no order of rows changes."""
    connection = duckdb.connect()
    connection.register("answer", table)
    columns = ", ".join(table.column_names)
    row = connection.execute(f"SELECT count(*), sum(hash({columns})::HUGEINT) FROM answer")
    count, total = row.fetchall()[0]
    return count, total or 0
