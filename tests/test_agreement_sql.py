"""Join types and predicates on tens of thousands of rows, against DuckDB over the whole data."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import penstock as ps
from penstock.workloads import uniform
from test_agreement import numbered

NEAR = "b.ts - a.ts <= interval 2 second and a.ts - b.ts <= interval 3 second"  # what a and b keep
WORK = uniform(seed=31, rows=80_000, keys=20_000, streams=("a", "b"), disorder="1 second")
SMALL = uniform(seed=32, rows=8000, keys=9000, streams=("a", "b"), disorder="1 second")


def ids(result: pa.Table) -> Counter[tuple[Any, ...]]:
    names = [name for name in ("a_id", "b_id") if name in result.column_names]
    return Counter(zip(*(result[name].to_pylist() for name in names), strict=True))


def in_sql(tables: dict[str, pa.Table], how: str, condition: str) -> Counter[tuple[Any, ...]]:
    given_out = "a.id as a_id" + ("" if how in ("semi", "anti") else ", b.id as b_id")
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        text = f"select {given_out} from a {how} join b on {NEAR} and {condition}"
        return ids(connection.sql(text).to_arrow_table())


def in_penstock(
    tables: dict[str, pa.Table], how: str, batch_rows: int, **given: Any
) -> Counter[tuple[Any, ...]]:
    windows = {"a": "2 seconds", "b": "3 seconds"}
    streams = [
        ps.Stream(name, time="ts", window=window, lateness="1 second")
        for name, window in windows.items()
    ]
    select = ["a.id"] if how in ("semi", "anti") else ["a.id", "b.id"]
    join = ps.WindowJoin(streams, how=how, select=select, **given).start()
    found: Counter[tuple[Any, ...]] = Counter()
    for start in range(0, len(tables["a"]), batch_rows):
        found += ids(join.push({n: table.slice(start, batch_rows) for n, table in tables.items()}))
    found += ids(join.finish())
    assert join.metrics.late == 0
    assert join.metrics.produced == found.total()
    return found


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_join_types_with_a_residual_predicate(how: str) -> None:
    tables = numbered(WORK)
    expected = in_sql(tables, how, "a.k = b.k and a.v < b.v")
    assert expected.total() > 3000
    for batch_rows in (80_000, 7000):
        assert in_penstock(tables, how, batch_rows, on="k", where="a.v < b.v") == expected


@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_band_without_a_key(how: str) -> None:
    tables = numbered(SMALL)
    expected = in_sql(tables, how, "abs(a.k - b.k) <= 2")
    assert expected.total() > 3000
    assert in_penstock(tables, how, 3000, where="abs(a.k - b.k) <= 2") == expected
