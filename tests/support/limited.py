"""Scenarios under limits, and what must be so of every one of them, after every step.

The oracle knows no limits: what it answers is what was due. What came out is a part of that, and
what did not is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, inf
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import penstock as ps
from penstock.model.limits import POLICIES, Memory, parse_memory
from support.oracle import Outcome
from support.scenario import Scenario, bag, expected, feed

POOLS = ("shared", "fixed")
TWO = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
QUERY = ps.WindowJoin(TWO, on="k", within="100 us")
SERVICE_RATES = (1, 5e4, 2e5, 5e5, 1e6)  # about a million come in a second of event time
ROWS = (0, 1, 1, 2, 3, 5, 8, 13)  # 18 to 36 come in most scenarios
BY_FREQUENCY = ("prob", "life", "expected_life")  # these can be told what a result is worth


def rows_of_keys(start: int, *keys: int) -> pa.Table:
    """One a microsecond."""
    return pa.table({"ts": range(start, start + len(keys)), "k": keys})


def live_keys(join: ps.Join, stream: int) -> list[int]:
    return sorted(join.driver.windows.keys(stream).tolist())


def policies_of(scenario: Scenario) -> list[str]:
    """Those that the windows of a scenario allow: some need windows that end."""
    endless = any(each.window_us == inf and not each.slot_us for each in scenario.streams)
    return [name for name, policy in POLICIES.items() if not (policy.needs_end and endless)]


@st.composite
def limited(
    draw: st.DrawFn,
    scenarios: st.SearchStrategy[Scenario],
    shed: str | None = None,
    pool: Any = None,
    *,
    ghosts: bool = False,
    changes: bool = False,
    drop: str | None = None,
) -> Scenario:
    """A scenario with a limit of rows. shed, pool: any when not given. ghosts: only so many are
    remembered. changes: the limit is another one after some steps. drop: what a service rate
    drops; there may then be no limit of rows."""
    scenario = draw(scenarios)
    shed = shed or draw(st.sampled_from(policies_of(scenario)))
    # None at all is refused of a user, but is what a part of a limit may be.
    rows = st.sampled_from(ROWS).map(Memory)
    options: dict[str, Any] = {}
    if shed in BY_FREQUENCY and draw(st.booleans()):
        # Of a semi join only columns of the left are kept.
        values = ("a.id", "a.id * 2 + 1", "b.id")[: 2 if scenario.how == "semi" else 3]
        options["value"] = draw(st.sampled_from(values))
    if shed != "random" and scenario.key_types == (pa.int64(),) and draw(st.booleans()):
        weights = st.dictionaries(st.sampled_from((1, 2, 3, 7, -1)), st.sampled_from((0, 1, 2.5)))
        options["frequencies"] = {draw(st.sampled_from("ab")): draw(weights)}
    if drop is not None:
        options |= {"drop": drop, "service_rate": draw(st.sampled_from(SERVICE_RATES))}
        rows = st.none() if not changes and draw(st.booleans()) else rows
    memory = draw(rows)
    if memory is None:
        options.pop("value", None)
    limits = ps.Limits(
        memory=memory,
        shed=shed,
        pool=pool or draw(st.sampled_from(POOLS)),
        seed=draw(st.integers(0, 3)),
        ghosts=draw(st.sampled_from((1, 2, 4))) if ghosts else None,
        statistics=draw(st.sampled_from(("4 KiB", "256 KiB"))),
        **options,
    )
    memory = {}
    if changes and scenario.steps:
        when = st.integers(0, len(scenario.steps) - 1)
        memory = draw(st.dictionaries(when, rows, min_size=1, max_size=4))
    return replace(scenario, limits=limits, memory=memory)


def share(memory: Memory, pool: Any, names: Sequence[str], which: int) -> float:
    """How many rows a stream may hold."""
    assert memory.rows is not None
    if pool in ("shared", "allocated"):
        return memory.rows
    if pool == "fixed":
        return memory.rows // len(names) + (which < memory.rows % len(names))
    return ceil(memory.rows * pool.get(names[which], 0) / sum(pool.values()))


def check_limits(scenario: Scenario) -> list[Outcome]:
    """Under its limits a scenario is answered in part, and what is missing is counted.

    What came out in every step, for who wants to know more.
    """
    limits = scenario.limits
    assert limits is not None
    memory, outcomes = limits.memory, []
    for number, (join, outcome, due, got) in enumerate(in_step(scenario)):
        where = f"in step {number}"
        metrics = join.metrics
        assert got <= due, f"{where}, results that are not due: {got - due}"
        assert metrics.produced == got.total(), where
        if number in scenario.memory:
            memory = parse_memory(scenario.memory[number], "memory")
        if memory.bytes is not None:
            assert metrics.bytes <= memory.bytes, where
        elif memory.rows is not None:
            assert metrics.live <= memory.rows, where
            for which, stream in enumerate(metrics.streams.values()):
                room = share(memory, limits.pool, scenario.query.names, which)
                assert stream.live <= room, where
        check_books(metrics, where)
        check_ledger(scenario, metrics, due.total(), where, ended=outcome.watermark == inf)
        outcomes.append(outcome)
    return outcomes


def in_step(scenario: Scenario) -> Iterator[tuple[ps.Join, Outcome, Counter[str], Counter[str]]]:
    """After every step and at the end: the join, what the step brought, and what was due and
    what came out so far. Late tuples are the oracle's, or counted as forgotten."""
    wanted = expected(scenario)
    due: Counter[str] = Counter()
    got: Counter[str] = Counter()
    forgotten = dict.fromkeys(scenario.query.names, 0)
    for number, (join, outcome) in enumerate(feed(scenario)):
        if number < len(wanted):
            want = wanted[number]
            due.update(bag([scenario.given(each) for each in want.results]))
            assert outcome.watermark == want.watermark, f"in step {number}"
            for stream in scenario.streams:
                late = Counter(bag(want.late.get(stream.name, [])))
                kept = Counter(bag(outcome.late[stream.name]))
                before = forgotten[stream.name]
                forgotten[stream.name] = join.metrics.streams[stream.name].late_forgotten
                assert kept <= late, f"in step {number}"
                missing = late.total() - kept.total()
                assert missing == forgotten[stream.name] - before, f"in step {number}"
        got.update(bag(outcome.results))
        yield join, outcome, due, got


