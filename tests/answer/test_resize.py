"""Windows that get another length in mid-run."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from support.scenario import Scenario, check
from support.strategies import scenarios

pytestmark = pytest.mark.jit_off

EXAMPLES = settings().max_examples  # of the profile


@settings(max_examples=EXAMPLES // 2)
@given(scenarios(resizes=True, restarts=True))
def test_windows_of_time(scenario: Scenario) -> None:
    check(scenario)


@settings(max_examples=EXAMPLES // 2)
@given(scenarios("few", resizes=True, windows=True, restarts=True))
def test_windows_of_rows_among_others(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize("how", ["left", "full", "semi", "anti"])
@settings(max_examples=max(EXAMPLES // 8, 1))
@given(st.data())
def test_other_join_types(how: str, data: st.DataObject) -> None:
    """What a shorter window ends comes out alone at once."""
    windows = data.draw(st.booleans())
    check(data.draw(scenarios(how=how, resizes=True, windows=windows, restarts=True)))


def of(window: str = "10 us", **given: Any) -> ps.WindowJoin:
    streams = [ps.Stream("a", time="ts", window=window), ps.Stream("b", time="ts")]
    return ps.WindowJoin(streams, on="k", within="100 us", **given)


def at(*times: int) -> pa.Table:
    return pa.table({"ts": times, "k": [1] * len(times)})


def test_what_a_shorter_window_ends_does_not_come_back() -> None:
    join = of("100 us").start()
    join.push(a=at(0, 50), b=at(50))
    assert join.metrics.streams["a"].live == 2
    join.resize("a", "10 us")
    assert join.metrics.streams["a"].live == 1
    join.resize("a", "100 us")
    assert join.push(b=at(60))["a_ts"].to_pylist() == [50]


def test_a_longer_window_holds_what_is_still_there() -> None:
    join = of("10 us").start()
    join.push(a=at(0, 50), b=at(50))
    join.resize("a", "100 us")
    assert join.push(b=at(140))["a_ts"].to_pylist() == [50]


def test_what_an_early_tuple_holds_back_does_not_come_back() -> None:
    streams = [ps.Stream("a", time="ts", window="10 us", lateness="40 us")]
    streams += [ps.Stream("b", time="ts", window="100 us")]
    join = ps.WindowJoin(streams, on="k").start()
    for ts in (50, 20, 80):
        join.push(a=at(ts), b=at(45))
    assert join.metrics.streams["a"].live == 3  # that of 20 has left, behind that of 50
    join.resize("a", "100 us")
    assert sorted(join.push(b=at(60))["a_ts"].to_pylist()) == [50, 80]


def test_a_restored_join_goes_on_with_its_windows() -> None:
    query = of("10 us")
    join = query.start()
    join.resize("a", "100 us")
    join.push(a=at(0), b=at(0))
    restored = query.restore(join.snapshot())
    assert restored.push(b=at(90)).num_rows == 1
    assert "100 microseconds" in str(restored.why(a={"ts": 0, "k": 1}, b={"ts": 95, "k": 1}))


@pytest.mark.parametrize(
    ("window", "new", "complaint"),
    [
        ("10 us", "5 rows", "window of 10 microseconds cannot become one of 5 rows"),
        ("5 rows per key", "6 rows per key", "5 rows per key .* cannot be resized"),
        ("unbounded", "1 s", "unbounded .* cannot be resized"),
        ("10 us", "ten", "cannot read .* from 'ten'.* '1000 rows per key'"),
    ],
)
def test_what_is_refused(window: str, new: str, complaint: str) -> None:
    join = of(window).start()
    with pytest.raises(ps.QueryError, match=complaint):
        join.resize("a", new)
    with pytest.raises(ps.InputError, match="no stream is called 'c'"):
        join.resize("c", "1 s")
