"""Functions as predicates: they answer as the same predicate written in SQL does."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given

import penstock as ps
from support.clauses import with_functions
from support.scenario import Scenario, check

pytestmark = pytest.mark.jit_off

TWO = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
TABLE = pa.table({"ts": [1, 2, 3, 4], "k": [1, 1, 1, 1], "v": [3, None, 5, 7]})


def below(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.less(left, right)


def answer(where: Any, table: pa.Table = TABLE) -> list[tuple[Any, Any]]:
    join = ps.WindowJoin(TWO, on="k", where=where, within="10 us").start()
    result = join.push(a=table, b=table)
    return sorted(zip(result["a_ts"].to_pylist(), result["b_ts"].to_pylist(), strict=True))


@given(with_functions(windows=False))
def test_any_clause(scenario: Scenario) -> None:
    check(scenario)


@given(with_functions(windows=True))
def test_any_clause_over_any_window(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize(
    "function",
    [
        below,
        lambda left, right: np.less(np.array(left), np.array(right)),
        lambda left, right: pa.chunked_array([pc.less(left, right)]),
        functools.partial(lambda right, left: pc.less(left, right)),
    ],
)
def test_what_a_function_may_return(function: Callable[..., Any]) -> None:
    whole = TABLE.set_column(2, "v", pa.array([3, 1, 5, 7]))
    swapped = isinstance(function, functools.partial)
    columns = ["b.v", "a.v"] if swapped else ["a.v", "b.v"]
    assert answer(ps.udf(function, columns), whole) == answer("a.v < b.v", whole)


def test_null_does_not_hold() -> None:
    assert answer(ps.udf(below, ["a.v", "b.v"])) == [(1, 3), (1, 4), (3, 4)]
    masked = ps.udf(
        lambda left, right: np.ma.masked_array(np.ones(len(left), bool), np.ones(len(left), bool)),
        ["a.v", "b.v"],
    )
    assert answer(masked) == []


def test_with_text_and_in_any_number() -> None:
    odd = ps.udf(lambda v: pc.equal(pc.bit_wise_and(v, 1), 1), ["b.ts"])
    both = ["a.v < b.v", odd, ps.udf(below, ["a.ts", "b.ts"])]
    assert answer(both) == answer("a.v < b.v AND b.ts % 2 = 1 AND a.ts < b.ts") == [(1, 3)]
    assert answer(["a.v < b.v"]) == answer("a.v < b.v")


def test_over_one_stream_it_is_a_filter() -> None:
    query = ps.WindowJoin(
        TWO, on="k", where=ps.udf(lambda v: pc.greater(v, 3), ["a.v"]), within="10 us"
    )
    assert query.residuals == ()
    join = query.start()
    join.push(a=TABLE, b=TABLE)
    assert join.metrics.streams["a"].filtered == 2
    assert join.metrics.streams["a"].live == 2


def test_without_a_key_all_are_compared() -> None:
    join = ps.WindowJoin(TWO, where=ps.udf(below, ["a.v", "b.v"]), within="10 us").start()
    assert join.push(a=TABLE, b=TABLE).num_rows == 3


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["x", "y", "x", None]).dictionary_encode(),
        pa.array(["x", "y", "x", None]).cast(pa.string_view()),
        pa.array([1, 2, 3, 4], pa.uint8()),
        pa.array([[1], [], None, [2]]),
        pa.array([{"p": 1}, None, {"p": 2}, {"p": 3}]),
    ],
    ids=str,
)
def test_columns_come_in_the_types_of_the_stream(values: pa.Array) -> None:
    """Also where they are kept as another: in a filter, and on candidates."""
    seen: set[tuple[pa.DataType, type]] = set()

    def look(*columns: pa.Array) -> pa.Array:
        seen.update((column.type, type(column)) for column in columns)
        assert len({len(column) for column in columns}) == 1
        return pa.repeat(True, len(columns[0]))

    table = TABLE.set_column(2, "v", values)
    where = [ps.udf(look, ["a.v"]), ps.udf(look, ["b.v", "a.v"])]
    assert len(answer(where, table)) == 16
    assert seen == {(values.type, type(values))}


def test_it_is_not_called_for_nothing() -> None:
    sizes: list[int] = []

    def count(values: pa.Array, *_: pa.Array) -> pa.Array:
        sizes.append(len(values))
        return pa.repeat(False, len(values))

    where = [ps.udf(count, ["a.v"]), ps.udf(count, ["a.v", "b.v"])]
    join = ps.WindowJoin(TWO, on="k", where=where, within="10 us").start()
    join.push(a=TABLE[:0], b=TABLE)
    join.push(a=TABLE)
    assert sizes == [4]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: ps.udf("a.x < b.x", ["a.x"]), "udf needs a function, got 'a.x < b.x'"),
        (lambda: ps.udf(below, "a.x"), "udf 'below' needs the columns its function takes"),
        (lambda: ps.udf(below, []), "got []"),
        (lambda: ps.udf(below, ["a.x", 7]), "got ['a.x', 7]"),
        (lambda: answer(ps.udf(below, ["a.v", "v"])), "as 'stream.column', got 'v'; the streams"),
        (lambda: answer(ps.udf(below, ["a.v", "c.v"])), "the streams are ['a', 'b']"),
        (lambda: answer([]), "where must be SQL text, a ps.udf, or a list of these, got []"),
        (lambda: answer(["a.v < b.v", below]), "a ps.udf, or a list of these, got <function"),
        (lambda: answer(7), "or a list of these, got 7"),
    ],
)
def test_what_makes_no_sense(make: Callable[[], Any], told: str) -> None:
    with pytest.raises(ps.QueryError, match=re.escape(told)):
        make()


def test_a_column_that_is_missing() -> None:
    with pytest.raises(ps.SchemaError, match="stream 'b' has no where column 'z'"):
        answer(ps.udf(below, ["a.v", "b.z"]))


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (pa.array([True]), r"returned 1 values; .* of 16 values"),
        (np.ones(3, bool), "returned 3 values"),
        (np.ones((16, 1), bool), "a numpy array of bool with 2 dimensions"),
        (np.ones(16), "a numpy array of float64 with 1 dim"),
        (pa.array(range(16)), "an array of int64"),
        ([True] * 16, "returned a list; it must return a boolean pyarrow.Array"),
        (None, "returned a NoneType"),
        (True, "returned a bool;"),
    ],
)
def test_answers_that_are_none(returned: Any, told: str) -> None:
    def wrong(*_: pa.Array) -> Any:
        return returned

    with pytest.raises(ps.UdfError, match=told) as raised:
        answer(ps.udf(wrong, ["a.v", "b.v"]))
    assert "wrong" in str(raised.value)


def test_a_function_that_fails() -> None:
    """On candidates the join has begun its work and cannot go on; before windows it can."""

    def failing(values: pa.Array, *_: pa.Array) -> pa.Array:
        if state["fails"]:
            raise pa.ArrowInvalid("no such thing")  # which the engine raises on its own, too
        return pa.repeat(True, len(values))

    state = {"fails": True}
    for columns, broken in ((["a.v", "b.v"], True), (["a.v"], False)):
        state["fails"] = True
        query = ps.WindowJoin(TWO, on="k", where=ps.udf(failing, columns), within="10 us")
        join = query.start()
        with pytest.raises(ps.UdfError, match=r"failing' failed on .*: no such thing") as raised:
            join.push(a=TABLE, b=TABLE)
        assert isinstance(raised.value.__cause__, pa.ArrowInvalid)
        state["fails"] = False
        if broken:
            with pytest.raises(ps.StateError, match="interrupted"):
                join.push(a=TABLE)
        else:
            assert join.push(a=TABLE, b=TABLE).num_rows == 16


class Within:
    """A function with a value of its own."""

    def __init__(self, distance: int) -> None:
        self.distance = distance

    def __call__(self, left: pa.Array, right: pa.Array) -> pa.Array:
        return pc.less_equal(pc.abs(pc.subtract(left, right)), self.distance)


def test_a_snapshot_knows_a_function_by_name_and_columns() -> None:
    def query(where: Any) -> ps.WindowJoin:
        return ps.WindowJoin(TWO, on="k", where=where, within="10 us")

    first = query(["a.v > 1", ps.udf(below, ["a.v", "b.v"])])
    assert first.describe()["where"] == ["a.v > 1", "udf below(a.v, b.v)"]
    assert query(ps.udf(Within(3), ["a.v", "b.v"])).describe()["where"] == ["udf Within(a.v, b.v)"]
    join = first.start()
    join.push(a=TABLE)
    data = join.snapshot()
    restored = query(["a.v > 1", ps.udf(below, ["a.v", "b.v"])]).restore(data)
    assert restored.push(b=TABLE).num_rows == 3
    for other in (
        ["a.v > 1", ps.udf(below, ["b.v", "a.v"])],
        ["a.v > 1", ps.udf(Within(3), ["a.v", "b.v"])],
        "a.v > 1",
    ):
        with pytest.raises(ps.SnapshotError, match=r"where was .*udf below\(a.v, b.v\)"):
            query(other).restore(data)


def test_why() -> None:
    where = ["a.v * 2 < b.v AND abs(a.v - b.v) <= 4 AND a.v > 2", ps.udf(Within(3), ["a.v", "b.v"])]
    join = ps.WindowJoin(TWO, on="k", where=where, within="10 us").start()
    join.push(a=TABLE, b=TABLE)

    def told(left: int, right: int) -> ps.Why:
        given = {"a": {"ts": left, "k": 1}, "b": {"ts": right, "k": 1}}
        for name, ts in (("a", left), ("b", right)):
            given[name]["v"] = TABLE["v"][ts - 1].as_py()
        return join.why(given)

    why = told(1, 4)
    assert why.joined is False
    assert why.reasons[0] == "udf Within(a.v, b.v) does not hold: a.v is 3, b.v is 7"
    assert "a.v * 2 < b.v holds: a.v is 3, b.v is 7" in why.reasons
    assert "abs(a.v - b.v) <= 4 holds: a.v is 3, b.v is 7" in why.reasons
    assert told(3, 4).reasons[0] == "a.v * 2 < b.v does not hold: a.v is 5, b.v is 7"
    filtered = told(2, 4)
    assert filtered.reasons[0] == "a.v > 2 does not hold: a.v is None"
    assert "a: it fails a predicate over its stream alone and is not kept" in filtered.reasons
    with pytest.raises(ps.InputError, match="missing \\['v'\\]"):
        join.why(a={"ts": 1, "k": 1}, b={"ts": 4, "k": 1, "v": 7})


def test_why_of_pairs_that_joined_and_of_some_streams() -> None:
    streams = [ps.Stream(name, time="ts") for name in "abc"]
    where = ["a.v < b.v", ps.udf(below, ["b.v", "c.v"])]
    join = ps.WindowJoin(streams, where=where, within="10 us").start()
    one = pa.table({"ts": [1], "v": [1]})
    two, three = (one.set_column(1, "v", pa.array([value])) for value in (2, 3))
    join.push(a=one, b=two, c=three)
    whole = join.why(a={"ts": 1, "v": 1}, b={"ts": 1, "v": 2}, c={"ts": 1, "v": 3})
    assert whole.joined is True
    assert "udf below(b.v, c.v) holds: b.v is 2, c.v is 3" in whole.reasons
    assert not any("key" in reason for reason in whole.reasons)
    part = join.why(a={"ts": 1, "v": 1}, c={"ts": 1})  # no predicate is over these two
    assert part.joined is None
