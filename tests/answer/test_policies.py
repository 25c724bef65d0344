"""Policies: which tuples go. What they say of themselves, told again one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import penstock as ps
from support.limited import QUERY, check_limits, live_keys, rows_of_keys
from support.oracle import OracleStream, Step, answer
from support.scenario import Scenario, bag
from support.strategies import by_stream
from support.thoroughness import examples

pytestmark = pytest.mark.jit_off


@examples(1 / 5)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(1, 3), st.sampled_from((1, 2, 9))),
        min_size=10,
        max_size=40,
    ),
    st.sampled_from((1, 2, 3, 7)),
    st.booleans(),
)
def test_the_oldest_goes(comes: list[tuple[str, int, int]], rows: int, at_once: bool) -> None:
    """Of tuples that come in order, a limit of so many rows leaves the newest: a window of so
    many arrivals, as far as time allows."""
    now, arrivals = 0, []
    for number, (name, ahead, key) in enumerate(comes):
        now += ahead
        arrivals.append((name, {"ts": now, "k": key, "id": number, "note": None}))
    batches = [arrivals] if at_once else [[each] for each in arrivals]
    steps = [Step(by_stream(batch, "ab")) for batch in batches]
    streams = [OracleStream(name, 12) for name in "ab"]
    limits = ps.Limits(memory=f"{rows} rows", shed="oldest")
    outcomes = check_limits(Scenario(streams, steps, limits=limits))
    kept = answer([replace(stream, arrivals=rows) for stream in streams], steps)
    got = [each for outcome in outcomes for each in outcome.results]
    want = [each for outcome in kept for each in outcome.results]
    assert bag(got) == bag(want)


@dataclass(frozen=True)
class Tuple:
    stream: str
    ts: int
    key: int
    number: int


FREQUENCIES = {"a": {1: 1.0, 2: 4.0, 3: 10.0}, "b": {1: 7.0, 2: 2.0, 3: 6.0}}
WINDOW_US = 10**9  # so much longer than all of it lasts that nothing fades


def frequency(each: Tuple) -> float:
    """How often its key comes in the other stream; one that is not told of never comes."""
    return FREQUENCIES["b" if each.stream == "a" else "a"].get(each.key, 0.0)


def left(each: Tuple, now: int) -> int:
    return each.ts + WINDOW_US - now


WORTHS: dict[str, Callable[[Tuple, int], float]] = {
    "oldest": lambda each, _: each.ts,
    "prob": lambda each, _: frequency(each),
    "life": lambda each, now: frequency(each) * left(each, now),
}


def told_again(comes: list[Tuple], shed: str, rows: int) -> list[tuple[int, int]]:
    """The pairs that come out when each stream keeps its `rows` most worthy tuples, and of those
    worth the same the newer."""
    kept: dict[str, list[Tuple]] = {"a": [], "b": []}
    pairs = []
    for each in comes:
        other = kept["b" if each.stream == "a" else "a"]
        met = [(each.number, one.number) for one in other if one.key == each.key]
        pairs += [pair if each.stream == "a" else pair[::-1] for pair in met]
        own = kept[each.stream]
        own.append(each)
        if len(own) > rows:
            worths = {one: WORTHS[shed](one, each.ts) for one in own}
            least = [one for one in own if worths[one] == min(worths.values())]
            # Between keys of the same worth either may go.
            assume(len({one.key for one in least}) == 1 or shed == "oldest")
            own.remove(least[0])
    return sorted(pairs)


@pytest.mark.parametrize("shed", WORTHS)
@examples(1 / 5)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(1, 9), st.sampled_from((1, 2, 3, 4))),
        min_size=10,
        max_size=40,
    ),
    st.sampled_from((1, 2, 3, 7)),
    st.booleans(),
)
def test_the_least_worthy_goes(
    shed: str, moves: list[tuple[str, int, int]], rows: int, at_once: bool
) -> None:
    now, comes = 0, []
    for number, (name, ahead, key) in enumerate(moves):
        now += ahead
        comes.append(Tuple(name, now, key, number))
    arrivals = [
        (each.stream, {"ts": each.ts, "k": each.key, "id": each.number, "note": None})
        for each in comes
    ]
    batches = [arrivals] if at_once else [[each] for each in arrivals]
    steps = [Step(by_stream(batch, "ab")) for batch in batches]
    limits = ps.Limits(f"{2 * rows} rows", shed=shed, pool="fixed", frequencies=FREQUENCIES)
    streams = [OracleStream(name, WINDOW_US) for name in "ab"]
    outcomes = check_limits(Scenario(streams, steps, limits=limits))
    got = [
        tuple(row["id"] for row in combination if row)
        for outcome in outcomes
        for combination, _ in outcome.results
    ]
    assert sorted(got) == told_again(comes, shed, rows)


def test_prob_keeps_what_comes_often() -> None:
    often = {1: 9.0, 2: 1.0}
    limits = ps.Limits("4 rows", shed="prob", frequencies={"a": often, "b": often})
    # Whose keys they are must be known before the first of them comes.
    join = QUERY.start(limits=limits, schemas={"b": rows_of_keys(0, 1).schema})
    join.push(a=rows_of_keys(0, 1, 2, 1, 2, 2, 1, 2, 1, 2))
    assert live_keys(join, 0) == [1, 1, 1, 1]
    assert join.metrics.streams["a"].shed == 5


def test_prob_learns_what_comes_often() -> None:
    join = QUERY.start(limits=ps.Limits("4 rows", shed="prob"))
    join.push(b=rows_of_keys(0, *[1, 1, 1, 2] * 10))
    join.push(a=rows_of_keys(50, 1, 2, 1, 2, 2, 1, 2, 1, 2))
    assert 2 not in live_keys(join, 0)


def test_what_a_result_is_worth() -> None:
    join = QUERY.start(limits=ps.Limits("3 rows", shed="prob", value="a.price"))
    prices = [5, 1, 7, 2, 9, 3]
    join.push(a=rows_of_keys(0, *[1] * 6).append_column("price", pa.array(prices)))
    result = join.push(b=rows_of_keys(10, 1))
    assert sorted(result["a_price"].to_pylist()) == [5, 7, 9]
    assert join.metrics.lost == 3


def test_life_prefers_who_lives_longer() -> None:
    often = {1: 1.0}
    limits = ps.Limits("2 rows", shed="life", frequencies={"a": often, "b": often})
    join = QUERY.start(limits=limits)
    join.push(a=rows_of_keys(0, 1, 1, 1, 1))
    assert sorted(join.push(b=rows_of_keys(10, 1))["a_ts"].to_pylist()) == [2, 3]


@pytest.mark.parametrize(("shed", "kept"), [("prob", 3), ("life", 2), ("oldest", 2)])
def test_time_that_is_left_against_frequency(shed: str, kept: int) -> None:
    """Of key 3 come three times as many, but to the older tuple a fifth of its time is left."""
    often = {2: 2.0, 3: 6.0}
    limits = ps.Limits("1 rows", shed=shed, frequencies={"b": often})
    join = QUERY.start(limits=limits, schemas={"b": rows_of_keys(0, 1).schema})
    join.push(a=rows_of_keys(0, 3))
    join.push(a=rows_of_keys(80, 2))
    assert live_keys(join, 0) == [kept]


@pytest.mark.many_rows
@pytest.mark.parametrize("shed", ["prob", "life", "expected_life"])
def test_keys_that_come_once_are_kept_until_they_have(shed: str) -> None:
    """Each order is paid once: paid ones are worth nothing, though their keys have come."""
    rng = np.random.default_rng(3)
    keys, ts = rng.permutation(6000), np.arange(6000) * 1000
    delay = rng.exponential(300_000, 6000).astype(np.int64)
    paid_at = ts + delay
    order = np.argsort(paid_at, kind="stable")
    tables = {
        "a": pa.table({"ts": ts, "k": keys}),
        "b": pa.table({"ts": paid_at[order], "k": keys[order]}),
    }
    recall = {}
    for policy in (shed, "random", "oldest"):
        join = ps.WindowJoin(QUERY.streams, on="k", within="1 s").start(
            limits=ps.Limits("400 rows", shed=policy)
        )
        for begin in range(0, 7_000_000, 50_000):
            batch = {}
            for name, table in tables.items():
                times = np.asarray(table["ts"])
                first, last = np.searchsorted(times, (begin, begin + 50_000))
                batch[name] = table.slice(first, last - first)
            join.push(batch)
        recall[policy] = join.metrics.recall or 0.0
    assert recall[shed] > 1.1 * max(recall["oldest"], recall["random"])
