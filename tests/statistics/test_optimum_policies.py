"""The optimum beside the engine: no policy, which does not know what will come, is better."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import penstock as ps
from penstock.model.limits import POLICIES, Memory
from support.limited import policies_of
from support.offline_cases import NAMES, ROOM, Case, cases
from support.scenario import feed
from support.thoroughness import examples

LIMITED = ("in step", "time", "unbounded", "since", "tumbling", "between", "any key", "where")


@pytest.mark.parametrize("kind", LIMITED)
@examples(1 / 6)
@given(st.data())
def test_no_policy_is_better(kind: str, data: st.DataObject) -> None:
    """Of the smallest inputs, with any predicate and any window that limits are for."""
    case = replace(data.draw(cases(kind)), memory=data.draw(ROOM))
    assume(not case.scenario.counted)
    best = case.optimum().produced
    for shed in policies_of(case.scenario):
        limits = ps.Limits(memory=Memory(rows=case.memory), shed=shed, pool=case.pool)
        join = [join for join, _ in feed(replace(case.scenario, limits=limits))][-1]
        assert join.metrics.produced <= best, shed


def streams_of(rng: random.Random, rows: int) -> dict[str, pa.Table]:
    """Few keys come often, and some instants bring several tuples or none."""
    tables = {}
    for name in NAMES:
        times = sorted(rng.randrange(rows) for _ in range(rows))
        keys = [int(rng.paretovariate(0.8)) for _ in times]
        tables[name] = pa.table({"ts": times, "k": keys, "v": [rng.randrange(9) for _ in times]})
    return tables


LONGER = {
    "equality": ps.WindowJoin(
        [ps.Stream("a", time="ts", window="40 us"), ps.Stream("b", time="ts", window="15 us")],
        on="k",
    ),
    "a band": ps.WindowJoin(
        [ps.Stream(name, time="ts") for name in NAMES],
        where="abs(a.v - b.v) <= 1",
        between=(timedelta(microseconds=-20), timedelta(microseconds=30)),
    ),
}


@pytest.mark.parametrize("pool", ["shared", "fixed", {"a": 3, "b": 1}], ids=str)
@pytest.mark.parametrize("query", LONGER)
def test_no_policy_is_better_in_the_long_run(query: str, pool: Any) -> None:
    rng = random.Random(f"{query} {pool}")
    tables = streams_of(rng, 200)
    for rows in (3, 12, 40):
        best = ps.optimum(LONGER[query], tables, memory=f"{rows} rows", pool=pool)
        for shed in POLICIES:
            limits = ps.Limits(memory=f"{rows} rows", shed=shed, pool=pool)
            join = LONGER[query].start(limits=limits)
            join.push(tables)
            join.finish()
            assert 0 < join.metrics.produced <= best.produced < best.total, shed


@pytest.mark.parametrize("shed", POLICIES)
def test_no_policy_is_better_as_memory_changes(shed: str) -> None:
    tables = streams_of(random.Random(shed), 150)
    memory = [(0, 20), (40, 2), (70, 0), (90, 30)]
    join = LONGER["equality"].start(limits=ps.Limits(memory="20 rows", shed=shed))
    for (start, rows), end in zip(memory, [40, 70, 90, 150], strict=True):
        join.limit(memory=Memory(rows=rows))
        join.push(between(tables, start, end))
    join.finish()
    best = ps.optimum(LONGER["equality"], tables, memory=memory)
    assert 0 < join.metrics.produced <= best.produced < best.total


@pytest.mark.parametrize("seed", range(4))
def test_more_memory_is_never_worse(seed: int) -> None:
    tables = streams_of(random.Random(seed), 60)
    produced: dict[str, list[int]] = {}
    for pool in ("shared", "fixed"):
        optima = [
            ps.optimum(LONGER["equality"], tables, memory=rows, pool=pool)
            for rows in (*range(0, 121, 2), 1 << 60)
        ]
        produced[pool] = [optimum.produced for optimum in optima]
        assert produced[pool] == sorted(produced[pool])
        assert optima[0].produced < optima[5].produced < optima[-1].total
        assert optima[-1].produced == optima[-1].total
        assert optima[-1].recall == 1
    assert all(one >= other for one, other in zip(*produced.values(), strict=True))
    assert produced["shared"] != produced["fixed"]


@examples(1 / 2)
@given(cases("windows that change"))
def test_windows_change_as_those_of_a_join_do(case: Case) -> None:
    """What is due is what a join gives whose windows are resized at these times."""
    changes = sorted((ts, name, us) for name, each in case.changes.items() for ts, us in each)
    join = case.scenario.query.start(
        schemas={stream.name: case.scenario.schema(stream) for stream in case.scenario.streams}
    )
    due, done = 0, -(1 << 60)
    for ts in sorted({ts for ts, _, _ in changes}):
        due += join.push(between(case.tables, done, ts)).num_rows
        # Tuples that the old windows have let go by then are gone, and those that the new ones do.
        for name in NAMES:
            join.advance(name, case.scenario.instant(ts - 1))
        for name, us in [(name, us) for start, name, us in changes if start == ts]:
            join.resize(name, timedelta(microseconds=us))
        for name in NAMES:
            join.advance(name, case.scenario.instant(ts))
        done = ts
    due += join.push(between(case.tables, done, 1 << 60)).num_rows
    assert case.optimum(memory=100).total == due


def between(tables: dict[str, pa.Table], start: int, end: int) -> dict[str, pa.Table]:
    """The rows from one time until just before another."""
    parts = {}
    for name, table in tables.items():
        times = table["ts"].cast(pa.int64()).to_pylist()
        parts[name] = table.filter(pa.array([start <= ts < end for ts in times], pa.bool_()))
    return parts
