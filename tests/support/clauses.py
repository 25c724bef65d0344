"""Where clauses, drawn: their terms in SQL beside what each says in Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from penstock.model.predicates.key_terms import keys_of
from penstock.model.predicates.where import parse_where
from support.oracle import Row, Step, Term
from support.scenario import Scenario
from support.strategies import arrivals, batches, other_windows, serving, streams


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

LINKED = {
    "a chain": ("a.x = b.x", "b.y = c.y"),
    "a cycle": ("a.x = b.x", "b.y = c.y", "c.x = a.y"),
    "bands": ("abs(a.x - b.x) <= 2", "abs(c.x - a.y) <= 1"),
    "a chain of four": ("a.x = b.x", "b.y = c.y", "c.x = d.y"),
    "of every kind": ("a.x = b.x", "b.x > c.x", "abs(d.y - c.y) < 2"),
}
EXTRA = {"c.x = a.y": (("c", "a"), known(lambda c, a: equal(c["x"], a["y"])))}


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


@st.composite
def with_functions(draw: st.DrawFn, *, windows: bool, counted: bool = True) -> Scenario:
    """Some terms of a clause are functions; over every split, disorder and restart."""
    scenario = draw(clauses(windows=windows, counted=counted))
    texts = list(scenario.where)
    chosen = draw(st.lists(st.sampled_from(texts), min_size=1, unique=True))
    # As a function a term does not say by what a window can be found, nor what the key is.
    plain = dict.fromkeys(scenario.restarts)
    return keyed(replace(scenario, as_udf=chosen, indexes=None, restarts=plain))
