"""Tuples that wait: in order, counted, and not gone through by every push."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.engine.arrivals import Arrivals
from penstock.engine.sorted_runs import SortedRuns

STEPS = st.lists(
    st.tuples(
        st.sampled_from(("add", "add", "add", "take", "whole")),
        st.lists(st.integers(0, 20), max_size=8),
    ),
    max_size=30,
)


def arrivals(times: list[int], first: int) -> Arrivals:
    """In order of time as a release gives them, numbered as they came; every third has no key."""
    numbers = np.arange(first, first + len(times))
    order = np.argsort(np.array(times, np.int64), kind="stable")
    ts = np.array(times, np.int64)[order]
    numbers = numbers[order]
    mute = numbers % 3 == 0
    return Arrivals(ts, numbers.reshape(1, -1), {"number": pa.array(numbers)}, mute)


@given(STEPS)
def test_runs_give_what_one_sorted_list_gives(steps: list[tuple[str, list[int]]]) -> None:
    runs, model, came = SortedRuns(), [], 0
    for what, times in steps:
        if what == "add":
            runs.add(arrivals(times, came))
            model += [(ts, came + number) for number, ts in enumerate(times)]
            came += len(times)
        elif what == "take":
            before = max(times, default=0)
            taken = runs.take_before(before)
            due = sorted(each for each in model if each[0] < before)
            model = [each for each in model if each[0] >= before]
            assert pairs(taken) == due
        else:
            assert pairs(runs.whole()) == sorted(model)
        assert runs.rows == len(model)
        assert runs.keyed == sum(number % 3 != 0 for _, number in model)
        assert runs.earliest == min((ts for ts, _ in model), default=None)


def pairs(tuples: Arrivals | None) -> list[tuple[int, int]]:
    if tuples is None:
        return []
    assert tuples.columns["number"].to_pylist() == tuples.keys.tolist()
    return list(zip(tuples.ts.tolist(), tuples.keys.tolist(), strict=True))


def test_few_runs_and_few_copies() -> None:
    """However many wait, and however small the pushes."""
    runs, copied = SortedRuns(), 0
    merged = SortedRuns._merged

    def counted(several: Any) -> Arrivals:
        nonlocal copied
        together = merged(several)
        copied += len(together)
        return together

    runs._merged = counted  # type: ignore[method-assign]  # counts what is copied
    for number in range(4_096):
        runs.add(arrivals([number * 7 % 4_096], number))
    assert len(runs._runs) <= 14
    assert copied <= 14 * 4_096


def test_what_has_left_is_not_held() -> None:
    runs = SortedRuns()
    runs.add(arrivals(list(range(10_000)), 0))
    for ts in range(0, 10_000, 100):
        runs.take_before(ts)
        (run,) = runs._runs
        assert run.held <= 2 * max(len(run.tuples), 1) + 100
        assert run.tuples.columns["number"].nbytes <= 8 * run.held


def push_cost(waiting: int, window: str, text: bool) -> float:
    """Seconds of a one-row push while so many tuples wait."""

    def table(first: int, rows: int) -> pa.Table:
        keys = range(first, first + rows)
        named = [f"key {key}" for key in keys] if text else list(keys)
        return pa.table({"ts": keys, "k": named})

    streams = [ps.Stream(name, time="ts", window=window) for name in "ab"]
    join = ps.WindowJoin(streams, on="k").start()
    join.push(a=table(0, waiting))
    rows = [table(waiting + number, 1) for number in range(150)]
    for row in rows[:20]:
        join.push(a=row)
    begin = process_time()
    for row in rows[20:]:
        join.push(a=row)
        join.metrics  # noqa: B018  # it must be cheap, too
    end = process_time()
    assert join.metrics.streams["a"].waiting == waiting + 150
    return (end - begin) / 130


@pytest.mark.parametrize(
    ("window", "text"), [("100 rows", False), ("2 rows per key", True), ("50 arrivals", False)]
)
def test_a_push_costs_the_same_whatever_waits(window: str, text: bool) -> None:
    push_cost(1_000, window, text)  # compile
    few, many = (min(push_cost(n, window, text) for _ in range(2)) for n in (1_000, 300_000))
    assert many <= 2 * few


def met(left: pa.DataType, right: pa.DataType, values: list[Any]) -> int:
    """How many rows of a join by a pair, of which the streams have different types, come out."""
    streams = [ps.Stream(name, time="ts", window="1 rows per key") for name in "ab"]
    join = ps.WindowJoin(streams, on=["k", "l"]).start()
    for name, kind in (("a", left), ("b", right)):
        columns = {"ts": range(len(values)), "k": pa.array(values, kind), "l": [1] * len(values)}
        join.push({name: pa.table(columns)})
    join.finish()
    return join.metrics.produced


def test_zones_of_a_key_may_differ() -> None:
    moments = [datetime(2026, 1, 1), datetime(2026, 1, 2)]
    assert met(pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin"), moments) == 2


def test_the_precision_of_a_key_may_differ_from_that_of_a_stream_to_come() -> None:
    values = [Decimal("1.5"), Decimal("12.5")]
    assert met(pa.decimal128(3, 1), pa.decimal128(30, 1), values) == 2


def test_a_batch_that_is_refused_on_its_way_to_wait_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams = [ps.Stream(name, time="ts", window="2 rows per key") for name in "ab"]
    join = ps.WindowJoin(streams, on="k").start()
    table = pa.table({"ts": [1], "k": ["x"]})
    join.push(a=table, b=table)
    before = join.snapshot()
    with monkeypatch.context() as patched:

        def refuse(*_: Any) -> None:
            raise ps.InputError("a key that cannot be compared")

        patched.setattr("penstock.windows.identity.Identities.words", refuse)
        with pytest.raises(ps.InputError):
            join.push(a=pa.table({"ts": [2], "k": ["y"]}))
    assert join.snapshot() == before
    assert join.push(a=table).num_rows == 0
    assert join.finish().num_rows == 2
