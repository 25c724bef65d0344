"""`why` tells a user in words why two rows did, or did not, come out together."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given as drawn
from hypothesis import settings

import penstock as ps
from support.oracle import answer
from support.scenario import Scenario, bag, table
from support.strategies import scenarios

pytestmark = pytest.mark.jit_off

QUERY = ps.WindowJoin(
    [
        ps.Stream("a", time="ts", window="10 us"),
        ps.Stream("b", time="ts", window="20 us"),
    ],
    on="k",
)


def rows(*pairs: tuple[int, int | None]) -> pa.Table:
    ts, k = zip(*pairs, strict=True)
    return pa.table({"ts": pa.array(ts, pa.int64()), "k": pa.array(k, pa.int64())})


def why(join: ps.Join, **given: Any) -> str:
    return str(join.why(**given)).lower()


@pytest.fixture
def join() -> ps.Join:
    join = QUERY.start()
    join.push(a=rows((100, 1), (101, None)), b=rows((105, 1), (105, 2)))
    return join


def test_a_pair_that_joined(join: ps.Join) -> None:
    text = why(join, a={"ts": 100, "k": 1}, b={"ts": 105, "k": 1})
    assert "not" not in text.split("\n")[0]
    assert "join" in text


def test_keys_that_differ(join: ps.Join) -> None:
    text = why(join, a={"ts": 100, "k": 1}, b={"ts": 105, "k": 2})
    assert "key" in text
    assert "1" in text
    assert "2" in text


def test_a_null_key(join: ps.Join) -> None:
    text = why(join, a={"ts": 101, "k": None}, b={"ts": 105, "k": 2})
    assert "null" in text
    assert "has not arrived" not in text  # it has: the fixture pushed it


def test_too_far_apart(join: ps.Join) -> None:
    """b is 11 us after a, and a's window is 10 us."""
    text = why(join, a={"ts": 100, "k": 1}, b={"ts": 111, "k": 1})
    assert "11 microseconds" in text
    assert "10 microseconds" in text
    assert "window" in text


def test_the_window_of_the_older_counts(join: ps.Join) -> None:
    """a is 20 us after b, just inside b's window; one more and it is outside."""
    inside = why(join, a={"ts": 125, "k": 1}, b={"ts": 105, "k": 1})
    outside = why(join, a={"ts": 126, "k": 1}, b={"ts": 105, "k": 1})
    assert "21 microseconds" not in inside
    assert "21 microseconds" in outside


def test_a_late_row(join: ps.Join) -> None:
    join.advance("a", 200)
    join.advance("b", 200)
    join.push(b=rows((150, 1)))
    text = why(join, a={"ts": 145, "k": 1}, b={"ts": 150, "k": 1})
    assert "late" in text


def test_a_late_row_that_was_handed_out(join: ps.Join) -> None:
    """It is no longer kept, but nothing may claim that it never came."""
    join.advance("a", 200)
    join.advance("b", 200)
    join.push(b=rows((195, 1)))
    join.late()
    text = why(join, a={"ts": 200, "k": 1}, b={"ts": 195, "k": 1})
    assert "late" in text
    assert "none like it came late" not in text


def test_a_row_that_has_left() -> None:
    join = QUERY.start()
    join.push(a=rows((100, 1)), b=rows((100, 2)))
    join.advance("a", 115)
    join.advance("b", 115)
    text = why(join, a={"ts": 100, "k": 1}, b={"ts": 105, "k": 1})
    assert "late" in text or "expired" in text


def test_several_reasons_are_all_told(join: ps.Join) -> None:
    text = why(join, a={"ts": 100, "k": 1}, b={"ts": 150, "k": 2})
    assert "key" in text
    assert "50 microseconds" in text


def test_why_changes_nothing(join: ps.Join) -> None:
    before, data = join.metrics, join.snapshot()
    why(join, a={"ts": 100, "k": 1}, b={"ts": 105, "k": 1})
    assert join.metrics == before
    assert join.snapshot() == data


def test_three_streams() -> None:
    query = ps.WindowJoin([ps.Stream(name, time="ts") for name in "abc"], on="k", within="10 us")
    join = query.start()
    join.push(a=rows((1, 1)), b=rows((2, 1)), c=rows((20, 1)))
    text = why(join, a={"ts": 1, "k": 1}, b={"ts": 2, "k": 1}, c={"ts": 20, "k": 1})
    assert "19 microseconds" in text
    assert "18 microseconds" in text


