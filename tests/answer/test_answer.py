"""Every way to evaluate a join gives the answer that the oracle defines."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.oracle import OracleStream, Step
from support.scenario import Scenario, check
from support.strategies import INDEXES, KEYS, LongScenario, by_stream, long_scenarios, scenarios

pytestmark = pytest.mark.jit_off

EXAMPLES = settings().max_examples  # of the profile


@pytest.mark.parametrize("key", KEYS)
@settings(max_examples=EXAMPLES // 4)
@given(st.data())
def test_any_input(key: str, data: st.DataObject) -> None:
    """Late tuples, ties, empty batches, any index and probe order, on every kind of key."""
    check(data.draw(scenarios(key)))


@given(scenarios(in_time=True))
def test_input_that_is_not_late(scenario: Scenario) -> None:
    """Nothing is late and nothing leaves, so all that can meet does meet."""
    check(scenario)


@given(scenarios(restarts=True))
def test_saved_and_restored_anywhere(scenario: Scenario) -> None:
    """A restored join goes on exactly where it was, also with other indexes."""
    check(scenario)


@given(scenarios(idle=True))
def test_streams_that_fall_idle_and_come_back(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize("windows", [False, True])
@given(st.data())
def test_watermarks_that_go_no_further_than_a_cap(windows: bool, data: st.DataObject) -> None:
    """A row far ahead takes part, and does not make others late."""
    check(data.draw(scenarios(jumps=True, windows=windows, restarts=True)))


@pytest.mark.parametrize("key", ["few", "colliding bytes", "pair"])
@given(st.data())
def test_windows_of_every_kind(key: str, data: st.DataObject) -> None:
    """Rows, rows per key, arrivals, slots, since, unbounded and bounds on the difference."""
    check(data.draw(scenarios(key, windows=True, restarts=True)))


@settings(max_examples=max(EXAMPLES // 4, 2), suppress_health_check=list(HealthCheck))
@given(long_scenarios())
def test_hundreds_of_rows(long: LongScenario) -> None:
    """Enough for windows and indexes to grow, turn over and be cleared of holes."""
    check(long.scenario())


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_every_index_on_one_busy_key(n: int, index: str) -> None:
    """Every tuple meets every other in its window: the output fills more than once."""
    names = ("a", "b", "c", "d")[:n]
    streams = [OracleStream(name, window_us=4) for name in names]
    rows = [
        (name, {"ts": ts, "k": 1, "id": ts * 4 + number, "note": None})
        for ts in range({2: 60, 3: 24, 4: 12}[n])
        for number, name in enumerate(names)
    ]
    check(Scenario(streams, [Step(by_stream(rows, names))], indexes=index))


def test_equal_rows_count_as_often_as_they_come() -> None:
    row = {"ts": 5, "k": 1, "id": 1, "note": "same"}
    streams = [OracleStream("a", 1), OracleStream("b", 1)]
    check(Scenario(streams, [Step({"a": [row] * 2, "b": [row] * 3}), Step({"a": [row]})]))


def test_windows_are_closed_at_both_ends() -> None:
    streams = [OracleStream("a", 2), OracleStream("b", 5)]
    one = {"ts": 10, "k": 1, "id": 0, "note": None}
    others = [{"ts": ts, "k": 1, "id": ts, "note": None} for ts in range(3, 15)]
    check(Scenario(streams, [Step({"a": [one], "b": others})]))
    check(Scenario(streams, [Step({"a": [one]}), Step({"b": others})]))
    check(Scenario(streams, [Step({"b": others}), Step({"a": [one]})]))


def test_sixteen_streams() -> None:
    """As many as a join takes."""
    names = [f"s{number}" for number in range(16)]
    streams = [OracleStream(name, window_us=20) for name in names]
    rows = [
        (name, {"ts": number, "k": key, "id": number, "note": None})
        for number, name in enumerate(names)
        for key in (1, 2)
    ]
    steps = [Step(by_stream(rows[:7], names)), Step(by_stream(rows[7:], names))]
    # The oracle tries 2 ** 16 combinations and finds one for each key.
    check(Scenario(streams, steps))


def test_a_chunk_of_all_keys_different_grows_the_index() -> None:
    streams = [OracleStream("a", 10**9), OracleStream("b", 10**9)]
    left = [{"ts": i, "k": i * 7919, "id": i, "note": None} for i in range(300)]
    right = [{"ts": i, "k": (299 - i) * 7919, "id": i, "note": "x" * i} for i in range(300)]
    check(Scenario(streams, [Step({"a": left}), Step({"b": right}), Step({"a": left[-1:]})]))
