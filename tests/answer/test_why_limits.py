"""`why` tells of a tuple that was shed: that it was, when, and for what."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

import penstock as ps
from penstock.model.limits import Memory
from support.limited import limited
from support.scenario import bag, combinations, table
from support.strategies import scenarios

pytestmark = pytest.mark.jit_off

TWO = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
QUERY = ps.WindowJoin(TWO, on="k", within="10 us")
NONE = Memory(rows=0)


def rows(*pairs: tuple[int, int]) -> pa.Table:
    ts, k = zip(*pairs, strict=True)
    return pa.table({"ts": ts, "k": k})


def why(join: ps.Join, a: tuple[int, int], b: tuple[int, int]) -> ps.Why:
    return join.why(a=dict(zip(("ts", "k"), a, strict=True)), b={"ts": b[0], "k": b[1]})


@pytest.mark.parametrize("shed", ["oldest", "random", "prob", "life"])
def test_a_tuple_that_was_shed(shed: str) -> None:
    join = QUERY.start(limits=ps.Limits(NONE, shed=shed))
    join.push(a=rows((1, 1)))
    join.push(b=rows((3, 1)))
    answer = why(join, (1, 1), (3, 1))
    assert answer.joined is False
    (told,) = (reason for reason in answer.reasons if reason.startswith("a:"))
    assert "shed" in told
    assert shed in told
    assert "0 rows" in told
    assert join.metrics.lost == 1


def test_the_one_that_is_kept_and_the_one_that_is_not() -> None:
    join = QUERY.start(limits=ps.Limits("1 rows", shed="oldest"))
    join.push(a=rows((1, 1), (2, 1)))
    assert "shed" in str(why(join, (1, 1), (3, 1)))
    assert "a: has been shed" not in str(why(join, (2, 1), (3, 1)))
    assert why(join, (2, 1), (2, 1)).joined is not True  # b has not come


def test_a_pair_that_joined_before_one_was_shed() -> None:
    """Nothing may claim that it did not join."""
    join = QUERY.start(limits=ps.Limits(NONE, shed="oldest"))
    assert join.push(a=rows((1, 1)), b=rows((1, 1))).num_rows == 1
    answer = why(join, (1, 1), (1, 1))
    assert answer.joined is not False
    assert "shed" in str(answer)


def test_a_tuple_of_another_key_was_shed() -> None:
    join = QUERY.start(limits=ps.Limits("1 rows", shed="oldest"))
    join.push(a=rows((1, 2), (1, 1)))
    join.push(b=rows((2, 2)))
    answer = why(join, (1, 1), (2, 2))
    assert answer.joined is False
    assert "keys differ" in str(answer)


def test_a_tuple_that_was_never_there() -> None:
    join = QUERY.start(limits=ps.Limits("1 rows", shed="oldest"))
    join.push(a=rows((1, 1), (2, 1)))
    assert "a: was shed" not in str(why(join, (1, 9), (3, 9)))


def test_without_a_ledger_it_may_have_been_shed() -> None:
    """Nothing is remembered of it, so nothing may claim that it never came."""
    join = QUERY.start(limits=ps.Limits(NONE, shed="oldest", loss="off"))
    join.push(a=rows((1, 1)))
    answer = why(join, (1, 1), (3, 1))
    assert "shed" in str(answer)
    assert answer.joined is not True


def test_after_a_restart() -> None:
    limits = ps.Limits(NONE, shed="oldest")
    join = QUERY.start(limits=limits)
    join.push(a=rows((1, 1)))
    restored = QUERY.restore(join.snapshot(), limits=limits)
    restored.push(b=rows((3, 1)))
    assert "shed" in str(why(restored, (1, 1), (3, 1)))


def test_why_changes_nothing() -> None:
    join = QUERY.start(limits=ps.Limits("1 rows", shed="random"))
    join.push(a=rows((1, 1), (2, 1)), b=rows((2, 1)))
    before, data = join.metrics, join.snapshot()
    why(join, (1, 1), (2, 1))
    assert join.metrics == before
    assert join.snapshot() == data


@pytest.mark.parametrize("loss", ["exact", "few ghosts", "sampled", "off"])
@settings(max_examples=max(settings().max_examples // 8, 3))
@drawn(st.data())
def test_what_is_said_is_so(loss: str, data: st.DataObject) -> None:
    """What is said to have joined has come out, and what is said not to have has not."""
    scenario = data.draw(limited(scenarios(windows=True, counted=False), ghosts=loss != "exact"))
    if loss in ("sampled", "off"):
        scenario = replace(scenario, limits=replace(scenario.limits, loss=loss))
    schemas = {stream.name: scenario.schema(stream) for stream in scenario.streams}
    join = scenario.query.start(schemas=schemas, limits=scenario.limits)
    pushed: dict[str, list[Any]] = {name: [] for name in schemas}
    came: list[str] = []
    for step in scenario.steps:
        for name, ts in step.advance.items():
            join.advance(name, scenario.instant(ts))
        batch = {name: table(schemas[name], rows) for name, rows in step.rows.items()}
        came += bag([rows for rows, _ in combinations(join.push(batch), schemas)])
        for name, rows in step.rows.items():
            pushed[name] += rows
    for combination in list(product(*pushed.values()))[:60]:
        asked = {
            name: table(schemas[name], [row]).to_pylist()[0]
            for name, row in zip(schemas, combination, strict=True)
        }
        joined = join.why(asked).joined
        (text,) = bag([tuple(dict(row) for row in combination)])
        assert joined is not True or text in came
        assert joined is not False or text not in came


def test_a_tuple_that_did_not_look() -> None:
    """What comes after it meets it."""
    join = QUERY.start(limits=ps.Limits(service_rate=1))
    join.push(a=rows((1, 1)))
    join.push(b=rows((2, 1)))
    assert join.metrics.unprobed == 1
    answer = why(join, (1, 1), (2, 1))
    assert answer.joined is None
    assert "b: has arrived and is kept, but did not look for partners" in str(answer)


def test_tuples_that_did_not_look_have_not_met() -> None:
    """Not even after a restart."""
    join = QUERY.start(limits=ps.Limits(service_rate=1))
    join.push(a=rows((1, 7)))
    join.push(a=rows((2, 1)), b=rows((3, 1)))
    assert join.metrics.unprobed == 2
    again = QUERY.restore(join.snapshot(), limits=ps.Limits(service_rate=1))
    for each in (join, again):
        assert why(each, (2, 1), (3, 1)).joined is False


def test_a_tuple_that_was_dropped_when_it_came() -> None:
    join = QUERY.start(limits=ps.Limits(service_rate=1, drop="tuple"))
    join.push(a=rows((1, 1)))
    join.push(b=rows((2, 1)))
    answer = why(join, (1, 1), (2, 1))
    assert answer.joined is False
    assert "b: was dropped when it came" in str(answer)
    assert "service_rate=1" in str(answer)


@pytest.mark.many_rows
def test_no_rate_that_cannot_be() -> None:
    """Each key comes once: whatever such keys are worth, nobody says that one comes often."""
    query = ps.WindowJoin(TWO, on="k", within="1 ms")
    join = query.start(limits=ps.Limits("50 rows", shed="prob"))
    for start in range(0, 1000, 100):
        ts = np.arange(start, start + 100)
        join.push(a=pa.table({"ts": ts, "k": ts}), b=pa.table({"ts": ts, "k": ts - 80}))
    said = [str(join.why(a={"ts": ts, "k": ts}, b={"ts": ts, "k": ts})) for ts in range(400, 950)]
    told = [float(each) for text in said for each in re.findall(r"often, (\S+) of them", text)]
    assert any("least often" in text for text in said)
    assert max(told, default=0.0) <= 2.0
