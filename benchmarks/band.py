"""Band joins: what an ordered index is worth, and how it does against a batch join."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa

import penstock as ps
from benchmarks.duck import checksum
from benchmarks.measure import Measurement, interleave

__all__ = ["band"]

_LIVE: Final = 100_000
_ROWS: Final = 120_000  # of each stream
_BATCH: Final = 20_000
_PROBES: Final = 1_000  # of each stream, against full windows
_SHARE: Final = 0.001  # of live tuples that match
_ROUNDS: Final = 5
_INDEXES: Final = ("bplus_tree", "t_tree", "scan")

# DuckDB is asked so: with the bounds on time as inequalities too it takes minutes.
_SQL: Final = """
    SELECT a.ts AS a_ts, a.x AS a_x, b.ts AS b_ts, b.x AS b_x, greatest(a.ts, b.ts) AS event_time
    FROM {a} a JOIN {b} b ON a.x BETWEEN b.x - {near} AND b.x + {near}
    WHERE abs(a.ts - b.ts) <= {live}
"""


def band() -> list[Measurement]:
    """`abs(a.x - b.x) <= e` over windows of 100,000 tuples, of which 0.1 % match."""
    rng = np.random.default_rng(1)
    near = _SHARE / 2
    tables = {
        name: pa.table({"ts": np.arange(_ROWS), "x": rng.random(_ROWS)}) for name in ("a", "b")
    }
    query = ps.WindowJoin(
        [ps.Stream(name, time="ts") for name in tables],
        where=f"abs(a.x - b.x) <= {near}",
        within=f"{_LIVE} us",
    )
    return [_against_scan(query, tables), _against_duckdb(query, tables, near)]


def _against_scan(query: ps.WindowJoin, tables: dict[str, pa.Table]) -> Measurement:
    with query.start() as join:
        for start in range(0, _LIVE, _BATCH):
            join.push({name: table.slice(start, _BATCH) for name, table in tables.items()})
        full = join.snapshot()
    batch = {name: table.slice(_LIVE, _PROBES) for name, table in tables.items()}
    found: dict[str, int] = {}

    def probing(index: str) -> Callable[[], pa.Table]:
        joins = [query.restore(full, indexes=index) for _ in range(_ROUNDS + 1)]

        def probe() -> pa.Table:
            results = joins.pop().push(batch)
            found[index] = results.num_rows
            return results

        probe()
        return probe

    times = dict(
        zip(_INDEXES, interleave(_ROUNDS, *(probing(index) for index in _INDEXES)), strict=True)
    )
    if len(set(found.values())) > 1:
        raise AssertionError(f"the indexes do not find the same: {found}")
    return Measurement(
        name="band",
        what="speed of the B+tree over that of the scan",
        measured=times["scan"].median / times["bplus_tree"].median,
        required=20,
        at_least=True,
        details={
            "matches_of_a_probe": found["scan"] / (2 * _PROBES),
            "t_tree_over_scan": times["scan"].median / times["t_tree"].median,
            "seconds": {index: taken.wall for index, taken in times.items()},
        },
    )


def _against_duckdb(query: ps.WindowJoin, tables: dict[str, pa.Table], near: float) -> Measurement:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, table in tables.items():
        connection.register(f"{name}_arrow", table)
        connection.execute(f"CREATE TABLE {name}_loaded AS FROM {name}_arrow")
    sql = _SQL.format(a="a_loaded", b="b_loaded", near=near, live=_LIVE)

    def pushed(index: str) -> Callable[[], pa.Table]:
        def run() -> pa.Table:
            with query.start(indexes=index) as join:
                return pa.concat_tables(
                    join.push({name: table.slice(start, _BATCH) for name, table in tables.items()})
                    for start in range(0, _ROWS, _BATCH)
                )

        return run

    def asked() -> pa.Table:
        return connection.sql(sql).to_arrow_table(1_000_000)

    ways = {index: pushed(index) for index in ("bplus_tree", "t_tree")}
    results = {index: checksum(way()) for index, way in ways.items()}
    if {*results.values(), checksum(asked())} != {results["bplus_tree"]}:
        raise AssertionError("penstock and DuckDB do not give the same")
    *taken, duck = interleave(_ROUNDS, *ways.values(), asked)
    times = dict(zip(ways, taken, strict=True))
    return Measurement(
        name="band",
        what="speed of the B+tree over that of DuckDB, whole data",
        measured=duck.median / times["bplus_tree"].median,
        required=1,
        at_least=True,
        details={
            "results": results["bplus_tree"][0],
            "ratio_of_processor_time": duck.best_processor / times["bplus_tree"].best_processor,
            "t_tree": duck.median / times["t_tree"].median,
            "seconds": {**{way: each.wall for way, each in times.items()}, "duckdb": duck.wall},
        },
    )
