"""Under a limit an answer is a part of the exact one, and what is missing is counted.

Of every policy and pool, predicate, window and index, whatever comes: see `check_limits`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.model.limits import POLICIES, Memory
from support.clauses import EXTRA, LINKED, TERMS, clauses, with_functions
from support.limited import POOLS, QUERY, TWO, check_limits, limited, live_keys, rows_of_keys
from support.oracle import OracleStream, Step
from support.scenario import Scenario, bag, check, expected, feed, run
from support.strategies import INDEXES, KEYS, LongScenario, by_stream, long_scenarios, scenarios

pytestmark = pytest.mark.jit_off

EXAMPLES = settings().max_examples  # of the profile


def some(fraction: int) -> settings:
    """A part of the examples of the profile."""
    return settings(max_examples=max(EXAMPLES // fraction, 3))


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("shed", POLICIES)
@some(10)
@given(st.data())
def test_every_policy_and_pool(shed: str, pool: str, data: st.DataObject) -> None:
    """Disorder, ties, late tuples, windows of no length, any index, watermarks set by hand."""
    check_limits(data.draw(limited(scenarios(), shed, pool)))


@pytest.mark.parametrize("pool", ["allocated", {"a": 3, "b": 1}, {"a": 0, "b": 0.5}], ids=str)
@some(6)
@given(st.data())
def test_memory_in_parts(pool: object, data: st.DataObject) -> None:
    """That are given, or go by how fast streams come; a stream without one holds nothing."""
    shed = "random" if pool == "allocated" else None
    drawn = scenarios(restarts=True)
    if isinstance(pool, dict):
        drawn = drawn.filter(lambda each: len(each.streams) == len(pool))
    check_limits(data.draw(limited(drawn, shed, pool, changes=True)))


@pytest.mark.parametrize("key", KEYS)
@some(20)
@given(st.data())
def test_every_kind_of_key(key: str, data: st.DataObject) -> None:
    """Ghosts of equal hashes are told apart by their values, as tuples are."""
    check_limits(data.draw(limited(scenarios(key))))


@some(3)
@given(limited(scenarios(in_time=True)))
def test_input_that_is_not_late(scenario: Scenario) -> None:
    """Nothing leaves but what is shed."""
    check_limits(scenario)


@pytest.mark.parametrize("restarts", [False, True], ids=["in one go", "restored"])
@some(4)
@given(st.data())
def test_windows_of_every_kind(restarts: bool, data: st.DataObject) -> None:
    """Slots, since, unbounded and bounds on the difference, lagged ones included."""
    drawn = scenarios(windows=True, counted=False, restarts=restarts)
    check_limits(data.draw(limited(drawn, changes=restarts)))


@some(5)
@given(limited(scenarios(idle=True)))
def test_streams_that_fall_idle_and_come_back(scenario: Scenario) -> None:
    check_limits(scenario)


@some(5)
@given(limited(scenarios(resizes=True)))
def test_windows_that_get_another_length(scenario: Scenario) -> None:
    """Ghosts end with the tuples they were."""
    check_limits(scenario)


@some(5)
@given(limited(scenarios(restarts=True)))
def test_saved_and_restored_anywhere(scenario: Scenario) -> None:
    """Ghosts and what is lost are saved too."""
    check_limits(scenario)


@some(5)
@given(limited(scenarios(restarts=True), changes=True))
def test_limits_that_change(scenario: Scenario) -> None:
    """Smaller and larger, in mid-run."""
    check_limits(scenario)


@pytest.mark.parametrize("windows", [False, True], ids=["time", "every window"])
@some(5)
@given(st.data())
def test_any_clause(windows: bool, data: st.DataObject) -> None:
    """Bands, order, equality of some columns, filters, and their mixture."""
    check_limits(data.draw(limited(clauses(windows=windows, counted=False), changes=True)))


@pytest.mark.parametrize("linked", LINKED)
@some(15)
@given(st.data())
def test_different_attributes(linked: str, data: st.DataObject) -> None:
    terms = {**TERMS, **EXTRA}
    chosen = {text: terms[text] for text in LINKED[linked]}
    check_limits(data.draw(limited(clauses(windows=False, terms=chosen))))


@some(5)
@given(st.booleans().flatmap(lambda w: limited(with_functions(windows=w, counted=False))))
def test_functions(scenario: Scenario) -> None:
    """They are asked about ghosts, too."""
    check_limits(scenario)


@pytest.mark.parametrize("kind", ["time", "every window", "clauses"])
@some(5)
@given(st.data())
def test_semi_joins(kind: str, data: st.DataObject) -> None:
    """A left tuple that has met only ghosts is lost once it has expired."""
    windows, restarts = kind == "every window", data.draw(st.booleans())
    drawn = (
        clauses(windows=data.draw(st.booleans()), counted=False, streams_at_most=2)
        if kind == "clauses"
        else scenarios(how="semi", windows=windows, counted=False, restarts=restarts)
    )
    check_limits(data.draw(limited(drawn.map(lambda each: replace(each, how="semi")))))


@some(5)
@given(limited(scenarios(restarts=True), ghosts=True, changes=True))
def test_few_ghosts(scenario: Scenario) -> None:
    """Exact until one more would have to be remembered, within an interval from then on."""
    check_limits(scenario)


@settings(max_examples=max(EXAMPLES // 25, 3), suppress_health_check=list(HealthCheck))
@given(limited(long_scenarios().map(LongScenario.scenario)), st.sampled_from((1, 7, 40, 150)))
def test_hundreds_of_rows(scenario: Scenario, rows: int) -> None:
    """Enough for windows and indexes to grow, turn over and be cleared of holes."""
    limits = replace(scenario.limits, memory=f"{rows} rows")
    check_limits(replace(scenario, limits=limits))


@pytest.mark.parametrize("pool", POOLS)
@some(8)
@given(st.data())
def test_a_limit_that_is_large_enough_takes_nothing_away(pool: str, data: st.DataObject) -> None:
    semi = data.draw(st.booleans())
    drawn = scenarios(how="semi" if semi else "inner", windows=True, counted=False, restarts=True)
    scenario = data.draw(limited(drawn, pool=pool))
    limits = replace(scenario.limits, memory="200 rows")
    scenario = replace(scenario, limits=limits)
    check(scenario)
    for join, _ in feed(scenario):
        metrics = join.metrics
        assert (metrics.lost, metrics.shed, metrics.ghosts, metrics.recall) == (0, 0, 0, 1.0)


@some(6)
@given(limited(st.booleans().flatmap(lambda w: scenarios(windows=w, counted=False))))
def test_with_no_room_an_instant_still_meets_itself(scenario: Scenario) -> None:
    """Tuples of one batch and one time meet before any is dropped, and nothing else does."""
    scenario = replace(scenario, limits=replace(scenario.limits, memory=Memory(rows=0)))
    outcomes = check_limits(scenario)
    for number, want in enumerate(expected(scenario)):
        of_step = {row["id"] for rows in scenario.steps[number].rows.values() for row in rows}
        at_once = [
            scenario.given((rows, ts))
            for rows, ts in want.results
            if all(row and row["ts"] == ts and row["id"] in of_step for row in rows)
        ]
        assert bag(outcomes[number].results) == bag(at_once), f"in step {number}"


@some(10)
@given(limited(scenarios(restarts=True), changes=True))
def test_the_same_seed_gives_the_same_answer(scenario: Scenario) -> None:
    assert repr(run(scenario)) == repr(run(scenario))


@pytest.mark.parametrize("loss", ["sampled", "off"])
@some(10)
@given(st.data())
def test_what_is_shed_does_not_depend_on_how_it_is_counted(loss: str, data: st.DataObject) -> None:
    scenario = data.draw(limited(scenarios(restarts=True), changes=True))
    other = replace(scenario, limits=replace(scenario.limits, loss=loss))
    # In this order: the results of a step come out in the same order, too.
    assert repr(check_limits(other)) == repr(check_limits(scenario))


def test_another_seed_gives_another_answer() -> None:
    rows = [
        (name, {"ts": ts, "k": 1, "id": 2 * ts + number, "note": None})
        for ts in range(40)
        for number, name in enumerate("ab")
    ]
    scenario = Scenario([OracleStream(name, 20) for name in "ab"], [Step(by_stream(rows, "ab"))])
    answers = {
        repr(run(replace(scenario, limits=ps.Limits("9 rows", shed="random", seed=seed))))
        for seed in range(5)
    }
    assert len(answers) > 1


@settings(max_examples=max(EXAMPLES // 15, 3), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_bytes(data: st.DataObject) -> None:
    """Tuples, indexes, holes, statistics and ghosts together, from what an empty join needs on."""
    long = data.draw(long_scenarios())
    scenario = with_long_notes(long.scenario(), data.draw(st.sampled_from((0, 10, 300))))
    options = {
        "shed": data.draw(st.sampled_from(list(POLICIES))),
        "pool": data.draw(st.sampled_from(POOLS)),
        "loss": data.draw(st.sampled_from(("exact", "exact", "sampled", "off"))),
        "statistics": "4 KiB",
    }
    least = least_bytes(scenario, options)
    room = data.draw(st.sampled_from((0, 100, 1 << 12, 1 << 14, 1 << 16)))
    check_limits(replace(scenario, limits=ps.Limits(f"{least + room} B", **options)))


def with_long_notes(scenario: Scenario, times: int) -> Scenario:
    """The same with notes so many times as long."""
    steps = [
        replace(
            step,
            rows={
                name: [{**row, "note": row["note"] and row["note"] * times} for row in rows]
                for name, rows in step.rows.items()
            },
        )
        for step in scenario.steps
    ]
    return replace(scenario, steps=steps)


def least_bytes(scenario: Scenario, options: dict[str, str]) -> int:
    """As many as a join needs that holds nothing: it says so when it is given less."""
    schemas = {stream.name: scenario.schema(stream) for stream in scenario.streams}
    least = 0
    for plan in (scenario.indexes, *scenario.restarts.values()):
        with pytest.raises(ps.PlanError) as raised:
            scenario.query.start(schemas=schemas, limits=ps.Limits("1 B", **options), indexes=plan)
        (told,) = (word for word in str(raised.value).split() if word.replace(",", "").isdigit())
        least = max(least, int(told.replace(",", "")))
    return least


# Some plain cases, to read.


@pytest.mark.parametrize(("memory", "parts"), [("5 rows", (3, 2)), ("1 rows", (1, 0))])
def test_a_fixed_pool_is_divided_evenly(memory: str, parts: tuple[int, int]) -> None:
    join = QUERY.start(limits=ps.Limits(memory, shed="random", pool="fixed"))
    join.push(a=rows_of_keys(0, *range(9)), b=rows_of_keys(0, *range(9)))
    assert tuple(each.live for each in join.metrics.streams.values()) == parts


def test_a_shared_pool_goes_to_who_comes() -> None:
    join = QUERY.start(limits=ps.Limits("5 rows", shed="random"))
    join.push(a=rows_of_keys(0, *range(9)))
    assert join.metrics.streams["a"].live == 5


def test_another_limit_holds_at_once() -> None:
    join = QUERY.start(limits=ps.Limits("8 rows", shed="oldest"))
    join.push(a=rows_of_keys(0, *[1] * 8))
    join.limit(memory="3 rows")
    assert join.metrics.live == 3
    assert join.metrics.shed == 5
    assert sorted(join.push(b=rows_of_keys(10, 1))["a_ts"].to_pylist()) == [5, 6, 7]
    assert (join.metrics.produced, join.metrics.lost) == (3, 5)
    join.limit(memory="100 rows")
    join.push(a=rows_of_keys(20, *[1] * 50))
    assert join.metrics.shed == 6
    join.limit(memory=Memory(rows=0))
    assert join.metrics.live == 0


def test_a_tuple_that_matched_is_not_shed_again() -> None:
    """A semi join keeps no left tuple that has matched: the oldest that is kept goes."""
    query = ps.WindowJoin(TWO, on="k", within="100 us", how="semi")
    join = query.start(limits=ps.Limits("1 rows", shed="oldest"))
    join.push(b=pa.table({"ts": [203], "k": [1]}))
    join.push(a=pa.table({"ts": [194, 194], "k": [1, 2]}))
    assert (join.metrics.produced, join.metrics.shed) == (1, 1)
    assert live_keys(join, 0) == []
    join.finish()
    assert join.metrics.live == 0


def test_left_tuples_whose_partners_come_before_them_are_lost_at_once() -> None:
    """Their windows have ended when they come: they have left before it is known that they have
    met ghosts."""
    query = ps.WindowJoin(TWO, on="k", between=("-40 us", "-8 us"), how="semi")
    join = query.start(limits=ps.Limits(Memory(rows=0), shed="random"))
    join.push(b=pa.table({"ts": [0], "k": [1]}), a=pa.table({"ts": [20] * 3, "k": [1] * 3}))
    join.finish()
    assert (join.metrics.produced, join.metrics.lost) == (0, 3)


def test_a_restored_join_has_lost_what_it_had() -> None:
    limits = ps.Limits("3 rows", shed="oldest")
    join = QUERY.start(limits=limits)
    join.push(a=rows_of_keys(0, *[1] * 8))
    join.push(b=rows_of_keys(10, 1))
    before = join.metrics
    restored = QUERY.restore(join.snapshot(), limits=limits)
    after = restored.metrics
    assert (after.lost, after.shed, after.ghosts) == (before.lost, before.shed, before.ghosts)
    assert (after.recall, after.lost_by) == (before.recall, before.lost_by)
    assert after.streams == before.streams
    for each in (join, restored):
        each.push(b=rows_of_keys(11, 1))
        assert each.metrics.produced + each.metrics.lost == 16


@pytest.mark.parametrize("index", INDEXES)
def test_one_hot_key_in_a_long_batch(index: str) -> None:
    """The limit holds within a batch, too: what is shed early does not match what comes late."""
    names = ("a", "b")
    rows = [
        (name, {"ts": ts, "k": 1, "id": 2 * ts + number, "note": None})
        for ts in range(30)
        for number, name in enumerate(names)
    ]
    streams = [OracleStream(name, 15) for name in names]
    step = [Step(by_stream(rows, names))]
    for shed in POLICIES:
        limits = ps.Limits("6 rows", shed=shed)
        scenario = Scenario(streams, step, indexes=index, limits=limits)
        outcomes = check_limits(scenario)
        # No arrival meets more than all that is kept, and its own instant.
        met = Counter(
            max(row["id"] for row in rows) for outcome in outcomes for rows, _ in outcome.results
        )
        assert max(met.values()) <= 6 + 1
