"""The oracle itself, on cases small enough to work out by hand."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from support.oracle import Combination, OracleStream, Row, Step, answer

A, B, C = (OracleStream(name, window_us=window) for name, window in (("a", 2), ("b", 5), ("c", 0)))


def rows(*pairs: tuple[int, Any]) -> list[Row]:
    return [{"ts": ts, "k": key} for ts, key in pairs]


def times(results: list[Combination]) -> list[tuple[int, ...]]:
    """Each combination by the times of its rows, then its event time."""
    return [(*(row["ts"] for row in combination), ts) for combination, ts in results]


def test_two_streams_meet_within_both_windows() -> None:
    """b may come up to 2 after a, and a up to 5 after b."""
    step = Step({"a": rows((10, "x")), "b": rows(*((ts, "x") for ts in range(4, 14)))})
    (outcome,) = answer([A, B], [step])
    assert times(outcome.results) == [(10, ts, max(10, ts)) for ts in range(5, 13)]


def test_three_streams_are_measured_from_the_latest() -> None:
    """With c at 10: a from 8 on, b from 5 on, whatever the distance between a and b."""
    arrivals = {
        "a": rows((7, 1), (8, 1), (10, 1)),
        "b": rows((4, 1), (5, 1), (8, 2)),
        "c": rows((10, 1)),
    }
    (outcome,) = answer([A, B, C], [Step(arrivals)])
    assert times(outcome.results) == [(8, 5, 10, 10), (10, 5, 10, 10)]


def test_a_window_of_zero_meets_only_its_instant() -> None:
    (outcome,) = answer([A, C], [Step({"a": rows((1, 1), (2, 1)), "c": rows((1, 1), (2, 1))})])
    assert times(outcome.results) == [(1, 1, 1), (1, 2, 2), (2, 2, 2)]


def test_equal_rows_count_as_often_as_they_come() -> None:
    (outcome,) = answer([A, B], [Step({"a": rows((1, 1), (1, 1)), "b": rows((1, 1)) * 3})])
    assert len(outcome.results) == 6


@pytest.mark.parametrize("nothing", [None, nan])
def test_null_and_nan_equal_nothing(nothing: float | None) -> None:
    (outcome,) = answer([A, B], [Step({"a": rows((1, nothing)), "b": rows((1, nothing), (1, 0))})])
    assert outcome.results == []


def test_every_column_of_a_key_counts() -> None:
    a, b = (OracleStream(name, 9, key=("k", "m")) for name in "ab")
    left: list[Row] = [{"ts": 1, "k": 1, "m": 1}, {"ts": 2, "k": 1, "m": None}]
    right: list[Row] = [
        {"ts": 3, "k": 1, "m": 1},
        {"ts": 4, "k": 1, "m": 2},
        {"ts": 5, "k": 1, "m": None},
    ]
    (outcome,) = answer([a, b], [Step({"a": left, "b": right})])
    assert times(outcome.results) == [(1, 3, 3)]


def test_a_combination_comes_out_with_the_last_of_its_tuples() -> None:
    steps = [Step({"b": rows((2, 1))}), Step({"a": rows((1, 1))}), Step({"a": rows((2, 1))})]
    assert [times(o.results) for o in answer([A, B], steps)] == [[], [(1, 2, 2)], [(2, 2, 2)]]


def test_the_watermark_is_the_lowest_and_holds_for_the_batch() -> None:
    a, b = OracleStream("a", 2, lateness_us=3), OracleStream("b", 5)
    steps = [
        Step({"a": rows((10, 1), (1, 1))}),  # b has said nothing yet: nothing is late
        Step({"b": rows((9, 1))}),  # lowest of 10 - 3 and 9
        Step({"a": rows((6, 1), (7, 1), (20, 1))}),  # 6 < 7 is late; 20 counts only after
        Step({"b": rows((8, 1), (9, 1))}),  # the watermark is 9 now
    ]
    outcomes = answer([a, b], steps)
    assert [outcome.watermark for outcome in outcomes] == [-inf, 7, 9, 9]
    assert [[r["ts"] for r in o.late["a"] + o.late["b"]] for o in outcomes] == [[], [], [6], [8]]
    assert [times(o.results) for o in outcomes[:3]] == [[], [(10, 9, 10)], [(7, 9, 9)]]
    assert sorted(times(outcomes[3].results)) == [(7, 9, 9), (10, 9, 10)]
    # a keeps what is not older than 9 - 2, b what is not older than 9 - 5.
    assert outcomes[-1].live == {"a": 3, "b": 2}


def test_advance_sets_a_watermark_that_never_goes_back() -> None:
    steps = [
        Step({"a": rows((5, 1))}, {"b": 4}),
        Step({}, {"a": 9, "b": 3}),
        Step({}, {"b": 8}),
        Step({"a": rows((8, 1), (7, 1))}),
    ]
    outcomes = answer([A, B], steps)
    assert [outcome.watermark for outcome in outcomes] == [4, 4, 8, 8]
    assert outcomes[-1].late["a"] == rows((7, 1))


def test_an_idle_stream_holds_nothing_back() -> None:
    a, b = OracleStream("a", 9), OracleStream("b", 9, idle_timeout_s=10.0)
    steps = [
        Step({"a": rows((5, 1)), "b": rows((2, 1))}, at=1.0),
        Step({"a": rows((7, 1))}, at=10.5),  # b was heard 9.5 ago
        Step({"a": rows((8, 1))}, at=11.5),  # b is idle
        Step({"b": rows((7, 1), (8, 1))}, at=12.0),  # back, and 7 is behind a's 8
        Step({"a": rows((30, 1))}, at=12.5),  # b counts again
    ]
    outcomes = answer([a, b], steps)
    assert [outcome.watermark for outcome in outcomes] == [2, 2, 8, 8, 8]
    assert outcomes[3].late["b"] == rows((7, 1))