def test_times_and_keys_as_people_write_them() -> None:
    moment = pa.scalar(1_700_000_000_000_000, pa.timestamp("us", "UTC"))
    batch = pa.table({"ts": [moment.as_py()], "k": ["x"]})
    batch = batch.set_column(0, "ts", batch["ts"].cast(pa.timestamp("us", "UTC")))
    join = QUERY.start()
    join.push(a=batch, b=batch)
    row = {"ts": moment.as_py(), "k": "x"}
    assert "not" not in why(join, a=row, b=row).split("\n")[0]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"a": {"ts": 1, "k": 1}}, "'b'"),
        ({"a": {"ts": 1, "k": 1}, "c": {"ts": 1, "k": 1}}, "'c'"),
        ({"a": {"ts": 1}, "b": {"ts": 1, "k": 1}}, "'k'"),
        ({"a": {"k": 1}, "b": {"ts": 1, "k": 1}}, "'ts'"),
    ],
)
def test_rows_that_are_incomplete(join: ps.Join, given: dict[str, Any], named: str) -> None:
    with pytest.raises(ps.PenstockError, match=named):
        join.why(**given)


def test_a_time_that_is_no_time() -> None:
    """Also before the first batch, when no schema says what type it should have."""
    for start in (QUERY.start(), QUERY.start(schemas={"a": rows((1, 1)).schema})):
        with pytest.raises(ps.PenstockError, match=r"ts|'a'"):
            start.why(a={"ts": "noon", "k": 1}, b={"ts": 1, "k": 1})


def test_names_that_are_no_keywords() -> None:
    """As in `push`, one mapping serves for names that are no identifiers or would collide."""
    query = ps.WindowJoin(
        [ps.Stream("self", time="ts"), ps.Stream("b c", time="ts")], on="k", within="9 us"
    )
    join = query.start()
    join.push({"self": rows((1, 1)), "b c": rows((2, 1))})
    answer = join.why({"self": {"ts": 1, "k": 1}, "b c": {"ts": 2, "k": 1}})
    assert answer.joined is True


def test_a_part_of_a_combination() -> None:
    """Whether there is a fitting tuple of the third stream is not known."""
    streams = [ps.Stream(name, time="ts") for name in "abc"]
    join = ps.WindowJoin(streams, on="k", within="9 us").start()
    one = pa.table({"ts": [1], "k": [1]})
    join.push(a=one, b=one)
    answer = join.why(a={"ts": 1, "k": 1}, b={"ts": 1, "k": 1})
    assert answer.joined is None
    assert "c: no tuple given" in str(answer)


