"""Join types and predicates on tens of thousands of rows, against DuckDB over the whole data."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps
from penstock.samples import uniform
from support.numbered import numbered
from support.thoroughness import often

NEAR = "b.ts - a.ts <= interval 2 second and a.ts - b.ts <= interval 3 second"  # what a and b keep
WORK = uniform(seed=31, rows=80_000, keys=20_000, streams=("a", "b"), disorder="1 second")
SMALL = uniform(seed=32, rows=8000, keys=9000, streams=("a", "b"), disorder="1 second")


def ids(result: pa.Table) -> Counter[tuple[Any, ...]]:
    names = [name for name in ("a_id", "b_id", "c_id") if name in result.column_names]
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
    expected = in_sql(tables, how, "a.k between b.k - 2 and b.k + 2")
    assert expected.total() > 3000
    assert in_penstock(tables, how, 3000, where="abs(a.k - b.k) <= 2") == expected


THREE = uniform(seed=33, rows=2000, keys=100, streams=("a", "b", "c"), disorder="1 second")
LINKS = {
    "a chain": "a.k = b.k AND b.v = c.v",
    "a cycle": "a.k = b.k AND b.v = c.v AND c.k = a.v",
    "equality and a band": "a.k = b.k AND abs(b.v - c.v) <= 1",
    "an interval": "b.k BETWEEN a.k AND a.k + 1 AND c.v = b.v",
}


@pytest.mark.parametrize("index", often([None, "t_tree"], None))
@pytest.mark.parametrize("links", LINKS)
def test_three_streams_over_different_attributes(links: str, index: str | None) -> None:
    tables = {
        name: table.set_column(
            table.schema.get_field_index("v"), "v", pc.bit_wise_and(table["id"], 255)
        )
        for name, table in numbered(THREE).items()
    }
    streams = [ps.Stream(name, time="ts", lateness="1 second") for name in "abc"]
    join = ps.WindowJoin(streams, where=LINKS[links], within="2 seconds").start(indexes=index)
    found: Counter[tuple[Any, ...]] = Counter()
    for start in range(0, THREE.rows, 600):
        found += ids(join.push({n: table.slice(start, 600) for n, table in tables.items()}))
    near = " and ".join(
        f"abs(epoch_us({one}.ts) - epoch_us({other}.ts)) <= 2000000"
        for one, other in (("a", "b"), ("b", "c"), ("a", "c"))
    )
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        text = (
            f"select a.id a_id, b.id b_id, c.id c_id from a, b, c where {near} and {LINKS[links]}"
        )
        expected = ids(connection.sql(text).to_arrow_table())
    assert expected.total() > 100
    assert found == expected
