"""With a service rate some arrivals are not dealt with; what that loses is counted.

The answer is a part of the exact one, produced + lost = exact (see `check_limits`), never more are
dealt with than the rate allows, and the streams get the parts that give the most results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.model.limits import DROPS
from support.clauses import clauses, with_functions
from support.limited import QUERY, check_limits, limited
from support.oracle import OracleStream, Step
from support.scenario import Scenario
from support.strategies import KEYS, by_stream, scenarios

EXAMPLES = settings().max_examples  # of the profile
SECOND = 1_000_000


def some(fraction: int) -> settings:
    """A part of the examples of the profile."""
    return settings(max_examples=max(EXAMPLES // fraction, 3))


@pytest.mark.jit_off
@pytest.mark.parametrize("drop", DROPS)
@some(2)
@given(st.data())
def test_every_kind_of_scenario(drop: str, data: st.DataObject) -> None:
    """Disorder, ties, late tuples, any index, with and without a limit of rows."""
    check_limits(data.draw(limited(scenarios(), drop=drop)))


@pytest.mark.jit_off
@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("key", KEYS)
@some(20)
@given(st.data())
def test_every_kind_of_key(key: str, drop: str, data: st.DataObject) -> None:
    """What an arrival finds that should not have looked is verified as all else is."""
    check_limits(data.draw(limited(scenarios(key), drop=drop)))


@pytest.mark.jit_off
@pytest.mark.parametrize("drop", DROPS)
@some(6)
@given(st.data())
def test_windows_of_every_kind_and_restarts(drop: str, data: st.DataObject) -> None:
    drawn = scenarios(windows=True, counted=False, restarts=True)
    check_limits(data.draw(limited(drawn, changes=True, drop=drop)))


@pytest.mark.jit_off
@pytest.mark.parametrize("drop", DROPS)
@some(6)
@given(st.data())
def test_clauses_and_functions(drop: str, data: st.DataObject) -> None:
    """Bands, several paths, three streams, predicates that are verified."""
    check_limits(data.draw(limited(clauses(windows=False, counted=False), drop=drop)))
    check_limits(data.draw(limited(with_functions(windows=False, counted=False), drop=drop)))


# How much is dealt with, and of whom.


def poisson(rates: dict[str, float], seconds: int, keys: int, seed: int) -> dict[str, pa.Table]:
    """Streams of these rates, with keys that are all as frequent."""
    rng = np.random.default_rng(seed)
    return {
        name: pa.table(
            {
                "ts": np.sort(rng.integers(0, seconds * SECOND, int(rate * seconds))),
                "k": rng.integers(0, keys, int(rate * seconds)),
            }
        )
        for name, rate in rates.items()
    }


def pushed(
    query: ps.WindowJoin, tables: dict[str, pa.Table], limits: ps.Limits | None, every_us: int
) -> ps.Metrics:
    """What a join says of itself that got its input in steps of so much event time."""
    join = query.start(limits=limits)
    end = max(int(np.asarray(table["ts"])[-1]) for table in tables.values()) + 1
    for begin in range(0, end, every_us):
        batch = {}
        for name, table in tables.items():
            first, last = np.searchsorted(np.asarray(table["ts"]), (begin, begin + every_us))
            batch[name] = table.slice(first, last - first)
        join.push(batch)
    join.finish()
    return join.metrics


def served(metrics: ps.Metrics) -> dict[str, int]:
    return {name: each.arrived - each.unprobed for name, each in metrics.streams.items()}


WINDOWS = ps.WindowJoin(
    [ps.Stream("a", time="ts", window="1 s"), ps.Stream("b", time="ts", window="2 s")], on="k"
)


@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("every_us", [1000, SECOND, 100 * SECOND], ids=["1 ms", "1 s", "at once"])
def test_no_more_are_dealt_with_than_the_rate_allows(drop: str, every_us: int) -> None:
    """And hardly fewer."""
    seconds = 3 if every_us == 1000 else 20
    tables = poisson({"a": 800, "b": 200}, seconds, 100, seed=1)
    metrics = pushed(WINDOWS, tables, ps.Limits(service_rate=300, drop=drop), every_us)
    allowed = 300 * (seconds + 1)
    assert 0.85 * 300 * seconds <= sum(served(metrics).values()) <= allowed


def test_a_burst_is_cut_off() -> None:
    """A thousand tuples of one instant are more than a second's worth."""
    join = QUERY.start(limits=ps.Limits(service_rate=100))
    burst = pa.table({"ts": np.zeros(1000, np.int64), "k": np.zeros(1000, np.int64)})
    join.push(a=burst, b=burst)
    assert sum(served(join.metrics).values()) == 100
    assert join.metrics.produced + (join.metrics.lost or 0) == 1_000_000


