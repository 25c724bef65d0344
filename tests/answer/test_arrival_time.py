"""Streams without a time: a tuple's time is that at which its batch is pushed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from support.oracle import Step
from support.scenario import Scenario, check
from support.strategies import scenarios

pytestmark = pytest.mark.jit_off

ZONED = pa.timestamp("us", "UTC")
BOTH = ps.WindowJoin(
    [ps.Stream("a", time=ps.ARRIVAL), ps.Stream("b", time=ps.ARRIVAL)], on="k", within="10 s"
)
ONE = ps.WindowJoin(
    [ps.Stream("a", time=ps.ARRIVAL), ps.Stream("b", time="ts")], on="k", within="10 s"
)


def rows(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())})


def at(seconds: float, *keys: int, kind: pa.DataType = ZONED) -> pa.Table:
    times = pa.array([round(seconds * 1_000_000)] * len(keys)).cast(kind)
    return rows(*keys).add_column(0, "ts", times)


class Wall:
    """A clock that is set by hand."""

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


def seconds(table: pa.Table) -> list[float]:
    return [each.timestamp() for each in table["event_time"].to_pylist()]


@st.composite
def by_arrival(draw: st.DrawFn, *, windows: bool) -> Scenario:
    """Some streams take the wall clock's time, which goes back now and then."""
    scenario = draw(
        scenarios(draw(st.sampled_from(("few", "pair"))), restarts=True, windows=windows)
    )
    names = [stream.name for stream in scenario.streams]
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    reached, steps = -inf, []
    wall = 0
    for step in scenario.steps:
        given_times = [row["ts"] for each in step.rows.values() for row in each]
        wall = draw(st.sampled_from(given_times or [wall])) + draw(st.integers(-9, 9))
        instant = max(wall, reached)
        timed = {
            name: [{**row, "ts": instant} for row in each] if name in chosen else each
            for name, each in step.rows.items()
        }
        if any(timed.get(name) for name in chosen):
            reached = instant
        reached = max([reached, *(ts for name, ts in step.advance.items() if name in chosen)])
        steps.append(Step(timed, step.advance, at=wall / 1e6))
    return replace(
        scenario,
        steps=steps,
        time_type=ZONED,
        by_arrival=chosen,
        streams=[
            replace(stream, lateness_us=0) if stream.name in chosen else stream
            for stream in scenario.streams
        ],
    )


@given(by_arrival(windows=False))
def test_any_input(scenario: Scenario) -> None:
    check(scenario)


@given(by_arrival(windows=True))
def test_any_window(scenario: Scenario) -> None:
    check(scenario)


def test_one_instant_for_a_batch() -> None:
    wall = Wall(1_700_000_000.000001)
    join = BOTH.start(clock=wall)
    join.push(a=rows(1, 2))
    wall.now_s += 10
    result = join.push(a=rows(3), b=rows(1, 3, 2))
    assert result.column_names == ["a_k", "b_k", "event_time"]
    assert result.schema.field("event_time").type == ZONED
    assert set(seconds(result)) == {1_700_000_010.000001}
    assert sorted(result["a_k"].to_pylist()) == [1, 2, 3]
    wall.now_s += 0.000001
    assert join.push(b=rows(1, 3))["a_k"].to_pylist() == [3]
    assert join.metrics.streams["a"].expired == 0  # b is still where a is, up to its window
    assert join.metrics.streams["b"].watermark == 1_700_000_010_000_002


def test_the_system_clock_unless_another_is_given() -> None:
    before = time.time()
    moment = seconds(BOTH.start().push(a=rows(1), b=rows(1)))[0]
    assert before - 0.001 <= moment <= time.time() + 0.001


def test_it_never_goes_back() -> None:
    """Not when the clock is set back, not in the other stream, not after a restart."""
    wall = Wall(100.0)
    join = BOTH.start(clock=wall)
    join.push(a=rows(1))
    wall.now_s = 50.0
    assert seconds(join.push(b=rows(1))) == [100.0]
    join = BOTH.restore(join.snapshot(), clock=wall)
    assert seconds(join.push(a=rows(1))) == [100.0]
    join.advance("b", 105_000_000)
    assert set(seconds(join.push(b=rows(1)))) == {105.0}
    wall.now_s = 107.0
    assert set(seconds(join.push(b=rows(1)))) == {107.0}
    assert join.metrics.late == 0


