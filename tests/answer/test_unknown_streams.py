"""A stream that has not been seen yet: no join type, window or limit stumbles over it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import penstock as ps

pytestmark = pytest.mark.jit_off

WINDOWS = ("1 s", "2 rows", "2 rows per key", "unbounded", "since 1970-01-01T00:00:00Z")
HOWS = ("inner", "left", "right", "full", "semi", "anti")
ROWS = pa.table({"ts": [1, 2, 3, 4], "k": ["x", "x", "x", None]})
PAIRS = [
    *[(left, right) for left in WINDOWS for right in WINDOWS],
    ("5 arrivals", "5 arrivals"),
    ("tumbling 1 s", "tumbling 1 s"),
]


def of(windows: tuple[str, str], how: str) -> ps.WindowJoin:
    streams = [
        ps.Stream(name, time="ts", window=each) for name, each in zip("ab", windows, strict=True)
    ]
    return ps.WindowJoin(streams, on="k", how=how)


def looked_at(join: ps.Join) -> ps.Join:
    """All that can be asked of it, and what it goes on as."""
    join.driver.check()
    join.late()
    assert str(join.metrics)
    assert join.footprint()["state"] > 0
    row = {"ts": 1, "k": "x"}
    assert str(join.why(a=row, b=row))
    with pytest.raises(ps.StateError, match="rates are not known yet"):
        join.workload()
    return join


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("windows", PAIRS, ids="-".join)
@pytest.mark.parametrize("first", ["a", "b"])
def test_one_stream_comes_alone(first: str, windows: tuple[str, str], how: str) -> None:
    query = of(windows, how)
    counts = []
    for known in (False, True):
        schemas = {"a": ROWS.schema, "b": ROWS.schema} if known else None
        join = query.start(schemas=schemas)
        if not known:
            looked_at(join)
            join = query.restore(join.snapshot())
        found = [join.push({first: ROWS}).num_rows]
        found.append(join.push({first: ROWS}).num_rows)
        if not known:
            join = query.restore(join.snapshot())
        found.append(join.advance(first, 3).num_rows)
        other = "b" if first == "a" else "a"
        found.append(join.advance(other, 2).num_rows)
        found.append(join.push({other: ROWS}).num_rows)
        found.append(join.finish().num_rows)
        counts.append(found)
    assert counts[0] == counts[1]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("windows", PAIRS[:: len(WINDOWS) + 1] + PAIRS[-2:], ids="-".join)
def test_nothing_comes_at_all(windows: tuple[str, str], how: str) -> None:
    query = of(windows, how)
    join = looked_at(query.start())
    assert join.push().num_rows == 0
    assert join.advance("a", 5).num_rows == 0
    join = looked_at(query.restore(join.snapshot()))
    assert join.finish().num_rows == 0
    assert query.restore(join.snapshot()).metrics.produced == 0


@pytest.mark.parametrize("how", ["inner", "semi"])
@pytest.mark.parametrize("memory", ["1 rows", "1 MiB"])
def test_under_limits(memory: str, how: str) -> None:
    query = of(("1 s", "1 s"), how)
    limits: dict[str, Any] = {"limits": ps.Limits(memory)}
    join = looked_at(query.start(**limits))
    assert join.advance("b", 0).num_rows == 0
    join = looked_at(query.restore(join.snapshot(), **limits))
    join.push(b=ROWS)
    join.limit("2 rows")
    join = query.restore(join.snapshot(), **limits)
    join.push(a=ROWS)
    join.finish()
    assert join.metrics.lost is not None
    assert join.metrics.produced + join.metrics.lost == (9 if how == "inner" else 3)