def test_before_a_stream_has_spoken_with_a_selection() -> None:
    query = ps.WindowJoin(
        [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")],
        on="k",
        within="9 us",
        select=["a.v", "b.v"],
    )
    answer = query.start().why(a={"ts": 1, "k": 1}, b={"ts": 30, "k": 1})
    assert answer.joined is False


def of(window: str | None = None, **more: Any) -> ps.Join:
    streams = [ps.Stream(name, time="ts", window=window) for name in "ab"]
    return ps.WindowJoin(streams, on="k", **more).start()


def asked(join: ps.Join, a: int, b: int) -> tuple[bool | None, str]:
    answer = join.why(a={"ts": a, "k": 1}, b={"ts": b, "k": 1})
    return answer.joined, answer.reasons[0]


@settings(max_examples=settings().max_examples // 2)
@drawn(scenarios(windows=True))
def test_windows_of_every_kind(scenario: Scenario) -> None:
    """What is said to have joined has come out, and what is said not to have never does."""
    outcomes = answer(scenario.streams, scenario.steps, scenario.between)
    whole = bag([rows for outcome in outcomes for rows, _ in outcome.results])
    schemas = {stream.name: scenario.schema(stream) for stream in scenario.streams}
    join = scenario.query.start(schemas=schemas)
    pushed: dict[str, list[Any]] = {name: [] for name in schemas}
    so_far: list[str] = []
    for step, outcome in zip(scenario.steps, outcomes, strict=False):
        for name, ts in step.advance.items():
            join.advance(name, scenario.instant(ts))
        join.push({name: table(schemas[name], rows) for name, rows in step.rows.items()})
        so_far += bag([rows for rows, _ in outcome.results])
        for name, rows in step.rows.items():
            pushed[name] += rows
    for combination in list(product(*pushed.values()))[:60]:
        rows = {
            name: table(schemas[name], [row]).to_pylist()[0]
            for name, row in zip(schemas, combination, strict=True)
        }
        joined = join.why(rows).joined
        assert joined is not True or repr(combination) in so_far
        assert joined is not False or repr(combination) not in whole


def test_a_window_of_rows() -> None:
    join = of("2 rows")
    join.push(a=rows((1, 1), (2, 2), (3, 3), (4, 1)), b=rows((2, 1), (5, 1), (9, 1)))
    assert asked(join, 1, 5) == (
        False,
        "a was not in its window of 2 rows at b: 3 newer ones came before that",
    )
    joined, reason = asked(join, 1, 2)
    assert joined is None
    assert reason.startswith("a has left its window of 2 rows; whether a was in its window at b")
    joined, reason = asked(join, 4, 5)
    assert joined is None
    assert reason.startswith("a is in its window of 2 rows at b so far: no newer ones came")
    text = why(join, a={"ts": 4, "k": 1}, b={"ts": 5, "k": 1})
    assert "b: has arrived, and waits for the watermark to pass its time" in text
    join.push(a=rows((20, 7)), b=rows((20, 7)))
    assert asked(join, 4, 9)[0] is True


def test_a_window_of_rows_per_key() -> None:
    join = of("1 rows per key")
    join.push(a=rows((1, 1), (2, 2), (3, 1)), b=rows((2, 1), (5, 1), (9, 1)))
    assert asked(join, 1, 2)[0] is True
    assert asked(join, 1, 5) == (
        False,
        "a was not in its window of 1 rows per key at b: 1 newer one came before that",
    )


def test_a_window_of_arrivals() -> None:
    join = of("3 arrivals")
    join.push(a=rows((1, 1), (2, 2), (3, 3), (4, 1)), b=rows((2, 1), (5, 1), (9, 1)))
    assert asked(join, 1, 5) == (False, "a is more than 3 arrivals before b, outside its window")
    joined, reason = asked(join, 4, 5)
    assert joined is None
    assert reason.startswith("a is 1 arrival before b so far, within its window of 3 arrivals")
    join.push(a=rows((10, 7)), b=rows((10, 7)))
    assert asked(join, 4, 9)[0] is True


def test_a_tumbling_window() -> None:
    join = of("tumbling 10 us")
    join.push(a=rows((9, 1)), b=rows((9, 1), (11, 1)))
    assert asked(join, 9, 9)[0] is True
    text = "a is 2 microseconds before b, in an earlier slot of 10 microseconds"
    assert asked(join, 9, 11) == (False, text)


def test_a_window_since_a_time() -> None:
    join = of("since 1970-01-01T00:00:01Z")
    join.push(a=rows((1, 1), (1_000_001, 1)), b=rows((1_000_009, 1)))
    text = "a: before the begin of its window, 1970-01-01T00:00:01+00:00: it takes no part"
    assert asked(join, 1, 1_000_009) == (False, text)
    assert asked(join, 1_000_001, 1_000_009)[0] is True


def test_bounds() -> None:
    join = of(between=("1 us", "3 us"), closed="left")
    join.push(a=rows((1, 1)), b=rows((1, 1), (3, 1), (4, 1)))
    assert asked(join, 1, 1) == (
        False,
        "b is at the same time as a, outside the bounds of 1 us to 3 us (closed: left)",
    )
    assert asked(join, 1, 3)[0] is True
    assert asked(join, 1, 4)[1].startswith("b is 3 microseconds after a, outside the bounds")


@pytest.mark.parametrize("window", ["1 rows", "1 rows per key", "1 arrivals", "unbounded"])
def test_after_the_end(window: str) -> None:
    join = of(window)
    join.push(a=rows((1, 1), (3, 1)), b=rows((2, 1), (3, 1)))
    join.finish()
    joined, reason = asked(join, 1, 2)
    assert joined is None
    assert reason.startswith("the join has finished")


def test_a_tuple_without_a_value_to_compare() -> None:
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    join = ps.WindowJoin(streams, where="a.x <= b.x", within="1 second").start()
    table = pa.table({"ts": [1], "x": pa.array([None], pa.int64())})
    join.push(a=table, b=table)
    told = str(join.why(a={"ts": 1, "x": None}, b={"ts": 1, "x": None}))
    assert "without a key, or a value that where= compares, it is not kept" in told