def test_probes_go_from_the_small_window_to_the_large_one() -> None:
    """Window a holds 800 tuples, b 400: arrivals of b find more (Kang et al., 5.2.1)."""
    tables = poisson({"a": 800, "b": 200}, 20, 100, seed=1)
    metrics = pushed(WINDOWS, tables, ps.Limits(service_rate=300), SECOND)
    of = served(metrics)
    assert of["b"] > 0.97 * 200 * 20
    assert 0.85 * 100 * 20 < of["a"] < 1.2 * 100 * 20


def test_floors_are_kept() -> None:
    tables = poisson({"a": 800, "b": 200}, 20, 100, seed=1)
    floors = {"a": 250.0}
    of = served(pushed(WINDOWS, tables, ps.Limits(service_rate=300, floors=floors), SECOND))
    assert of["a"] > 0.9 * 250 * 20
    assert of["b"] < 1.2 * 50 * 20


def test_dropped_tuples_are_drawn_so_that_as_many_of_each_stream_remain() -> None:
    """The earlier version of the paper: rates of 5 and 100 and a service rate of 50 leave 5, 45."""
    tables = poisson({"a": 5, "b": 100}, 100, 10, seed=3)
    of = served(pushed(WINDOWS, tables, ps.Limits(service_rate=50, drop="tuple"), SECOND))
    assert of["a"] > 0.95 * 5 * 100
    assert 0.9 * 45 * 100 < of["b"] < 1.05 * 45 * 100


def test_a_service_rate_that_is_enough_changes_nothing() -> None:
    tables = poisson({"a": 100, "b": 100}, 10, 10, seed=3)
    exact = pushed(WINDOWS, tables, None, SECOND)
    enough = pushed(WINDOWS, tables, ps.Limits(service_rate=250), SECOND)
    assert (enough.produced, enough.lost, enough.unprobed) == (exact.produced, 0, 0)


@pytest.mark.parametrize("drop", DROPS)
def test_hundreds_of_windows_later_it_is_as_it_was(drop: str) -> None:
    """What is learned has been scaled down by then."""
    query = ps.WindowJoin([ps.Stream(name, time="ts", window="10 ms") for name in "ab"], on="k")
    tables = poisson({"a": 200, "b": 200}, 6, 10, seed=4)
    join = query.start(limits=ps.Limits(service_rate=100, drop=drop))
    counts = [0]
    for begin in range(0, 6 * SECOND, SECOND):
        batch = {}
        for name, table in tables.items():
            first, last = np.searchsorted(np.asarray(table["ts"]), (begin, begin + SECOND))
            batch[name] = table.slice(first, last - first)
        join.push(batch)
        counts.append(sum(served(join.metrics).values()))
    assert np.diff(counts).min() > 70


def test_a_stream_that_has_to_come_first() -> None:
    """Its window ends before it begins."""
    query = ps.WindowJoin(QUERY.streams, on="k", between=("1 s", "2 s"))
    tables = poisson({"a": 100, "b": 100}, 5, 10, seed=4)
    exact = pushed(query, tables, None, SECOND).produced
    for limits in (
        ps.Limits(service_rate=100),
        ps.Limits("50 rows", shed="random", pool="allocated"),
    ):
        metrics = pushed(query, tables, limits, SECOND)
        assert metrics.produced + (metrics.lost or 0) == exact


