"""Left, right, full, semi and anti joins give the answer that the oracle defines."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock as ps
from support.clauses import clauses
from support.oracle import OracleStream, Step
from support.scenario import Scenario, check
from support.strategies import INDEXES, LAGGED, LongScenario, long_scenarios, scenarios

pytestmark = pytest.mark.jit_off

EXAMPLES = settings().max_examples  # of the profile
OTHERS = ("left", "right", "full", "semi", "anti")


@pytest.mark.parametrize("how", OTHERS)
@settings(max_examples=EXAMPLES // 2)
@given(st.data())
def test_any_input(how: str, data: st.DataObject) -> None:
    """Late tuples, tuples without a key, disorder, any batches, saved and restored anywhere."""
    check(data.draw(scenarios(how=how, restarts=True)))


@pytest.mark.parametrize("how", OTHERS)
@settings(max_examples=EXAMPLES // 2)
@given(st.data())
def test_windows_of_every_kind(how: str, data: st.DataObject) -> None:
    check(data.draw(scenarios(how=how, windows=True, restarts=True)))


@pytest.mark.parametrize("how", OTHERS)
@settings(max_examples=EXAMPLES // 4)
@given(st.data())
def test_streams_that_fall_idle(how: str, data: st.DataObject) -> None:
    """The wall clock alone can let a tuple go."""
    check(data.draw(scenarios(how=how, idle=True)))


@pytest.mark.parametrize("how", OTHERS)
@settings(max_examples=EXAMPLES // 4)
@given(st.data())
def test_residual_predicates(how: str, data: st.DataObject) -> None:
    """Equal keys are not yet a match: a tuple whose candidates all fail comes out alone."""
    scenario = data.draw(clauses(windows=data.draw(st.booleans()), streams_at_most=2))
    check(replace(scenario, how=how))


@settings(max_examples=EXAMPLES // 4, suppress_health_check=list(HealthCheck))
@given(long_scenarios(), st.sampled_from(OTHERS))
def test_hundreds_of_rows(long: LongScenario, how: str) -> None:
    """Enough for rings to wrap, grow and get holes."""
    check(replace(replace(long, n=2).scenario(), how=how))


@pytest.mark.parametrize("how", ["inner", *OTHERS])
@settings(max_examples=EXAMPLES // 4, suppress_health_check=list(HealthCheck))
@given(
    long_scenarios(
        n=st.just(2),
        between=st.sampled_from(LAGGED),
        keys=st.sampled_from((100, 10_000)),
        rows=st.sampled_from((150, 200)),
        batch_rows=st.sampled_from((35, 120)),
        lateness_us=st.sampled_from((0, 5)),
        disorder=st.sampled_from((0, 5)),
        default_indexes=st.just(True),
    )
)
def test_one_stream_comes_before_the_other(how: str, long: LongScenario) -> None:
    """A window that ends before its own tuple, in chunks in which the directory grows."""
    check(replace(long.scenario(), how=how))


@pytest.mark.parametrize("how", ["left", "right", "full", "anti"])
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("rows", [37, 100])
def test_what_has_not_been_placed_does_not_come_out(rows: int, index: str, how: str) -> None:
    """Every tuple of the lagging stream has its partner; the directory is full in mid-chunk."""
    lagging, ahead = ("b", "a") if how == "right" else ("a", "b")
    keys = [*range(rows), *range(1_000, 1_000 + rows)]
    times = [*range(rows), *range(600, 600 + rows)]
    orders = [
        {"ts": ts, "k": key, "id": number, "note": None}
        for number, (ts, key) in enumerate(zip(times, keys, strict=True))
    ]
    shipped = [{**row, "ts": row["ts"] + 600, "note": "x"} for row in orders[:rows]]
    bounds = (500, 1000) if lagging == "b" else (-1000, -500)
    scenario = Scenario(
        [OracleStream("a", bounds[1]), OracleStream("b", -bounds[0])],
        [Step({ahead: orders[:rows]}), Step({lagging: shipped, ahead: orders[rows:]})],
        indexes=index,
        between=bounds,
        how=how,
    )
    check(scenario)


def of(how: str, within: str = "5 us", **more: object) -> ps.WindowJoin:
    two = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    return ps.WindowJoin(two, on="k", within=within, how=how, **more)


def test_a_left_row_waits_for_its_window_and_no_longer() -> None:
    join = of("left").start()
    one = pa.table({"ts": [10], "k": [1]})
    assert join.push(a=one, b=pa.table({"ts": [10], "k": [2]})).num_rows == 0
    assert join.push(a=pa.table({"ts": [15], "k": [3]})).num_rows == 0
    assert join.push(b=pa.table({"ts": [15], "k": [3]})).num_rows == 1
    rows = join.push(a=pa.table({"ts": [16], "k": [9]}), b=pa.table({"ts": [16], "k": [8]}))
    assert rows.to_pylist() == [{"a_ts": 10, "a_k": 1, "b_ts": None, "b_k": None, "event_time": 10}]


def test_a_semi_join_keeps_no_matched_left_row() -> None:
    join = of("semi", "1 hour").start()
    many = pa.table({"ts": [0] * 1000, "k": range(1000)})
    assert join.push(a=many).num_rows == 0
    assert join.push(b=many.slice(0, 600)).num_rows == 600
    assert join.metrics.streams["a"].live == 400
    assert join.push(b=many.slice(0, 600)).num_rows == 0
    assert join.push(a=many.slice(0, 600)).num_rows == 600
    assert join.metrics.streams["a"].live == 400
    assert join.push(b=many).num_rows == 400
    assert join.metrics.streams["a"].live == 0


def test_an_anti_join_keeps_no_matched_left_row() -> None:
    join = of("anti", "1 hour").start()
    many = pa.table({"ts": [0] * 1000, "k": range(1000)})
    join.push(a=many, b=many.slice(0, 900))
    assert join.metrics.streams["a"].live == 100
    assert sorted(join.finish()["a_k"].to_pylist()) == list(range(900, 1000))


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_only_the_left_comes_out(how: str) -> None:
    join = of(how).start()
    table = pa.table({"ts": [1], "k": [1]})
    assert join.push(a=table, b=table).schema.names == ["a_ts", "a_k", "event_time"]


def test_what_is_outranked_comes_out_when_the_directory_grows_in_mid_chunk() -> None:
    streams = [ps.Stream(name, time="ts", window="1 rows per key") for name in "ab"]
    join = ps.WindowJoin(streams, on="k", how="left").start()
    keys = [-2, 0, 0, *range(1000, 2000)]
    first = join.push(
        a=pa.table({"ts": range(1003), "k": keys}), b=pa.table({"ts": [1003], "k": [-1]})
    )
    assert first["a_ts"].to_pylist() == [1]
    second = pa.table({"ts": range(2000, 5000), "k": range(2000, 5000)})
    assert join.push(a=second, b=pa.table({"ts": [5000], "k": [-1]})).num_rows == 0
    assert join.finish().num_rows == 4002


def test_a_stream_of_which_no_column_is_needed_is_restored() -> None:
    two = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    query = ps.WindowJoin(two, where="b.v > 0", within="5 us", how="semi")
    join = query.start()
    join.push(b=pa.table({"ts": [1], "v": [1]}))
    assert query.restore(join.snapshot()).push(a=pa.table({"ts": [1]})).num_rows == 1


def test_why_a_matched_left_row_is_not_there() -> None:
    join = of("semi").start()
    table = pa.table({"ts": [1], "k": [1]})
    join.push(a=table, b=table)
    why = join.why(a={"ts": 1, "k": 1}, b={"ts": 1, "k": 1})
    assert why.joined is None
    assert "it has matched and is kept no more" in str(why)


def test_rows_come_in_order_into_one_run() -> None:
    """What an outer join looks at for each batch does not grow with the window."""
    join = of("full", "1 hour").start()
    for ts in range(200):
        join.push(a=pa.table({"ts": [ts], "k": [ts]}), b=pa.table({"ts": [ts], "k": [-ts]}))
    assert [len(runs) for runs in join.driver._unmatched._runs.values()] == [1, 1]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"how": "outer"}, "how must be one of 'inner', 'left', .* got 'outer'"),
        ({"how": None}, "how must be one of .* got None"),
        ({"how": "semi", "select": ["a.k", "b.k"]}, "columns of 'a' only, and select has 'b.k'"),
    ],
)
def test_what_is_refused(given: dict[str, object], complaint: str) -> None:
    two = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    with pytest.raises(ps.QueryError, match=complaint):
        ps.WindowJoin(two, on="k", within="1 s", **given)


def test_more_than_two_streams_are_refused() -> None:
    streams = [ps.Stream(name, time="ts") for name in "abc"]
    with pytest.raises(ps.QueryError, match="how='left' is for joins of two streams, got 3"):
        ps.WindowJoin(streams, on="k", within="1 s", how="left")


def test_a_snapshot_of_another_join_type_is_refused() -> None:
    with pytest.raises(ps.SnapshotError, match="how was 'left' and is 'full' now"):
        of("full").restore(of("left").start().snapshot())
