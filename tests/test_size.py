"""`penstock size`: what it says of a recording holds when the engine is run again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import penstock as ps
from penstock.cli import app
from penstock.errors import PlanError, QueryError
from penstock.sizing import Recording, size
from penstock.sizing.ceiling import ceiling_curve, ceiling
from penstock.sizing.curve import TOLERANCE, trace
from penstock.sizing.need import most_live
from penstock.sizing.policy_curve import Curve, Enough
from penstock.sizing.recommendation import recommended
from penstock.sizing.replay import exact_replay, replay
from penstock.sizing.size import Request, Sizing
from penstock.workloads import zipf

# Small, skewed, and the same for all tests that only look at what is said.
WORK = zipf(keys=300, rows=3_000, rate=1_000.0, payload=2, streams=("a", "b"))
TABLES = {name: WORK.table(name) for name in WORK.streams}
STREAMS = [ps.Stream(name, time="ts") for name in "ab"]
QUERY = ps.WindowJoin(STREAMS, on="k", within="200 milliseconds")


def rows_at(ts: list[int], keys: list[int]) -> pa.Table:
    return pa.table({"ts": pa.array(ts, pa.int64()), "k": pa.array(keys, pa.int64())})


def recall_of(query: ps.WindowJoin, tables: dict[str, Any], limits: ps.Limits) -> float:
    """In one push, which is another way of feeding than that of a sizing."""
    found = []
    for each in (None, limits):
        with query.start(limits=each) as join:
            join.push(tables)
            join.finish()
            found.append(join.metrics.produced)
    return found[1] / found[0]


@pytest.fixture(scope="module")
def sized() -> Sizing:
    return size(Recording.of(QUERY, TABLES), Request(with_ceiling=False))


# The exact need.


INSTANTS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3)), max_size=30)
WINDOWS = ("5 us", "0 us", "20 us", "tumbling 16 us", "unbounded")


@given(st.lists(INSTANTS, min_size=2, max_size=3), st.sampled_from(WINDOWS), st.data())
def test_the_need_is_the_most_live_at_an_instant(
    rows: list[list[tuple[int, int]]], window: str, data: st.DataObject
) -> None:
    names = "abc"[: len(rows)]
    how = data.draw(st.sampled_from(["inner", "semi"])) if len(rows) == 2 else "inner"
    query = ps.WindowJoin(
        [ps.Stream(name, time="ts") for name in names], on="k", within=window, how=how
    )
    tables = {
        name: rows_at([ts for ts, _ in each], [key for _, key in each])
        for name, each in zip(names, rows, strict=True)
    }
    peak = 0
    with query.start(schemas={name: each.schema for name, each in tables.items()}) as join:
        for now in range(61):
            arriving = {
                name: each.filter(pa.compute.equal(each["ts"], now))
                for name, each in tables.items()
            }
            # All that has ended is gone before what comes now is counted.
            for name in names:
                join.advance(name, now)
            join.push(arriving)
            peak = max(peak, join.metrics.live)
    exact = exact_replay(Recording.of(query, tables))
    assert exact.need.rows.tolist() == [peak]
    assert exact.here == peak == exact.need.streams.sum()
    assert exact.produced.tolist() == [join.metrics.produced]
