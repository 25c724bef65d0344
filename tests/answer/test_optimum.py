"""The offline optimum is that of trying everything, whatever the join, the memory and the input."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.lab.optimum import matched_pairs
from support.offline_cases import KINDS, NAMES, Case, cases
from support.offline_trying import Number, Offline, most, replayed
from support.oracle import OracleStream, Step
from support.paper_graph import papers_optimum
from support.scenario import Scenario

EXAMPLES = settings().max_examples  # of the profile

EXACT = ("auto", "per_match", "per_arrival")
POOLS = ("shared", "fixed", {"a": 3, "b": 1})


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


@pytest.mark.parametrize("method", ["auto", "per_arrival", "prices"])
@pytest.mark.parametrize("seed", range(3))
def test_larger_inputs(seed: int, method: str) -> None:
    """Both graphs agree where nobody could try everything, and what is to be kept fits."""
    rng = random.Random(seed)
    rows = {
        name: [
            {"ts": ts, "k": int(rng.paretovariate(0.8)), "id": number, "note": None}
            for number, ts in enumerate(sorted(rng.choices(range(100), k=120)))
        ]
        for name in NAMES
    }
    streams = [OracleStream("a", window_us=40), OracleStream("b", window_us=15)]
    memory = [(ts, rng.choice([0, 3, 10, 25])) for ts in range(-5, 100, 15)]
    for pool in POOLS:
        case = Case(Scenario(streams, [Step(rows)]), memory, pool)
        best = case.optimum("per_match").produced
        optimum = case.optimum(method)
        assert 0 < best < optimum.total
        check(case, optimum, best)
        assert method == "prices" or optimum.produced == best


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


@pytest.mark.jit_off
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


@pytest.mark.jit_off
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


@pytest.mark.jit_off
def test_tables_that_can_be_read_once() -> None:
    table = pa.table({"ts": [0, 1], "k": [1, 1], "w": [1, 0]})
    tables = {name: table.to_reader() for name in NAMES}
    query = ps.WindowJoin([ps.Stream(name, time="ts") for name in NAMES], on="k", within="9 us")
    assert ps.optimum(query, tables, memory=9, windows={"a": "w", "b": "w"}).produced == 4


@pytest.mark.jit_off
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


UNLIKE = pytest.mark.parametrize("values", [[1e18, 0.75, 0.25], [1e18, 0.25, 0.75]])


def of_unlike_values(values: list[float], **given: Any) -> ps.Optimum:
    """Of the last two tuples one can be kept; the result of the first is worth far more."""
    tables = {
        "a": pa.table({"ts": [0, 2, 2], "k": [9, 1, 2], "v": values}),
        "b": pa.table({"ts": [1, 3, 3], "k": [9, 1, 2]}),
    }
    query = ps.WindowJoin([ps.Stream(name, time="ts") for name in NAMES], on="k", within="9 us")
    return ps.optimum(query, tables, value="a.v", **given)


@pytest.mark.jit_off
@UNLIKE
@pytest.mark.parametrize("method", ["auto", "prices"])
def test_values_that_cannot_be_had_do_not_hide_others(values: list[float], method: str) -> None:
    """Rounded to the same unit, the two are alike: the bound must say so."""
    optimum = of_unlike_values(values, memory=[(0, 0), (2, 1)], method=method)
    assert optimum.produced <= 0.75 <= optimum.upper
    assert optimum.is_exact == (optimum.produced == optimum.upper)
    assert optimum.recall_upper <= 1


@pytest.mark.jit_off
@UNLIKE
def test_values_that_do_not_count_do_not_hide_others(values: list[float]) -> None:
    optimum = of_unlike_values(values, memory=1, counted_from=2)
    assert (optimum.produced, optimum.total, optimum.is_exact) == (0.75, 1.0, True)


@pytest.mark.jit_off
@UNLIKE
def test_bounds_are_not_above_the_whole(values: list[float]) -> None:
    optimum = of_unlike_values(values, memory=1, method="prices")
    assert optimum.produced <= optimum.upper <= optimum.total


def test_values_that_a_flow_cannot_count() -> None:
    """Of one tuple in many results: prices serve, and the flow says so."""
    others = 20_000
    tables = {
        "a": pa.table({"ts": [0, 1, 2], "k": [1] * 3}),
        "b": pa.table({"ts": range(3, 3 + others), "k": [1] * others}),
    }
    query = ps.WindowJoin([ps.Stream(name, time="ts") for name in NAMES], on="k", within="1 s")

    def value(results: pa.Table) -> list[float]:
        return [0.3] * len(results)

    optimum = ps.optimum(query, tables, memory=1, value=value)
    assert optimum.method == "prices"
    assert optimum.produced == pytest.approx(0.3 * others)
    with pytest.raises(ps.PlanError, match="use method='prices'"):
        ps.optimum(query, tables, memory=1, value=value, method="per_match")


@pytest.mark.jit_off
@pytest.mark.parametrize("method", ["per_arrival", "per_match"])
def test_keys_of_several_columns_are_equal_as_in_the_join(method: str) -> None:
    """Zeros of either sign, and times whatever their zone."""
    streams = [ps.Stream(name, time="ts") for name in NAMES]
    query = ps.WindowJoin(streams, on=["x", "y"], within="9 us")
    tables = {
        name: pa.table(
            {"ts": [0, 1], "x": [zero, 1.0], "y": pa.array([5, 5], pa.timestamp("us", zone))}
        )
        for name, zero, zone in (("a", 0.0, "UTC"), ("b", -0.0, "Europe/Berlin"))
    }
    assert ps.optimum(query, tables, memory=9, method=method).total == 2


@pytest.mark.jit_off
def test_text_of_polars_in_results() -> None:
    table = polars.DataFrame({"ts": [1, 2, 3], "k": ["x", "y", "x"], "text": ["1", "2", "3"]})
    query = ps.WindowJoin([ps.Stream(name, time="ts") for name in NAMES], on="k", within="9 us")

    def value(results: pa.Table) -> Any:
        return [int(text) for text in results["a_text"].to_pylist()]

    assert ps.optimum(query, {"a": table, "b": table}, memory=9, value=value).total == 1 + 2 + 6 + 1


@pytest.mark.jit_off
def test_times_beyond_those_of_nanoseconds() -> None:
    tables = {
        "a": pa.table({"ts": pa.array([5000], pa.timestamp("ns")), "k": [1]}),
        "b": pa.table({"ts": pa.array([10**11], pa.timestamp("s")), "k": [1]}),
    }
    query = ps.WindowJoin(
        [ps.Stream(name, time="ts") for name in NAMES], on="k", within="unbounded"
    )
    kept = ps.optimum(query, tables, memory=1).kept["a"]
    assert kept == pa.array([10**17], pa.timestamp("us"))


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=max(EXAMPLES // 10, 1), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_results_of_many_pieces(
    monkeypatch: pytest.MonkeyPatch, kind: str, data: st.DataObject
) -> None:
    case = data.draw(cases(kind))
    whole = case.optimum("per_match")
    with monkeypatch.context() as patch:
        patch.setattr(matched_pairs, "_PIECE", data.draw(st.integers(1, 4)))
        in_pieces = case.optimum("per_match")
    assert in_pieces.total == pytest.approx(whole.total)
    assert in_pieces.produced == pytest.approx(whole.produced)


@pytest.mark.jit_off
def test_a_value_is_told_of_results_as_they_come_out() -> None:
    table = pa.table({"ts": [0, 1], "k": [1, 1], "v": [3, 4]})
    query = ps.WindowJoin(
        [ps.Stream(name, time="ts") for name in NAMES], on="k", within="9 us", select={"x": "b.v"}
    )

    def value(results: pa.Table) -> pa.Array:
        assert results.column_names == ["x", "event_time"]
        return results["x"]

    optimum = ps.optimum(query, dict.fromkeys(NAMES, table), memory=9, value=value)
    assert optimum.produced == optimum.total == 14


@pytest.mark.jit_off
def test_nothing_comes() -> None:
    case = in_step([], [], 3, 2, "shared")
    optimum = case.optimum()
    assert (optimum.produced, optimum.total, optimum.recall) == (0, 0, 1)
    assert [len(optimum.kept[name]) for name in NAMES] == [0, 0]


def test_the_example_in_the_documentation_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "optimum.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code, {})  # noqa: S102  the page's own example
    promised = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    for line, promise in zip(capsys.readouterr().out.splitlines(), promised, strict=True):
        assert promise.startswith(line)


@pytest.mark.jit_off
def test_what_is_told_in_a_line() -> None:
    table = pa.table({"ts": [0, 1], "k": [1, 1]})
    query = ps.WindowJoin([ps.Stream(name, time="ts") for name in NAMES], on="k", within="9 us")
    tables = dict.fromkeys(NAMES, table)
    assert str(ps.optimum(query, tables, memory=1)) == "at most 3 of 4 results (75.0%)"
    told = ps.optimum(query, tables, memory=1, value=lambda results: [0.5] * results.num_rows)
    assert str(told) == "at most 1.5 of 2 (75.0%)"
    assert str(ps.Optimum(1, 2, 1_000, {}, "prices")) == (
        "at most 2, at least 1 of 1,000 results (0.1% to 0.2%)"
    )