def test_memory_that_is_allocated_stays_so() -> None:
    """Through a restart, and when limits change."""
    limits = ps.Limits("1000 rows", shed="random", pool="allocated")
    query = ps.WindowJoin([ps.Stream(name, time="ts", window="1 min") for name in "ab"], on="k")
    join = query.start(limits=limits)
    join.push(poisson({"a": 50, "b": 500}, 30, 100, seed=2))
    live = join.metrics.streams["a"].live
    assert live > 900
    again = query.restore(join.snapshot(), limits=limits)
    assert again.metrics.streams["a"].live == live
    for each in (join, again):
        each.limit("1500 rows")
        assert each.metrics.streams["a"].live == live


def test_memory_that_a_window_cannot_use_goes_to_the_other() -> None:
    query = ps.WindowJoin([ps.Stream(name, time="ts", window="10 s") for name in "ab"], on="k")
    tables = poisson({"a": 10, "b": 50}, 60, 20, seed=2)
    produced = {}
    for pool in ("allocated", "fixed"):
        limits = ps.Limits("550 rows", shed="random", pool=pool, service_rate=50)
        produced[pool] = pushed(query, tables, limits, SECOND).produced
    assert produced["allocated"] > produced["fixed"]


def test_floors_that_are_all_of_it() -> None:
    limits = ps.Limits(service_rate=0.3, floors={"a": 0.1, "b": 0.2})
    assert limits.share(3, 7).service_rate == pytest.approx(0.3 / 7)


def test_another_service_rate_in_mid_run() -> None:
    tables = poisson({"a": 800, "b": 200}, 20, 100, seed=1)
    halves = [
        {name: table.slice(*place) for name, table in tables.items() for place in [_half(table, n)]}
        for n in (0, 1)
    ]
    join = WINDOWS.start(limits=ps.Limits(service_rate=800))
    join.push(halves[0])
    before = sum(served(join.metrics).values())
    join.limit(service_rate=100)
    join.push(halves[1])
    assert sum(served(join.metrics).values()) - before <= 100 * 10 + 800
    with pytest.raises(ps.PlanError, match="without a limit of memory"):
        join.limit("5 rows")
    with pytest.raises(ps.PlanError, match="above 0"):
        join.limit(service_rate=-5)


def _half(table: pa.Table, which: int) -> tuple[int, int]:
    middle = int(np.searchsorted(np.asarray(table["ts"]), 10 * SECOND))
    return (0, middle) if which == 0 else (middle, len(table) - middle)


