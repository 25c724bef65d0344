"""Where clauses: every supported term gives the answer that the oracle defines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.model.key_terms import keys_of
from penstock.model.where import parse_where
from support.oracle import Row, Step, Term
from support.scenario import Scenario, check
from support.strategies import arrivals, batches, other_windows, serving, streams

pytestmark = pytest.mark.jit_off


def known(function: Callable[..., bool]) -> Callable[..., bool | None]:
    """Of the x and y of each row; null where one that is used is."""

    def holds(*rows: Row) -> bool | None:
        try:
            return function(*rows)
        except TypeError:  # arithmetic or order with None
            return None

    return holds


def equal(one: Any, other: Any) -> bool:
    return one is not None and one == other


def same_pair(one: Row, other: Row) -> bool:
    return equal(one["x"], other["x"]) and equal(one["y"], other["y"])


# SQL text, the streams it is over, and what it says in Python.
TERMS: dict[str, Term] = {
    text: (names, known(function))
    for text, names, function in (
        ("a.x = b.x", ("a", "b"), lambda a, b: equal(a["x"], b["x"])),
        ("a.y = b.x", ("a", "b"), lambda a, b: equal(a["y"], b["x"])),
        ("b.y = c.y", ("b", "c"), lambda b, c: equal(b["y"], c["y"])),
        ("c.x = a.x", ("c", "a"), lambda c, a: equal(c["x"], a["x"])),
        ("b.x = c.x AND b.y = c.y", ("b", "c"), same_pair),
        ("c.y IS NOT DISTINCT FROM a.y", ("c", "a"), lambda c, a: c["y"] == a["y"]),
        ("a.x + 1 = b.x * 1.0", ("a", "b"), lambda a, b: a["x"] + 1 == b["x"]),
        ("c.y BETWEEN b.x AND b.y", ("b", "c"), lambda b, c: b["x"] <= c["y"] <= b["y"]),
        ("abs(c.x - a.y) <= 1", ("c", "a"), lambda c, a: abs(c["x"] - a["y"]) <= 1),
        ("a.x IS NOT DISTINCT FROM b.y", ("a", "b"), lambda a, b: a["x"] == b["y"]),
        ("a.x < b.x", ("a", "b"), lambda a, b: a["x"] < b["x"]),
        ("a.y >= c.y", ("a", "c"), lambda a, c: a["y"] >= c["y"]),
        ("b.x > c.x", ("b", "c"), lambda b, c: b["x"] > c["x"]),
        ("a.x <> b.y", ("a", "b"), lambda a, b: a["x"] - b["y"] != 0),
        ("abs(a.x - b.x) <= 2", ("a", "b"), lambda a, b: abs(a["x"] - b["x"]) <= 2),
        ("1 > abs(b.y - a.y)", ("a", "b"), lambda a, b: abs(b["y"] - a["y"]) < 1),
        (
            "sqrt(power(a.x - b.x, 2) + (a.y - b.y) * (a.y - b.y)) < 2",
            ("a", "b"),
            lambda a, b: math.hypot(a["x"] - b["x"], a["y"] - b["y"]) < 2,
        ),
        ("a.x * 2 - 1 <= b.y + b.x", ("a", "b"), lambda a, b: a["x"] * 2 - 1 <= b["y"] + b["x"]),
        (
            "b.x BETWEEN a.x - 1 AND a.x + 1",
            ("a", "b"),
            lambda a, b: a["x"] - 1 <= b["x"] <= a["x"] + 1,
        ),
        ("c.x = d.y", ("c", "d"), lambda c, d: equal(c["x"], d["y"])),
        ("d.x = b.x", ("d", "b"), lambda d, b: equal(d["x"], b["x"])),
        ("d.x <= a.y", ("d", "a"), lambda d, a: d["x"] <= a["y"]),
        ("abs(d.y - c.y) < 2", ("d", "c"), lambda d, c: abs(d["y"] - c["y"]) < 2),
        ("a.x BETWEEN 1 AND 3", ("a",), lambda a: 1 <= a["x"] <= 3),
        ("b.y <> -1", ("b",), lambda b: b["y"] + 0 != -1),
        ("b.x % 2 = 1", ("b",), lambda b: math.fmod(b["x"], 2) == 1),
        ("a.x <= a.y", ("a",), lambda a: a["x"] <= a["y"]),
    )
}


@st.composite
def clauses(
    draw: st.DrawFn,
    *,
    windows: bool,
    counted: bool = True,
    streams_at_most: int = 4,
    terms: Mapping[str, Term] | None = None,
) -> Scenario:
    """terms: the clause; when not given, some of all. counted: as in `other_windows`."""
    joined = tuple(replace(stream, key=()) for stream in draw(streams(())))[:streams_at_most]
    if terms is not None:
        needed = {name for names, _ in terms.values() for name in names}
        drawn = [draw(streams(()))[0] for _ in needed]
        joined = tuple(
            replace(stream, name=name, key=())
            for stream, name in zip(drawn, sorted(needed), strict=True)
        )
    if windows:
        joined = draw(other_windows(joined, counted=counted))
    names = [stream.name for stream in joined]
    fitting = [text for text, (over, _) in TERMS.items() if set(over) <= set(names)]
    chosen = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=4, unique=True))
    where = {text: TERMS[text] for text in chosen} if terms is None else terms
    numbers = (-1, 0, 1, 2, 3, 5, None)
    comes = draw(arrivals(names, ("x", "y"), (numbers, numbers)))
    steps = [Step(push) for push in draw(batches(comes, names))]
    scenario = Scenario(joined, steps, (pa.int64(), pa.int64()), where=where)
    scenario = keyed(scenario)
    query = scenario.query
    plans = st.none() | st.fixed_dictionaries(
        {name: st.sampled_from(serving(query, name)) for name in names}
    )
    others = {name: [other for other in names if other != name] for name in names}
    orders = {name: st.permutations(each) for name, each in others.items()}
    return replace(
        scenario,
        indexes=draw(plans),
        probe_orders=draw(st.none() | st.fixed_dictionaries(orders)),
        restarts={draw(st.integers(0, len(steps) - 1)): draw(plans)} if steps else {},
    )


def keyed(scenario: Scenario) -> Scenario:
    """Columns that must be equal over all streams are the key, and rows are counted by it."""
    names = [stream.name for stream in scenario.streams]
    keys = keys_of(parse_where(scenario.clause, names), len(names))
    streams = [
        replace(stream, key=key, per_key=stream.per_key and bool(key))
        for stream, key in zip(scenario.streams, keys, strict=True)
    ]
    return replace(scenario, streams=streams)


@given(clauses(windows=False))
def test_any_clause(scenario: Scenario) -> None:
    check(scenario)


@given(clauses(windows=True))
def test_any_clause_over_any_window(scenario: Scenario) -> None:
    check(scenario)


LINKED = {
    "a chain": ("a.x = b.x", "b.y = c.y"),
    "a cycle": ("a.x = b.x", "b.y = c.y", "c.x = a.y"),
    "bands": ("abs(a.x - b.x) <= 2", "abs(c.x - a.y) <= 1"),
    "a chain of four": ("a.x = b.x", "b.y = c.y", "c.x = d.y"),
    "of every kind": ("a.x = b.x", "b.x > c.x", "abs(d.y - c.y) < 2"),
}
EXTRA = {"c.x = a.y": (("c", "a"), known(lambda c, a: equal(c["x"], a["y"])))}


@pytest.mark.parametrize("linked", LINKED)
@given(st.data())
def test_different_attributes(linked: str, data: st.DataObject) -> None:
    """Each window is found by what links it to those before it, in any order of probing."""
    terms = {**TERMS, **EXTRA}
    check(data.draw(clauses(windows=False, terms={text: terms[text] for text in LINKED[linked]})))


def test_on_and_where_together() -> None:
    two = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    query = ps.WindowJoin(two, on="k", where="a.v < b.v AND b.v <> 7", within="10 us")
    table = pa.table({"ts": [1, 2, 3, 4], "k": [1, 1, 2, 1], "v": [3, 5, 9, 7]})
    join = query.start()
    result = join.push(a=table, b=table)
    assert list(zip(result["a_v"].to_pylist(), result["b_v"].to_pylist(), strict=True)) == [(3, 5)]
    assert join.metrics.streams["b"].filtered == 1


def test_classes_of_equal_columns_make_the_key() -> None:
    streams = [ps.Stream(name, time="ts") for name in "abc"]
    query = ps.WindowJoin(
        streams, where="a.k = b.k AND c.m = a.k AND a.v = b.v AND a.v < c.v", within="1 s"
    )
    assert query.keys == (("k",), ("k",), ("m",))
    assert len(query.residuals) == 2
    pairs = ps.WindowJoin(streams[:2], where="a.x = b.y AND a.z = b.z", within="1 s")
    assert pairs.keys == (("x", "z"), ("y", "z"))
    assert pairs.residuals == ()
    assert ps.WindowJoin(streams[:2], where="a.x < b.y", within="1 s").keys == ((), ())


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("a.x = b.x OR a.y = b.y", "not supported: a.x = b.x OR a.y = b.y, near character 1"),
        ("a.x = b.x AND a.n LIKE 'x%'", "not supported: a.n LIKE 'x%', near character 15"),
        ("a.x + b.x < 3", "one stream only"),
        ("abs(a.x - b.x) > 3", "must be < or <= a number"),
        ("x = b.x", "write columns as stream.column"),
        ("d.x = b.x", "the streams are"),
        ("a.x =", "cannot read where"),
        ("lower(a.x) = b.x", "not supported"),
        ("a.x = (SELECT 1)", "not supported"),
        ("", "must be SQL text"),
    ],
)
def test_what_is_not_supported(where: str, told: str) -> None:
    two = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    with pytest.raises(ps.QueryError) as raised:
        ps.WindowJoin(two, where=where, within="1 s")
    assert told in str(raised.value)


def test_columns_that_are_missing_or_do_not_compare() -> None:
    two = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    table = pa.table({"ts": [1], "x": ["text"], "n": [1]})
    with pytest.raises(ps.SchemaError, match="no where column 'z'"):
        ps.WindowJoin(two, where="a.z < b.x", within="1 s").start().push(a=table)
    join = ps.WindowJoin(two, where="a.x < b.n", within="1 s").start()
    with pytest.raises(ps.SchemaError, match="cannot be compared"):
        join.push(a=table, b=table)
    with pytest.raises(ps.QueryError, match="needs on= or where="):
        ps.WindowJoin(two, within="1 s")
