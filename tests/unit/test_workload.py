"""`ps.Workload`: what is refused, and what follows for a query."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps

pytestmark = pytest.mark.jit_off


def query(window: str = "10 seconds", **options: Any) -> ps.WindowJoin:
    streams = [ps.Stream(name, time="ts") for name in "ab"]
    if "where" not in options:
        options["on"] = "k"
    return ps.WindowJoin(streams, within=window, **options)


GIVEN = ps.Workload(
    rates={"a": 100, "b": 20}, distinct={"a": 5000, "b": 4000}, row_bytes={"a": 10, "b": 7}
)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("10 seconds", 1000),
        ("0 seconds", 0),
        ("tumbling 10 seconds", 500),
        ("50 rows", 50),
        ("3 rows per key", 15_000),
        ("600 arrivals", 500),
    ],
)
def test_window_tuples(window: str, expected: float) -> None:
    assert GIVEN.window_tuples(query(window), "a") == pytest.approx(expected)


def test_windows_that_never_end_need_a_horizon() -> None:
    for window in ("unbounded", "since 2026-01-01T00:00:00Z"):
        with pytest.raises(ps.PlanError, match=r"never ends.*horizon="):
            GIVEN.window_tuples(query(window), "b")
        for horizon in ("1 hour", timedelta(hours=1)):
            workload = ps.Workload(rates=20, horizon=horizon)
            assert workload.window_tuples(query(window), "b") == 72_000


def test_windows_may_be_others_than_the_query_has() -> None:
    workload = ps.Workload(rates=10, windows={"a": "1 minute"})
    assert workload.window_tuples(query(), "a") == 600
    assert workload.window_tuples(query(), "b") == 100
    assert ps.Workload(rates=10, windows="5 rows").window_tuples(query(), "b") == 5


def test_one_side_of_bounds_may_keep_nothing() -> None:
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    lagged = ps.WindowJoin(streams, on="k", between=("5 seconds", "10 seconds"))
    assert GIVEN.window_tuples(lagged, "a") == 1000
    assert GIVEN.window_tuples(lagged, "b") == 0


def test_what_is_kept_for_late_tuples() -> None:
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts", lateness="2 seconds")]
    late = ps.WindowJoin(streams, on="k", within="10 seconds")
    assert GIVEN.window_tuples(late, "a") == 1000
    assert GIVEN.live_tuples(late, "a") == 1200
    assert GIVEN.live_bytes(late, "a") == 12_000


def test_selectivity_of_equal_keys() -> None:
    assert GIVEN.selectivity(query(), 0, 1) == 1 / 5000
    assert GIVEN.selectivity(query(), "b", "a") == 1 / 5000
    assert ps.Workload(rates=1, distinct=10).selectivity(query(), 0, 1) == 0.1
    only_one = ps.Workload(rates={"a": 1, "b": 1}, distinct={"b": 50})
    assert only_one.selectivity(query(), 0, 1) == 1 / 50
    with pytest.raises(ps.PlanError, match="how many distinct values"):
        ps.Workload(rates=1).selectivity(query(), 0, 1)


def test_given_selectivity_wins_in_either_order() -> None:
    for pair in (("a", "b"), ("b", "a")):
        workload = ps.Workload(rates=1, distinct=10, selectivities={pair: 0.25})
        assert workload.selectivity(query(), 0, 1) == 0.25
    assert ps.Workload(rates=1, selectivities=0.5).selectivity(query(), 1, 0) == 0.5


def test_selectivity_by_order_must_be_told() -> None:
    band = query(where="abs(a.x - b.x) <= 5")
    with pytest.raises(ps.PlanError, match=r"match by order is not known; give selectivities="):
        GIVEN.selectivity(band, 0, 1)
    told = ps.Workload(rates=1, selectivities={("a", "b"): 0.01})
    assert told.selectivity(band, 0, 1) == 0.01


def test_several_access_paths() -> None:
    """A chain of three: each link has its own columns, and streams without a link always match."""
    streams = [ps.Stream(name, time="ts") for name in "abc"]
    chain = ps.WindowJoin(
        streams, where="a.x = b.x AND a.w = b.w AND b.y = c.y", within="10 seconds"
    )
    workload = ps.Workload(
        rates=1,
        distinct={"a": {("x", "w"): 30}, "b": {("w", "x"): 20, "y": 70}, "c": {"y": 5}},
    )
    assert workload.selectivity(chain, 0, 1) == pytest.approx(1 / 30)
    assert workload.selectivity(chain, 1, 2) == pytest.approx(1 / 70)
    assert workload.selectivity(chain, 0, 2) == 1
    assert workload.distinct_keys("b", ["x", "w"]) == 20
    assert workload.distinct_keys("c") == 5
    with pytest.raises(ps.PlanError, match=r"of \('z',\) stream 'b' has is not known; known are"):
        workload.distinct_keys("b", ["z"])
    with pytest.raises(ps.PlanError, match="not known"):
        workload.distinct_keys("b")  # which of them?


def test_it_must_be_of_the_querys_streams() -> None:
    GIVEN.check(query())
    ps.Workload(rates=5).check(query())
    with pytest.raises(ps.PlanError, match="rates names 'c', and no such stream is in the query"):
        ps.Workload(rates={"a": 1, "b": 1, "c": 1}).check(query())
    with pytest.raises(ps.PlanError, match="the rate of stream 'b' is not known, got those of"):
        ps.Workload(rates={"a": 1}).check(query())
    with pytest.raises(ps.PlanError, match="row width of stream 'a' is not known; give it in"):
        ps.Workload(rates=1).bytes_of_row("a")


def test_punctuation_rates_are_for_joins_that_can_use_promises() -> None:
    given = ps.Workload(rates=5, distinct=9, punctuation_rates={"b": 2})
    given.check(query())
    assert (given.punctuation_rate("a"), given.punctuation_rate("b")) == (None, 2)
    assert ps.Workload(rates=5, punctuation_rates=3).punctuation_rate("a") == 3
    for refused, why in (
        (query("50 rows"), "its windows count rows or arrivals; leave them out"),
        (query(where="a.x < b.x"), "it has no key; leave them out"),
    ):
        with pytest.raises(ps.PlanError, match=why):
            given.check(refused)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"rates": -1}, "a rate, in tuples a second, must be a number, 0 or more, got -1"),
    ({"rates": float("nan")}, "got nan"),
    ({"rates": float("inf")}, "got inf"),
    ({"rates": "fast"}, "got 'fast'"),
    ({"rates": True}, "got True"),
    ({"rates": None}, "got None"),
    ({"rates": {"a": -5}}, "of stream 'a' must be a number, 0 or more, got -5"),
    ({"rates": {3: 5}}, "told by the name of a stream, got 3"),
    ({"distinct": 0}, "a number of distinct values must be a number, 1 or more, got 0"),
    ({"distinct": {"a": 0.5}}, "of stream 'a' must be a number, 1 or more"),
    ({"distinct": {"a": {"x": 0}}}, "of 'x' of stream 'a' must be"),
    ({"distinct": {"a": {}}}, "names no column"),
    ({"distinct": {"a": {3: 5}}}, "told by column"),
    ({"distinct": {"a": {("x", "y"): 5, ("y", "x"): 6}}}, "of 'y', 'x' of stream 'a' is given"),
    ({"selectivities": 1.5}, "a selectivity must be a number, 0 to 1, got 1.5"),
    ({"selectivities": {("a", "b"): -0.1}}, "of 'a' and 'b' must be a number, 0 to 1, got -0.1"),
    ({"selectivities": {"ab": 0.1}}, "told by two streams"),
    ({"selectivities": {("a", "a"): 0.1}}, "told by two streams"),
    ({"selectivities": {("a", "b"): 0.1, ("b", "a"): 0.2}}, "given twice"),
    ({"row_bytes": -8}, "a number of bytes a row must be"),
    ({"windows": {"a": "soon"}}, "cannot read the window of stream 'a'"),
    ({"windows": 5}, "windows must be text or a timedelta"),
    ({"horizon": "later"}, "cannot read horizon"),
    ({"rates": {"a": 1}, "distinct": {"b": 5}}, "distinct names 'b', and no such stream has a"),
    ({"rates": {"a": 1}, "selectivities": {("a", "b"): 0}}, "selectivities names 'b'"),
    ({"rates": {"a": 1}, "windows": {"b": "1 s"}}, "windows names 'b'"),
    ({"punctuation_rates": -1}, "in punctuations a second, must be a number, 0 or more, got -1"),
    ({"punctuation_rates": {"a": "often"}}, "of stream 'a' must be a number, 0 or more, got"),
    ({"rates": {"a": 1}, "punctuation_rates": {"b": 1}}, "punctuation_rates names 'b'"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_input_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ps.PlanError) as refused:
        ps.Workload(**{"rates": 1, **options})
    assert message in str(refused.value)


NAMES = st.sampled_from(["a", "b", "c d", "e,f"])
RATES = st.floats(0, 1e9)
COUNTS = st.floats(1, 1e12)
COLUMNS = st.sets(NAMES, min_size=1, max_size=3).map(lambda names: tuple(sorted(names)))
PAIRS = st.tuples(NAMES, NAMES).filter(lambda pair: pair[0] < pair[1])


@given(
    rates=RATES,
    distinct=st.none()
    | COUNTS
    | st.dictionaries(NAMES, COUNTS | st.dictionaries(COLUMNS, COUNTS, min_size=1)),
    selectivities=st.none() | st.floats(0, 1) | st.dictionaries(PAIRS, st.floats(0, 1)),
    row_bytes=st.none() | RATES | st.dictionaries(NAMES, RATES),
    windows=st.none()
    | st.sampled_from(["1 hour", "5 rows"])
    | st.dictionaries(NAMES, st.sampled_from(["90 seconds", "7 rows per key", "unbounded"])),
    horizon=st.none() | st.sampled_from(["1 day", timedelta(minutes=90)]),
    punctuation_rates=st.none() | RATES | st.dictionaries(NAMES, RATES),
)
def test_plain_values_and_back(**fields: Any) -> None:
    workload = ps.Workload(**fields)
    plain = json.loads(json.dumps(workload.to_dict()))
    again = ps.Workload.from_dict(plain)
    assert again.to_dict() == workload.to_dict()
    if not isinstance(fields["horizon"], timedelta):
        assert again == workload


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ([], "a workload is an object with rates, got []"),
        ({}, "a workload is an object with rates"),
        ({"rates": 1, "speed": 2}, "a workload has no ['speed']"),
        ({"rates": 1, "version": 2}, "of version 2, and this reads version 1"),
        ({"rates": -1}, "0 or more, got -1"),
        ({"rates": 1, "selectivities": [{"streams": ["a", "b"]}]}, "expected an object with"),
        (
            {"rates": 1, "selectivities": [{"streams": "ab", "selectivity": 1}]},
            "must be a list of names",
        ),
        (
            {"rates": 1, "distinct": {"a": [{"columns": ["x"], "distinct": 2}] * 2}},
            "is given twice",
        ),
    ],
)
def test_other_plain_values_are_refused(plain: Any, message: str) -> None:
    with pytest.raises(ps.PlanError) as refused:
        ps.Workload.from_dict(plain)
    assert message in str(refused.value)
