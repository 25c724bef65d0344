"""The offline optimum is that of trying everything, and no policy is better."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import penstock as ps
from limited import policies_of
from offline_cases import KINDS, NAMES, ROOM, Case, cases
from offline_trying import Number, Offline, most, replayed
from oracle import OracleStream, Step
from paper_graph import papers_optimum
from penstock.model.limits import POLICIES
from scenario import Scenario, feed

EXAMPLES = settings().max_examples  # of the profile

EXACT = ("auto", "per_match", "per_arrival")
POOLS = ("shared", "fixed", {"a": 3, "b": 1})
LIMITED = ("in step", "time", "unbounded", "since", "tumbling", "between", "any key", "where")


def check(case: Case, optimum: ps.Optimum, best: Number) -> None:
    """It says what is best, and how to get it."""
    offline = case.offline
    assert optimum.total == pytest.approx(offline.total)
    assert optimum.produced <= best + 1e-9
    assert best <= optimum.upper + 1e-9
    assert optimum.is_exact == (optimum.produced == optimum.upper)
    for recall, value in (
        (optimum.recall, optimum.produced),
        (optimum.recall_upper, optimum.upper),
    ):
        assert recall == pytest.approx(value / offline.total if offline.total else 1)
    if case.value is None:
        assert {type(optimum.produced), type(optimum.upper), type(optimum.total)} == {int}
    for name, table in case.tables.items():
        assert optimum.kept[name].type == table.schema.field("ts").type
    kept = case.kept(optimum)
    assert all(until is None or until > offline.times[each] for each, until in kept.items())
    comes = sum(pair.value for pair in replayed(offline, kept))
    assert comes == pytest.approx(optimum.produced)


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=EXAMPLES // 2)
@given(st.data())
def test_trying_everything(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    best = most(case.offline)
    for method in EXACT:
        try:
            optimum = case.optimum(method)
        except ps.PlanError:
            assert method == "per_arrival"
            assert not case.plain
            continue
        assert optimum.produced == pytest.approx(best), method
        assert optimum.is_exact
        assert method in ("auto", optimum.method)
        check(case, optimum, best)


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=EXAMPLES // 4)
@given(st.data())
def test_prices_give_an_interval(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    optimum = case.optimum("prices")
    assert optimum.method == "prices"
    check(case, optimum, most(case.offline))


def in_step(r: list[int], s: list[int], w: int, memory: int, pool: Any) -> Case:
    """One tuple of each stream at every instant; windows of w instants, as the paper counts."""
    rows = {
        name: [{"ts": ts, "k": key, "id": ts, "note": None} for ts, key in enumerate(keys)]
        for name, keys in zip(NAMES, (r, s), strict=True)
    }
    streams = [OracleStream(name, window_us=w - 1) for name in NAMES]
    return Case(Scenario(streams, [Step(rows)]), memory, pool)


def decisions(offline: Offline) -> Iterator[dict[Any, int | None]]:
    """All that can be decided of tuples: each is held until something that it meets, or dropped."""
    meetings: dict[Any, set[int | None]] = {each: {None} for each in offline.times}
    for pair in offline.pairs:
        if offline.times[pair.later] > offline.times[pair.earlier]:
            meetings[pair.earlier].add(offline.times[pair.later])
    for chosen in product(*meetings.values()):
        yield dict(zip(meetings, chosen, strict=True))


def test_the_example_of_the_paper() -> None:
    """5 of 7 results; of three schedules that reach it, one loses (r1, s2) and (r1, s3)."""
    case = in_step([1, 1, 1, 3, 2], [2, 3, 1, 1, 3], 3, 2, "fixed")
    offline, losses = case.offline, []
    for kept in decisions(offline):
        try:
            came = replayed(offline, kept)
        except AssertionError:
            continue  # more than the memory holds
        assert len(came) <= 5
        if len(came) == 5:
            losses.append({(each.earlier, each.later) for each in {*offline.pairs} - {*came}})
    assert len(losses) == 3
    assert {(("a", 1), ("b", 2)), (("a", 1), ("b", 3))} in losses
    for method in EXACT:
        optimum = case.optimum(method)
        assert (optimum.produced, optimum.total, optimum.recall) == (5, 7, 5 / 7)
        came = replayed(offline, case.kept(optimum))
        lost = {(each.earlier, each.later) for each in {*offline.pairs} - {*came}}
        assert lost in losses
    assert case.optimum(memory=4).produced == 7  # M = 2w - 2 holds all


@pytest.mark.parametrize("seed", range(40))
def test_the_graph_of_the_paper(seed: int) -> None:
    """It agrees where it has a flow: the memory can always be full, and is filled."""
    rng = random.Random(seed)
    w, instants, keys = rng.randint(2, 6), rng.randint(6, 25), rng.randint(1, 5)
    r, s = ([rng.randrange(keys) for _ in range(instants)] for _ in NAMES)
    for memory in range(0, 2 * w - 1, 2):
        for pool in ("shared", "fixed"):
            printed = papers_optimum(r, s, w, memory, shared=pool == "shared")
            for method in EXACT:
                assert in_step(r, s, w, memory, pool).optimum(method).produced == printed
    assert papers_optimum(r, s, w, 2 * w, shared=False) is None


@pytest.mark.parametrize("kind", LIMITED)
@settings(max_examples=EXAMPLES // 6)
@given(st.data())
def test_no_policy_is_better(kind: str, data: st.DataObject) -> None:
    """Of the smallest inputs, with any predicate and any window that limits are for."""
    case = replace(data.draw(cases(kind)), memory=data.draw(ROOM))
    assume(not case.scenario.counted)
    best = case.optimum().produced
    for shed in policies_of(case.scenario):
        limits = ps.Limits(memory=f"{case.memory} rows", shed=shed, pool=case.pool)
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


@pytest.mark.parametrize("pool", POOLS, ids=str)
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
        join.limit(memory=f"{rows} rows")
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


@settings(max_examples=EXAMPLES // 2)
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


def test_times_of_different_units() -> None:
    """What is kept until half past a second is not given back a second too early."""
    tables = {
        "a": pa.table({"ts": pa.array([0, 1], pa.timestamp("s")), "k": [1, 1]}),
        "b": pa.table({"ts": pa.array([1_500], pa.timestamp("ms")), "k": [1]}),
    }
    query = ps.WindowJoin([ps.Stream(name, time="ts") for name in NAMES], on="k", within="1 hour")
    optimum = ps.optimum(query, tables, memory=2)
    assert optimum.produced == 2
    kept = pa.concat_arrays([optimum.kept[name].cast(pa.timestamp("ms")) for name in NAMES])
    assert kept.cast(pa.int64()).to_pylist() == [1_500, 1_500, None]


def test_tables_that_can_be_read_once() -> None:
    table = pa.table({"ts": [0, 1], "k": [1, 1], "w": [1, 0]})
    tables = {name: table.to_reader() for name in NAMES}
    query = ps.WindowJoin([ps.Stream(name, time="ts") for name in NAMES], on="k", within="9 us")
    assert ps.optimum(query, tables, memory=9, windows={"a": "w", "b": "w"}).produced == 4


@pytest.mark.parametrize("value", [5e-324, 1e-300, 0.3, 1.0, 2.0**41, 1e16, 1e300])
def test_values_of_any_size(value: float) -> None:
    """Also of many results that come at once: two of three tuples are kept for all of them."""
    tables = {
        "a": pa.table({"ts": [0, 0, 1], "k": [1] * 3}),
        "b": pa.table({"ts": [2] * 40, "k": [1] * 40}),
    }
    query = ps.WindowJoin([ps.Stream(name, time="ts") for name in NAMES], on="k", within="9 us")
    optimum = ps.optimum(query, tables, memory=2, value=lambda results: [value] * results.num_rows)
    assert optimum.produced == pytest.approx(80 * value, rel=1e-9, abs=0)
    assert optimum.total == pytest.approx(120 * value, rel=1e-9, abs=0)
    assert optimum.is_exact


def test_nothing_comes() -> None:
    case = in_step([], [], 3, 2, "shared")
    optimum = case.optimum()
    assert (optimum.produced, optimum.total, optimum.recall) == (0, 0, 1)
    assert [len(optimum.kept[name]) for name in NAMES] == [0, 0]