def test_rates_that_change_are_followed() -> None:
    """The streams swap their rates; what is dealt with of each follows within two windows."""
    first, second = (
        poisson({"a": 800, "b": 200}, 10, 100, 1),
        poisson({"a": 200, "b": 800}, 10, 100, 2),
    )
    query = ps.WindowJoin(
        [ps.Stream("a", time="ts", window="1 s"), ps.Stream("b", time="ts", window="1 s")], on="k"
    )
    join = query.start(limits=ps.Limits(service_rate=300))
    counts = []
    for offset, tables in ((0, first), (10 * SECOND, second)):
        for begin in range(0, 10 * SECOND, SECOND // 4):
            batch = {}
            for name, table in tables.items():
                ts = np.asarray(table["ts"])
                low, high = np.searchsorted(ts, (begin, begin + SECOND // 4))
                rows = table.slice(low, high - low)
                batch[name] = rows.set_column(0, "ts", pa.array(ts[low:high] + offset))
            join.push(batch)
            counts.append(served(join.metrics))
    late = {name: counts[79][name] - counts[55][name] for name in "ab"}  # the last six seconds
    # Window b holds more now, so arrivals of a find more.
    assert late["a"] > 0.9 * 200 * 6
    assert late["b"] < 1.25 * 100 * 6


@pytest.mark.parametrize("drop", DROPS)
def test_the_interval_of_sampled_losses_holds_the_truth(drop: str) -> None:
    """In at least 18 of 20 runs."""
    inside = 0
    for seed in range(20):
        tables = poisson({"a": 400, "b": 100}, 8, 50, seed)
        exact = pushed(WINDOWS, tables, None, SECOND)
        limits = ps.Limits(service_rate=150, drop=drop, loss="sampled", seed=seed)
        metrics = pushed(WINDOWS, tables, limits, SECOND)
        assert metrics.lost_interval is not None
        low, high = metrics.lost_interval
        inside += low <= exact.produced - metrics.produced <= high
    assert inside >= 18


def test_what_is_lost_has_its_reason() -> None:
    tables = poisson({"a": 200, "b": 200}, 10, 10, seed=3)
    metrics = pushed(WINDOWS, tables, ps.Limits("200 rows", service_rate=100), SECOND)
    assert set(metrics.lost_by) == {"latest not probed", "earlier tuple shed"}
    assert all(metrics.lost_by.values())
    assert "not probed" in str(metrics)


def test_a_scenario_to_read() -> None:
    """Of three arrivals in a microsecond each one is dealt with a second: the first."""
    streams = [OracleStream(name, 100) for name in "ab"]
    comes = [(name, {"ts": ts, "k": 1, "id": ts, "note": None}) for ts, name in enumerate("aba")]
    steps = [Step(by_stream(comes, "ab"))]
    check_limits(Scenario(streams, steps, limits=ps.Limits(service_rate=1)))


# What is refused.


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"service_rate": 0}, "above 0, got 0"),
        ({"service_rate": -1}, "above 0, got -1"),
        ({"service_rate": "fast"}, "got 'fast'"),
        ({"service_rate": float("nan")}, "got nan"),
        ({"service_rate": 5, "drop": "both"}, "drop must be one of"),
        ({"service_rate": 5, "floors": {"a": 3, "b": 3}}, "floors add up to 6"),
        ({"service_rate": 5, "floors": {"a": -3}}, "0 or more"),
        ({}, "memory= or service_rate="),
        ({"memory": "5 rows", "drop": "tuple"}, "drop= is for service_rate="),
        ({"memory": "5 rows", "floors": {"a": 1}}, "floors= is for service_rate="),
        (
            {"memory": "1 MiB", "shed": "random", "pool": "allocated"},
            "is for a limit in rows, got memory='1048576 B'",
        ),
        ({"memory": "5 rows", "pool": {"a": -1, "b": 2}}, "0 or more and not all 0"),
        ({"memory": "5 rows", "pool": {"a": 0}}, "0 or more and not all 0"),
        ({"memory": "5 rows", "pool": "mine"}, "pool must be one of"),
        ({"memory": "5 rows", "pool": "allocated"}, "is for shed='random', got shed='prob'"),
    ],
)
def test_bad_limits(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ps.PlanError, match=told):
        ps.Limits(**options)


def test_floors_and_parts_of_no_stream() -> None:
    with pytest.raises(ps.PlanError, match="floors= names 'c', which is no stream"):
        QUERY.start(limits=ps.Limits(service_rate=5, floors={"c": 1}))
    with pytest.raises(ps.PlanError, match="pool= names 'c', which is no stream"):
        QUERY.start(limits=ps.Limits("5 rows", pool={"a": 1, "b": 1, "c": 1}))
    with pytest.raises(ps.PlanError, match=r"pool= has no part for \['b'\]"):
        QUERY.start(limits=ps.Limits("5 rows", pool={"a": 1}))


def test_other_than_inner_joins() -> None:
    semi = ps.WindowJoin(QUERY.streams, on="k", within="1 s", how="semi")
    with pytest.raises(ps.PlanError, match="service_rate= is for how='inner', got how='semi'"):
        semi.start(limits=ps.Limits(service_rate=5))


def test_estimates_from_streams_that_look_more_and_less_often() -> None:
    join = QUERY.start(limits=ps.Limits(service_rate=1))
    table = pa.table({"ts": [1, 1], "k": [1, 1]})
    with pytest.raises(ps.PlanError, match="use drop='tuple' for estimates"):
        ps.estimate(join.push(a=table, b=table), join)


def test_estimates_from_what_dropped_tuples_leave() -> None:
    """It is a random sample of the results."""
    tables = poisson({"a": 400, "b": 400}, 20, 20, seed=5)
    exact = pushed(WINDOWS, tables, None, SECOND).produced
    join = WINDOWS.start(limits=ps.Limits(service_rate=500, drop="tuple"))
    estimate = ps.estimate(join.push(tables), join)
    assert estimate.interval[0] <= exact <= estimate.interval[1]