def check_books(metrics: ps.Metrics, where: str) -> None:
    """Every tuple is somewhere, and the parts of what was lost are the whole of it."""
    for name, each in metrics.streams.items():
        somewhere = (
            each.late + each.keyless + each.filtered + each.waiting
            + each.live + each.expired + each.shed
        )  # fmt: skip
        assert each.arrived == somewhere, f"{where}, stream {name}: {each}"
        assert min(each.live, each.expired, each.shed, each.lost, each.unprobed) >= 0, where
    assert metrics.shed == sum(each.shed for each in metrics.streams.values()), where
    lost = metrics.lost or 0  # None when it is not counted
    assert lost == sum(each.lost for each in metrics.streams.values()), where
    assert lost == sum(metrics.lost_by.values()), where
    due = metrics.produced + lost
    recall = metrics.produced / due if due else 1.0
    assert metrics.recall == (None if metrics.lost is None else recall), where
    if metrics.lost is None:
        assert metrics.recall_interval is None, where
    elif metrics.lost_interval is None:
        assert metrics.recall_interval == (recall, recall), where
    else:
        low, high = metrics.recall_interval
        assert 0 <= low <= recall <= high <= 1, where


def check_ledger(
    scenario: Scenario, metrics: ps.Metrics, due: int, where: str, *, ended: bool
) -> None:
    """What came out and what is lost are all that was due, to the result, while no ghost had to
    be forgotten. Of a semi join it takes the end to know that a left tuple has met only ghosts."""
    limits = scenario.limits
    assert limits is not None
    if limits.ghosts is not None:
        assert metrics.ghosts <= limits.ghosts, where
    if limits.loss == "off":
        assert (metrics.lost, metrics.lost_interval, metrics.ghosts) == (None, None, 0), where
    if limits.loss != "exact":
        return
    known = metrics.produced + metrics.lost
    if limits.ghosts is None and limits.memory.bytes is None:
        assert metrics.lost_interval is None, f"{where}: nothing forces the ledger to sample"
    if metrics.lost_interval is not None:
        low, high = metrics.lost_interval
        assert 0 <= low <= metrics.lost <= high, where
    elif scenario.how == "semi" and not ended:
        assert known <= due, where
    else:
        assert known == due, f"{where}: {metrics.produced} and {metrics.lost} lost of {due}"
