"""What the offline optimum refuses: what is wrong, what was got, and what to do."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.lab.optimum import matched_pairs

TWO = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
QUERY = ps.WindowJoin(TWO, on="k", within="10 us")
TABLE = pa.table({"ts": [1, 2, 3], "k": [1, 1, 2], "v": [1, 2, 3], "text": ["x", "y", "z"]})
TABLES = {"a": TABLE, "b": TABLE}


def optimum(query: ps.WindowJoin = QUERY, tables: Any = TABLES, **given: Any) -> Any:
    return ps.optimum(query, tables, **{"memory": 2, **given})


def with_column(name: str, values: pa.Array | list[Any]) -> dict[str, pa.Table]:
    """The tables, with another column of the first."""
    table = TABLE.drop_columns(name) if name in TABLE.column_names else TABLE
    return {"a": table.append_column(name, pa.array(values)), "b": TABLE}


def test_what_is_not_refused() -> None:
    """Or the others would show nothing."""
    assert optimum().total == 5
    assert optimum(tables=with_column("w", [1, 2, 3]), windows={"a": "w"}).total == 5


@pytest.mark.parametrize("how", ["left", "right", "full", "semi", "anti"])
def test_other_join_types(how: str) -> None:
    query = ps.WindowJoin(TWO, on="k", within="10 us", how=how)
    with pytest.raises(ps.QueryError, match=f"inner joins.*got how='{how}'"):
        optimum(query)


def test_more_than_two_streams() -> None:
    query = ps.WindowJoin([*TWO, ps.Stream("c", time="ts")], on="k", within="10 us")
    with pytest.raises(ps.QueryError, match=r"two streams.*got 3"):
        optimum(query, {**TABLES, "c": TABLE})


def test_times_of_arrival() -> None:
    """A table does not say when its rows were pushed."""
    query = ps.WindowJoin([TWO[0], ps.Stream("b", time=ps.ARRIVAL)], on="k", within="10 us")
    with pytest.raises(ps.QueryError, match=r"'b'.*time="):
        optimum(query)


@pytest.mark.parametrize(
    ("times", "complaint"),
    [
        ([1, 3, 2], "stream 'a'.*order.*row 3.*sort.*'ts'"),
        ([1, None, 3], "'ts' of stream 'a'.*1 null.*filter"),
        ([1, 2, 1 << 62], "'ts' of stream 'a'.*years.*check"),
    ],
)
def test_times(times: Any, complaint: str) -> None:
    with pytest.raises(ps.TimestampError, match=complaint):
        optimum(tables=with_column("ts", times))


@pytest.mark.parametrize(
    ("tables", "error", "complaint"),
    [
        ({"a": TABLE}, ps.InputError, "no table for stream 'b'.*add"),
        ({**TABLES, "c": TABLE}, ps.InputError, "'c'.*the streams are"),
        ([TABLE, TABLE], ps.InputError, "mapping|by stream"),
        ({"a": TABLE, "b": 7}, ps.InputError, "'b' is a int.*pyarrow"),
        ({"a": TABLE, "b": TABLE.drop_columns("k")}, ps.SchemaError, "'b'.*'k'"),
        ({"a": TABLE, "b": TABLE.drop_columns("ts")}, ps.SchemaError, "'b'.*'ts'"),
        (with_column("k", ["x", "y", "z"]), ps.SchemaError, "k.*string.*int64"),
    ],
)
def test_tables(tables: Any, error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        optimum(tables=tables)


@pytest.mark.parametrize(
    "memory",
    [-1, "-5 rows", "1 MiB", "100", "lots", True, 2.5, nan, inf, None, {"a": 1}, 1 << 70],
    ids=repr,
)
def test_memory(memory: Any) -> None:
    with pytest.raises(ps.PlanError, match=r"memory.*rows.*got"):
        optimum(memory=memory)


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        ([(5, 2), (3, 1)], "memory.*order of time"),
        ([(5, 2), (5, 1)], "memory.*order of time"),
        ([], "memory.*time.*got"),
        ([(5, -2)], "memory.*-2"),
        ([(5, "1 MiB")], "memory.*rows.*1 MiB"),
        ([5, 2], "memory.*time.*got"),
        ([(5,)], "memory.*time.*got"),
        ([("soon", 2)], "memory.*'soon'"),
        ([(2.5, 2)], "memory.*2.5"),
        ([(None, 2)], "memory.*None"),
        ([(1 << 70, 2)], "memory.*unit"),
    ],
    ids=repr,
)
def test_memory_that_changes(steps: Any, complaint: str) -> None:
    with pytest.raises((ps.InputError, ps.PlanError), match=complaint):
        optimum(memory=steps)


@pytest.mark.parametrize(
    ("pool", "complaint"),
    [
        ("halves", "pool must be one of.*'shared'.*got 'halves'"),
        ("allocated", "pool.*'shared'.*'allocated'"),
        (None, "pool must be one of"),
        (np.array(["a", "b"]), "pool must be one of"),
        ({"a": 1, "c": 1}, "pool.*each stream.*'c'.*streams are"),
        ({"a": 1}, "pool.*each stream.*streams are"),
        ({"a": -1, "b": 2}, "pool.*0 or more.*-1"),
        ({"a": 0, "b": 0}, "pool.*not all 0"),
        ({"a": "much", "b": 1}, "pool.*numbers.*'much'"),
    ],
    ids=repr,
)
def test_pools(pool: Any, complaint: str) -> None:
    with pytest.raises(ps.PlanError, match=complaint):
        optimum(pool=pool)


@pytest.mark.jit_off
@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("a.v - 2", "value.*0 or more.*-1"),
        (lambda results: np.full(results.num_rows, -1), "value.*0 or more.*-1"),
        (lambda results: np.full(results.num_rows, nan), "value.*0 or more.*nan"),
        (lambda results: np.full(results.num_rows, inf), "value.*inf"),
        (lambda results: pa.nulls(results.num_rows, pa.int64()), "value.*null"),
        (lambda results: np.ones(3), "value.*3.*5"),
        (lambda results: 1, "value.*each result, got 1"),
        (lambda results: None, "value.*each result, got None"),
        (lambda results: ["x"] * results.num_rows, "value.*number.*'x'"),
        ("a.v + b.v", "value.*one stream"),
        ("a.nothing", "value.*'nothing'.*'a'"),
        ("a.text", "value.*number.*string"),
        (lambda results: pa.array(["7"] * results.num_rows), "value.*number.*string"),
        ("a.v +", "value"),
        (7, "value.*7"),
    ],
)
def test_values(value: Any, complaint: str) -> None:
    with pytest.raises(ps.PenstockError, match=complaint):
        optimum(value=value)


@pytest.mark.parametrize("when", ["soon", 2.5, True, [1], 1 << 70], ids=repr)
def test_when_counting_begins(when: Any) -> None:
    with pytest.raises(ps.InputError, match=r"counted_from.*got"):
        optimum(counted_from=when)


@pytest.mark.parametrize("method", ["fastest", None, 7])
def test_unknown_methods(method: Any) -> None:
    with pytest.raises(ps.PlanError, match=r"method must be one of.*per_match.*got"):
        optimum(method=method)


@pytest.mark.jit_off
@pytest.mark.parametrize(
    ("query", "given"),
    [
        (QUERY, {"value": "a.v"}),
        (QUERY, {"windows": {"a": "v"}, "tables": with_column("v", [9, 0, 1])}),
        (ps.WindowJoin(TWO, where="a.k < b.k", within="10 us"), {}),
        (ps.WindowJoin(TWO, on="k", where="a.v < b.v", within="10 us"), {}),
    ],
    ids=["values", "windows of tuples", "no key", "more than a key"],
)
def test_where_tuples_of_a_key_are_not_alike(query: ps.WindowJoin, given: dict[str, Any]) -> None:
    with pytest.raises(ps.PlanError, match=r"'per_arrival'.*got.*use method="):
        optimum(query, method="per_arrival", **given)
    assert optimum(query, method="per_match", **given).total > 0


@pytest.mark.parametrize(
    ("windows", "complaint"),
    [
        ({"c": "v"}, "no stream is called 'c'.*streams are"),
        ({"a": "w"}, "windows=.*'a'.*'w'.*columns are"),
        ({"a": "text"}, "windows=.*'text'.*string"),
        ({"a": "ts", "b": 7}, "windows=.*'b'.*7"),
        ({"a": []}, "windows=.*'a'"),
        ({"a": [(5, "10 us"), (3, "5 us")]}, "windows=.*'a'.*order of time"),
        ({"a": [(5, "5 rows")]}, "windows=.*'a'.*5 rows"),
        ({"a": [(5, "-5 us")]}, "windows=.*'a'.*negative"),
        ({"a": [("soon", "5 us")]}, "windows=.*'a'.*'soon'"),
        ({"a": [7]}, "windows=.*'a'.*7"),
        ("v", "windows.*stream.*'v'"),
    ],
    ids=repr,
)
def test_windows(windows: Any, complaint: str) -> None:
    with pytest.raises(ps.PenstockError, match=complaint):
        optimum(windows=windows)


@pytest.mark.parametrize(
    ("lengths", "complaint"),
    [
        ([1, -2, 3], "'a'.*'w'.*-2"),
        ([1, None, 3], "'a'.*'w'.*null"),
        (pa.array([1, -2, 3], pa.duration("s")), "'a'.*'w'.*-2"),
        ([1.5, 2.0, nan], "'a'.*'w'.*double"),
        (pa.array([1, 2, 3], pa.duration("ns")), "'a'.*'w'.*microseconds"),
        ([1, 2, 1 << 62], "'a'.*'w'.*10,000 years"),
        (pa.array([1, 2, 1 << 63], pa.uint64()), "'a'.*'w'.*microseconds"),
    ],
    ids=str,
)
def test_windows_of_tuples(lengths: Any, complaint: str) -> None:
    with pytest.raises(ps.InputError, match=complaint):
        optimum(tables=with_column("w", lengths), windows={"a": "w"})


@pytest.mark.parametrize(
    "window",
    ["5 rows", "5 rows per key", "5 arrivals", "tumbling 5 us", "unbounded", "since 2026-01-01"],
)
def test_windows_that_are_not_of_time(window: str) -> None:
    query = ps.WindowJoin(TWO, on="k", within=window)
    for windows in ({"a": "v"}, {"a": [(0, "5 us")]}):
        with pytest.raises(ps.QueryError, match=r"windows=.*'a'.*windows? of time"):
            optimum(query, windows=windows)


def test_bounds_on_a_difference_are_no_windows() -> None:
    query = ps.WindowJoin(TWO, on="k", between=("-5 us", "5 us"))
    with pytest.raises(ps.QueryError, match=r"windows=.*windows? of time"):
        optimum(query, windows={"a": "v"})


@pytest.mark.jit_off
def test_a_function_that_fails() -> None:
    with pytest.raises(ps.UdfError, match=r"KeyError.*'a_ts'"):
        optimum(value=lambda results: results["price"])


@pytest.mark.jit_off
def test_more_results_than_can_be_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are counted as they come, not when they are all there."""
    monkeypatch.setattr(matched_pairs, "_MOST", 3)
    monkeypatch.setattr(matched_pairs, "_PIECE", 2)
    with pytest.raises(ps.PlanError, match=r"more than 3 results.*2 of 3 pieces.*a part of it"):
        optimum(method="per_match")
    assert optimum().total == 5


def test_a_column_that_is_missing_is_told_by_those_that_are_given() -> None:
    with pytest.raises(ps.SchemaError, match="'k'") as refused:
        optimum(tables={"a": TABLE.drop_columns("k"), "b": TABLE})
    assert "row number" not in str(refused.value)