def test_it_is_never_late() -> None:
    """The other stream is ahead of the clock, and this one idle: it comes at the watermark."""
    wall = Wall(100.0)
    streams = [ps.Stream("a", time=ps.ARRIVAL, idle_timeout="5 s"), ps.Stream("b", time="ts")]
    join = ps.WindowJoin(streams, on="k", within="10 s").start(clock=wall)
    join.push(a=rows(1))
    wall.now_s = 106.0
    join.push(b=at(500, 1))
    assert seconds(join.push(a=rows(1))) == [500.0]
    assert join.metrics.late == 0
    assert join.late()["a"].schema.names == ["k"]


def test_with_a_time_column() -> None:
    wall = Wall(100.0)
    join = ONE.start(clock=wall, schemas={"a": rows().schema, "b": at(0).schema})
    join.push(a=rows(1))
    result = join.push(b=at(95, 1, 1))
    assert result.column_names == ["a_k", "b_ts", "b_k", "event_time"]
    assert seconds(result) == [100.0, 100.0]
    assert seconds(join.push(b=at(110, 1))) == [110.0]
    assert join.push(b=at(110.000001, 1)).num_rows == 0


@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("us")])
def test_times_that_cannot_be_compared(kind: pa.DataType) -> None:
    with pytest.raises(ps.SchemaError, match=r"the arrival of a is .*cast the others to timest"):
        ONE.start(clock=Wall(1)).push(a=rows(1), b=at(1, 1, kind=kind))


@pytest.mark.parametrize(
    ("make", "error", "told"),
    [
        (
            lambda: ps.Stream("a", time=ps.ARRIVAL, lateness="1 s"),
            ps.QueryError,
            "'a' takes its time of arrival, .* leave lateness out",
        ),
        (lambda: ps.Stream("a", time=7), ps.QueryError, "or give ps.ARRIVAL"),
        (lambda: ps.Stream("a", time="__arrival_time__"), ps.QueryError, "name it in time="),
        (
            lambda: BOTH.start().push(a=rows(1).append_column("__arrival_time__", [[1]])),
            ps.SchemaError,
            "'a' has a column '__arrival_time__'",
        ),
        (
            lambda: ONE.start().push(b=at(1, 1).append_column("__arrival_time__", [[1]])),
            ps.SchemaError,
            "'b' has a column '__arrival_time__'",
        ),
        (
            lambda: replace(BOTH, select=["a.__arrival_time__"]).start().push(a=rows(1)),
            ps.SchemaError,
            r"no selected column '__arrival_time__'; its columns are \['k'\]",
        ),
    ],
)
def test_what_makes_no_sense(make: Callable[[], Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        make()


def test_columns_that_change_are_told_as_given() -> None:
    join = BOTH.start()
    join.push(a=rows(1))
    with pytest.raises(ps.SchemaError, match=r"push batches with the columns \['k'\]"):
        join.push(a=at(1, 1))


def test_a_snapshot_is_of_arrival_times_or_not() -> None:
    join = BOTH.start()
    join.push(a=rows(1))
    with pytest.raises(ps.SnapshotError, match="time of stream 'b' was '__arrival_time__'"):
        ONE.restore(join.snapshot())


def test_in_windows_of_arrivals() -> None:
    """There the time is kept with the tuple."""
    wall = Wall(100.0)
    join = replace(BOTH, within="5 arrivals").start(clock=wall)
    join.push(a=rows(1))
    wall.now_s = 103.0
    join.push(b=rows(1))
    join = replace(BOTH, within="5 arrivals").restore(join.snapshot(), clock=wall)
    result = join.finish()
    assert result.column_names == ["a_k", "b_k", "event_time"]
    assert seconds(result) == [103.0]


def test_why_without_a_time() -> None:
    wall = Wall(100.0)
    join = BOTH.start(clock=wall)
    join.push(a=rows(1, 2))
    wall.now_s = 111.0
    join.push(b=rows(1))
    apart = join.why(a={"k": 1}, b={"k": 1})
    assert apart.joined is False
    assert "11 seconds before b, outside its window" in str(apart)
    join.push(a=rows(1))
    assert join.why(a={"k": 1}, b={"k": 1}).joined is True
    gone = join.why(a={"k": 1}, b={"k": 9})
    assert "keys differ" in str(gone)
    unknown = join.why(a={"k": 9}, b={"k": 9})
    assert unknown.joined is None
    assert "a: no such tuple is in its window" in str(unknown)
    with pytest.raises(ps.InputError, match="unknown \\['ts'\\]"):
        join.why(a={"k": 1, "ts": 5}, b={"k": 1})


def test_advance_takes_the_same_times() -> None:
    join = BOTH.start(clock=Wall(100.0))
    join.push(a=rows(1), b=rows(1))
    join.advance("a", datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=300))
    join.advance("b", 300_000_000)
    assert join.metrics.live == 0
