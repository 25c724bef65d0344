"""Punctuations change no answer: what they let go could not have met anything."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from datetime import time as datetime_time
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.engine.promises import told
from penstock.engine.promises.closed_ranges import ClosedRanges
from penstock.kernels.punctuation.key_rows import NEVER
from support.oracle import OracleStream, Row, Step, answer
from support.promised import KEYS, Promise, Promised, once
from support.scenario import bag, combinations, in_order, rows_of, window_of
from support.strategies import BLOBS_OF_ONE_HASH, INDEXES

pytestmark = pytest.mark.jit_off

NAMES = "abcd"
SEEDS = st.integers(0, 1 << 32)
MOST_ROWS = {2: 6, 3: 4, 4: 2}  # of a stream in a step: the oracle tries all combinations
SCHEMA = {"ts": pa.int64(), "k": pa.int64(), "id": pa.int64(), "is_end": pa.bool_()}


def promised(
    seed: int, n: int, how: str = "inner", window_us: float | None = None, ranges: bool = False
) -> Promised:
    """Steps with some disorder, and promises of which some are not kept."""
    draw = random.Random(seed)
    streams = [
        OracleStream(
            name,
            window_us=window_us or draw.choice((3, 10, 40)),
            lateness_us=draw.choice((0, 0, 4)),
        )
        for name in NAMES[:n]
    ]
    steps, promises, now, number = [], [], 0, 0
    for step in range(draw.randint(2, 8)):
        rows: dict[str, list[Row]] = {}
        for stream in streams:
            times = sorted(now + draw.randint(0, 12) for _ in range(draw.randint(0, MOST_ROWS[n])))
            if stream.lateness_us:
                draw.shuffle(times)
            rows[stream.name] = []
            for ts in times:
                row = {"ts": ts, "k": draw.choice(KEYS), "id": number}
                number += 1
                rows[stream.name].append(row)
            for _ in range(draw.choice((0, 0, 1, 3))):
                at = now + draw.choice((0, 6, 13, 20))
                key, up_to = draw.choice(KEYS), None
                if ranges and draw.random() < 0.5:
                    up_to = key + draw.randint(0, 2)
                is_row = up_to is None and at <= now + 13 and draw.random() < 0.5
                promises.append(Promise(step, stream.name, key, at, is_row, up_to))
        steps.append(Step(rows))
        now += draw.randint(4, 12)
    return Promised(streams, steps, promises, how)


def kept_only(given: Promised) -> Promised:
    """The same with those promises only that are kept."""
    good = [
        each
        for each in given.promises
        if not any(
            replace_promises(given, [each]).breaks(each.stream, row, number)
            for number, step in enumerate(given.steps)
            for row in step.rows[each.stream]
        )
    ]
    return replace_promises(given, good)


def replace_promises(given: Promised, promises: Sequence[Promise]) -> Promised:
    return Promised(given.streams, given.steps, promises, given.how)


def query_of(given: Promised) -> ps.WindowJoin:
    return ps.WindowJoin(
        [
            ps.Stream(
                each.name,
                time="ts",
                window=window_of(each),
                lateness=f"{each.lateness_us} us",
                punctuation="is_end",
            )
            for each in given.streams
        ],
        on="k",
        how=given.how,
    )


def batches(given: Promised, number: int) -> dict[str, pa.Table]:
    """A step as a user pushes it, with promises that are rows of it."""
    tables = {}
    for stream in given.streams:
        rows = [{**row, "is_end": False} for row in given.steps[number].rows[stream.name]]
        for each in given.promises:
            if each.step == number and each.stream == stream.name and each.is_row:
                rows.append({"ts": each.at, "k": each.key, "id": -1, "is_end": True})
        tables[stream.name] = pa.Table.from_pylist(rows, pa.schema(SCHEMA))
    return tables


def fed(given: Promised, number: int, join: ps.Join) -> list[pa.Table]:
    """The results of a step, and of the promises behind it."""
    results = [join.push(batches(given, number))]
    for each in given.promises:
        if each.step == number and not each.is_row:
            key = each.key if each.up_to is None else ps.Range(each.key, each.up_to)
            results.append(join.punctuate(each.stream, k=key, at=each.at))
    return results


def outcome(given: Promised, tables: Sequence[pa.Table]) -> list[str]:
    """Results without the mark, in the oracle's terms."""
    names = [stream.name for stream in given.streams]
    shown = names[:1] if given.how in ("semi", "anti") else names
    plain = pa.schema({name: kind for name, kind in SCHEMA.items() if name != "is_end"})
    return bag(
        [each for table in tables for each in combinations(table, dict.fromkeys(shown, plain))]
    )


def check(
    given: Promised,
    indexes: str,
    forget: str = "both",
    restarts: Sequence[int] = (),
    limits: ps.Limits | None = None,
) -> None:
    """The answer is the oracle's; what can go has gone; what is over is told; what is broken is
    found."""
    clean, broken = given.without_broken()
    want, kept = clean.answer(), clean.kept()
    query = query_of(given)
    schemas = {stream.name: pa.schema(SCHEMA) for stream in given.streams}
    join = query.start(indexes=indexes, forget=forget, schemas=schemas, limits=limits)
    told: set[object] = set()
    got: list[pa.Table] = []
    rows_broken: dict[str, list[Row]] = {stream.name: [] for stream in given.streams}
    for number in range(len(given.steps)):
        results = fed(given, number, join)
        got += results
        join.driver.check()
        if given.how == "inner" and limits is None:
            expected = bag(want[number].results)
            assert outcome(given, results) == expected, f"in step {number}"
        for name, table in join.broken().items():
            rows_broken[name] += rows_of(table.drop_columns("is_end"))
        now_told = [row["k"] for row in join.punctuations().to_pylist()]
        assert not told & set(now_told), "a key is over once"
        told |= set(now_told)
        if forget == "both" and limits is None:
            assert told <= kept[number].told, f"in step {number}"
            if all(each.up_to is None for each in given.promises):  # else those that are there
                assert told == kept[number].told, f"in step {number}"
        if forget == "both" and limits is None:
            for stream in given.streams:
                live = join.metrics.streams[stream.name].live
                least = len(kept[number].live[stream.name])
                assert live >= least, f"{stream.name} in step {number}"
                if in_order(stream, given.steps):
                    assert live == least, f"{stream.name} in step {number}"
        for each in join.metrics.streams.values():
            left = each.late + each.broken + each.live + each.expired + each.discarded + each.purged
            assert each.arrived == left + each.shed
        if number in restarts:
            join = query.restore(join.snapshot(), indexes=indexes, limits=limits)
    got.append(join.finish())
    everything = [each for step in want for each in step.results]
    if limits is None:
        assert outcome(given, got) == bag(everything)
    else:
        produced = outcome(given, got)
        assert not Counter(produced) - Counter(bag(everything))
        assert len(produced) + join.metrics.lost == len(everything)
    for name, rows in broken.items():
        assert bag(rows_broken[name]) == bag(rows)


@pytest.mark.parametrize("index", INDEXES)
@given(SEEDS, st.integers(2, 4))
def test_inner_joins(index: str, seed: int, n: int) -> None:
    check(promised(seed, n), index)


@pytest.mark.parametrize("how", ["left", "right", "full", "semi", "anti"])
@given(SEEDS, st.sampled_from(INDEXES))
def test_other_joins(how: str, seed: int, index: str) -> None:
    check(promised(seed, 2, how), index)


@given(SEEDS, st.integers(2, 4), st.sampled_from(INDEXES))
def test_ranges_of_keys(seed: int, n: int, index: str) -> None:
    check(promised(seed, n, ranges=True), index)


@given(SEEDS, st.sampled_from(("left", "full", "semi", "anti")))
def test_ranges_in_other_joins(seed: int, how: str) -> None:
    check(promised(seed, 2, how, ranges=True), "hash")


@given(SEEDS, st.integers(2, 3))
def test_ranges_saved_and_restored(seed: int, n: int) -> None:
    given = promised(seed, n, ranges=True)
    check(given, "hash", restarts=range(len(given.steps)))


@given(SEEDS, st.integers(2, 3))
def test_all_ways_to_forget_agree_over_unbounded_windows(seed: int, n: int) -> None:
    given = kept_only(promised(seed, n, window_us=float("inf")))
    for forget in ("window", "punctuation", "both"):
        check(given, "hash", forget)


@given(SEEDS, st.sampled_from(INDEXES))
def test_windows_alone_check_promises_too(seed: int, index: str) -> None:
    check(promised(seed, 2), index, "window")


@given(SEEDS, st.integers(2, 3), st.sampled_from(INDEXES))
def test_saved_and_restored_after_every_step(seed: int, n: int, index: str) -> None:
    given = promised(seed, n)
    check(given, index, restarts=range(len(given.steps)))


@given(SEEDS, st.sampled_from(("left", "full", "anti")))
def test_other_joins_saved_and_restored(seed: int, how: str) -> None:
    given = promised(seed, 2, how)
    check(given, "hash", restarts=range(0, len(given.steps), 2))


@pytest.mark.parametrize("n", [2, 3])
@given(SEEDS, st.sampled_from(("prob", "oldest", "random")), st.integers(1, 12))
def test_under_limits_what_is_missing_is_counted(n: int, seed: int, shed: str, rows: int) -> None:
    check(promised(seed, n), "hash", limits=ps.Limits(memory=f"{rows} rows", shed=shed))


def pushed(query: ps.WindowJoin, steps: Sequence[Step], schema: pa.Schema) -> list[pa.Table]:
    join = query.start(schemas=dict.fromkeys(query.names, schema))
    got = []
    for step in steps:
        tables = {
            name: pa.Table.from_pylist(list(rows), schema) for name, rows in step.rows.items()
        }
        got.append(join.push(tables))
        join.driver.check()
        assert not any(each.broken for each in join.metrics.streams.values())
    return [*got, join.finish()]


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(
    "promise", [{"unique": True}, {"clustered": True}, {"expires": {"b": "x"}}]
)
@pytest.mark.parametrize("how", ["inner", "full", "semi"])
@given(SEEDS)
def test_promises_that_streams_make_by_themselves(
    how: str, promise: dict[str, Any], text: bool, seed: int
) -> None:
    """Of streams that keep them, in some disorder."""
    draw = random.Random(seed)
    lateness_us = draw.choice((0, 5))
    keys = draw.sample(range(40), 20)
    a = [{"ts": 3 * n + draw.randint(0, 2), "k": key} for n, key in enumerate(keys)]
    if "increasing" in promise:
        keys.sort()
    if "clustered" in promise or "increasing" in promise:
        a = [{"ts": 3 * n, "k": keys[n // 3]} for n in range(len(keys))]
    b = [{"ts": draw.randint(0, 60), "k": draw.choice(keys)} for _ in range(40)]
    lasts = {key: draw.randint(0, 60) for key in keys}
    if "expires" in promise:
        b = [row for row in b if row["ts"] < lasts[row["k"]]]
    for number, row in enumerate([*a, *b]):
        row |= {"id": number, "x": lasts[row["k"]]}
        row["k"] = f"key {row['k']}" if text else row["k"]
    steps = [
        Step(
            {
                name: draw.sample(some, len(some))
                for name, rows in (("a", a), ("b", b))
                for some in ([row for row in rows if begin <= row["ts"] < begin + 10],)
            }
        )
        for begin in range(0, 70, 10)
    ]
    streams = [OracleStream(name, window_us=15, lateness_us=lateness_us) for name in "ab"]
    query = ps.WindowJoin(
        [
            ps.Stream("a", time="ts", lateness=f"{lateness_us} us", **promise),
            ps.Stream("b", time="ts", lateness=f"{lateness_us} us"),
        ],
        on="k",
        within="15 us",
        how=how,
    )
    kind = pa.string() if text else pa.int64()
    schema = pa.schema({"ts": pa.int64(), "k": kind, "id": pa.int64(), "x": pa.int64()})
    shown = dict.fromkeys("a" if how == "semi" else "ab", schema)
    got = [each for table in pushed(query, steps, schema) for each in combinations(table, shown)]
    want = [each for step in answer(streams, steps, how=how) for each in step.results]
    assert bag(got) == bag(want)


@pytest.mark.parametrize("text", [False, True])
@given(SEEDS)
def test_of_two_tuples_of_a_unique_key_the_second_to_arrive_is_broken(
    text: bool, seed: int
) -> None:
    """In whatever order of time; in one batch the later one, or the second of one time."""
    draw = random.Random(seed)
    lateness_us = draw.choice((0, 5, 30))
    given = [OracleStream(name, window_us=15, lateness_us=lateness_us) for name in "ab"]
    steps, number = [], 0
    for begin in range(0, 60, 6):
        rows: dict[str, list[Row]] = {"a": [], "b": []}
        for of_step in rows.values():
            for _ in range(draw.randint(0, 5)):
                key = draw.randint(0, 12)
                ts = max(0, begin + draw.randint(-8, 6))
                of_step.append({"ts": ts, "k": f"key {key}" if text else key, "id": number})
                number += 1
        steps.append(Step(rows))
    kept, broken = once(given, steps, "a")
    streams = [
        ps.Stream(each.name, time="ts", lateness=f"{lateness_us} us", unique=each.name == "a")
        for each in given
    ]
    query = ps.WindowJoin(streams, on="k", within="15 us")
    kind = pa.string() if text else pa.int64()
    schema = pa.schema({"ts": pa.int64(), "k": kind, "id": pa.int64()})
    join = query.start(schemas=dict.fromkeys("ab", schema))
    found: list[Row] = []
    for step, want in zip(steps, answer(given, kept), strict=True):
        tables = {
            name: pa.Table.from_pylist(list(rows), schema) for name, rows in step.rows.items()
        }
        got = combinations(join.push(tables), dict.fromkeys("ab", schema))
        assert bag(got) == bag(want.results)
        found += rows_of(join.broken()["a"])
        join.driver.check()
    assert bag(found) == bag(broken)


@pytest.mark.parametrize("text", [False, True])
@given(SEEDS)
def test_tuples_behind_the_end_that_another_stream_names_are_broken_however_batches_are_cut(
    text: bool, seed: int
) -> None:
    """Of streams in order, and batches that end at the same time in both."""
    draw = random.Random(seed)
    times = {name: sorted(draw.choices(range(60), k=20)) for name in "ab"}
    every: dict[str, list[Row]] = {"a": [], "b": []}
    for name, of_stream in times.items():
        for ts in of_stream:
            key = draw.randint(0, 8)
            end = draw.choice((None, ts + draw.randint(-5, 20)))
            row = {"ts": ts, "k": f"key {key}" if text else key, "id": len(every[name]), "x": end}
            every[name].append(row)
    broken = [
        row
        for row in every["b"]
        if any(
            end["x"] is not None and end["k"] == row["k"] and end["ts"] < row["ts"] >= end["x"]
            for end in every["a"]
        )
    ]
    kept = {"a": every["a"], "b": [row for row in every["b"] if row not in broken]}
    given = [OracleStream(name, window_us=15) for name in "ab"]
    (want,) = answer(given, [Step(kept)])
    streams = [ps.Stream("a", time="ts", expires={"b": "x"}), ps.Stream("b", time="ts")]
    query = ps.WindowJoin(streams, on="k", within="15 us")
    kind = pa.string() if text else pa.int64()
    schema = pa.schema({"ts": pa.int64(), "k": kind, "id": pa.int64(), "x": pa.int64()})
    cuts = sorted(draw.sample(range(1, 60), draw.choice((0, 1, 5, 30))))
    join, got = query.start(), list[Any]()
    for begin, end in pairwise([0, *cuts, 60]):
        tables = {
            name: pa.Table.from_pylist([r for r in of_stream if begin <= r["ts"] < end], schema)
            for name, of_stream in every.items()
        }
        got += combinations(join.push(tables), dict.fromkeys("ab", schema))
    assert bag(got) == bag(want.results)
    assert bag(rows_of(join.broken()["b"])) == bag(broken)


def blobs(*rows: tuple[int, int]) -> pa.Table:
    """Rows of a time and one of two keys that have the same hash."""
    keys = pa.array([BLOBS_OF_ONE_HASH[which] for _, which in rows], pa.binary())
    return pa.table({"ts": pa.array([ts for ts, _ in rows], pa.int64()), "k": keys})


def test_keys_of_one_hash_are_told_apart() -> None:
    a, b = ps.Stream("a", time="ts", unique=True), ps.Stream("b", time="ts")
    join = ps.WindowJoin([a, b], on="k", within="100 us").start()
    assert len(join.push(a=blobs((1, 0), (2, 1)), b=blobs((2, 0)))) == 1
    assert len(join.push(a=blobs((3, 0)), b=blobs((3, 1), (4, 0)))) == 2
    streams = join.metrics.streams
    assert (streams["a"].broken, streams["a"].live) == (1, 2)
    assert join.punctuate("b", k=BLOBS_OF_ONE_HASH[1]).num_rows == 0
    assert join.metrics.streams["a"].broken == 1


FOREVER = ps.WindowJoin(
    [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within="unbounded"
)


def rows(*given: tuple[int, int]) -> pa.Table:
    ts, keys = zip(*given, strict=True) if given else ((), ())
    return pa.table({"ts": pa.array(ts, pa.int64()), "k": pa.array(keys, pa.int64())})


def test_a_promise_behind_the_watermark_holds_at_once_and_one_ahead_waits() -> None:
    join = FOREVER.start()
    join.push(a=rows((10, 1), (10, 2)), b=rows((10, 3)))
    join.punctuate("b", k=1, at=5)
    assert join.metrics.streams["a"].live == 1
    join.punctuate("b", k=ps.OneOf([2, 7]), at=20)
    assert join.metrics.streams["a"].live == 1
    join.push(a=rows((20, 9)), b=rows((20, 9)))
    assert join.metrics.streams["a"].live == 1
    assert join.metrics.streams["a"].purged == 2


def test_no_time_is_the_greatest_that_the_stream_has_brought() -> None:
    join = FOREVER.start()
    join.push(a=rows((10, 1)), b=rows((10, 1), (12, 1)))
    join.punctuate("b", k=1)
    assert join.metrics.streams["a"].live == 1, "the watermark is at 10, and 12 is ahead"
    join.push(a=rows((12, 2)), b=rows())
    assert join.metrics.streams["a"].live == 1
    assert join.metrics.streams["a"].purged == 1


def test_a_pattern_that_is_not_about_the_key_is_counted() -> None:
    stream = ps.Stream("a", time="ts")
    join = ps.WindowJoin([stream, ps.Stream("b", time="ts")], on="k", within="1 s").start()
    table = rows((1, 1)).append_column("v", pa.array([5]))
    join.push(a=table, b=table)
    join.punctuate("a", v=5)
    join.punctuate("a", k=ps.NOTHING)
    join.punctuate("a", k=None)
    assert join.metrics.streams["a"].punctuations == 3
    assert join.metrics.streams["a"].unusable == 3
    assert join.metrics.live == 2


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ({"z": 1}, "no columns"),
        ({"k": "x"}, "types of its key"),
        ({"k": ps.Range("x", "y")}, "types of its key"),
        ({"k": ps.OneOf(["x"])}, "types of its key"),
        ({"k": 5.5}, "types of its key"),
        ({"k": ps.Range(1.5, 3.5)}, "types of its key"),
        ({"k": 1 << 70}, "types of its key"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(key: dict[str, Any], words: str) -> None:
    join = FOREVER.start()
    join.push(a=rows((1, 1)), b=rows((1, 1)))
    with pytest.raises(ps.InputError, match=words):
        join.punctuate("a", **key)
    assert join.metrics.streams["a"].punctuations == 0
    assert len(join.push(a=rows((2, 1)), b=rows())) == 1


def test_a_stream_that_is_not_known_yet_cannot_be_punctuated() -> None:
    with pytest.raises(ps.InputError, match="not known yet"):
        FOREVER.start().punctuate("a", k=1)


@pytest.mark.parametrize(
    ("stream", "more", "words"),
    [
        ({"punctuation": ""}, {}, "boolean column"),
        ({"expires": "x"}, {}, "column by stream"),
        ({"expires": {"a": "x"}}, {}, "names itself"),
        ({"expires": {"z": "x"}}, {}, "no streams"),
        ({"unique": True, "window": "5 rows"}, {}, "counts rows"),
        ({"increasing": True}, {"on": ["k", "l"]}, "several columns"),
        ({"unique": True}, {"on": None, "where": "abs(a.k - b.k) < 2"}, "give on="),
        ({"unique": "k"}, {"on": ["k", "l"]}, "whole key"),
        ({"clustered": ["k"]}, {"on": ["k", "l"]}, "whole key"),
    ],
    ids=str,
)
def test_promises_that_no_stream_can_make(
    stream: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    def make() -> ps.WindowJoin:
        streams = [ps.Stream("a", time="ts", **stream), ps.Stream("b", time="ts")]
        return ps.WindowJoin(streams, **{"on": "k", "within": "1 s", **more})

    with pytest.raises(ps.QueryError, match=words):
        make()


def test_a_stream_has_no_whole_key_if_it_is_joined_by_different_columns() -> None:
    streams = [ps.Stream(name, time="ts", unique=name == "b") for name in "abc"]
    with pytest.raises(ps.QueryError, match="give on="):
        ps.WindowJoin(streams, where="a.x = b.x AND b.y = c.y", within="1 s")


def test_a_promise_far_ahead_waits() -> None:
    join = FOREVER.start()
    join.push(a=rows((10, 1)), b=rows((10, 2)))
    join.punctuate("b", k=1, at=10**15)
    join.punctuate("b", k=ps.Range(5, 6), at=10**15)
    assert len(join.push(a=rows((20, 5)), b=rows((20, 1), (20, 5)))) == 2
    assert (join.metrics.live, join.metrics.streams["b"].broken) == (5, 0)
    assert len(join.punctuations()) == 0
    assert len(join.push(b=rows((10**15, 1)))) == 0
    assert join.metrics.streams["b"].broken == 1


def test_an_increasing_key_has_an_order() -> None:
    streams = [ps.Stream("a", time="ts", increasing=True), ps.Stream("b", time="ts")]
    table = pa.table({"ts": [1], "k": ["x"]})
    with pytest.raises(ps.SchemaError, match="signed integers, dates and times"):
        ps.WindowJoin(streams, on="k", within="1 s").start().push(a=table)


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        ({"punctuation": "z"}, "no punctuation column"),
        ({"punctuation": "k"}, "must be boolean"),
        ({"expires": {"b": "z"}}, "no expires column"),
        ({"expires": {"b": "note"}}, "timestamp"),
    ],
    ids=str,
)
def test_columns_that_promises_need(stream: dict[str, Any], words: str) -> None:
    streams = [ps.Stream("a", time="ts", **stream), ps.Stream("b", time="ts")]
    table = rows((1, 1)).append_column("note", pa.array(["x"]))
    with pytest.raises(ps.SchemaError, match=words):
        ps.WindowJoin(streams, on="k", within="1 s").start().push(a=table)


def test_a_broken_promise_may_be_an_error() -> None:
    a, b = ps.Stream("a", time="ts", unique=True), ps.Stream("b", time="ts")
    query = ps.WindowJoin([a, b], on="k", within="1 s")
    join = query.start(promises="error")
    join.push(a=rows((1, 7)), b=rows())
    with pytest.raises(ps.InputError, match=r"1 tuple .*'k': 7"):
        join.push(a=rows((1, 8), (2, 7)), b=rows((2, 7)))
    assert join.metrics.streams["a"].arrived == 1, "nothing of it was taken"
    with pytest.raises(ps.QueryError, match="'drop' or 'error'"):
        query.start(promises="raise")
    with pytest.raises(ps.QueryError, match="forget must be"):
        query.start(forget="never")


@pytest.mark.many_rows
def test_state_does_not_grow_with_the_keys_that_have_been() -> None:
    """Of a stream that promises each key once, over a window that never ends."""
    a, b = ps.Stream("a", time="ts", unique=True), ps.Stream("b", time="ts", unique=True)
    join = ps.WindowJoin([a, b], on="k", within="unbounded").start()
    sizes = []
    for begin in range(0, 60_000, 2_000):
        table = rows(*((begin + n, begin + n) for n in range(2_000)))
        assert len(join.push(a=table, b=table)) == 2_000
        assert len(join.punctuations()) == 2_000
        assert join.metrics.live == 0
        sizes.append(join.metrics.bytes)
    assert max(sizes[10:]) <= max(sizes[:10])


def test_why_names_the_promise() -> None:
    a, b = ps.Stream("a", time="ts", unique=True), ps.Stream("b", time="ts")
    join = ps.WindowJoin([a, b], on="k", within="1 s").start()
    join.push(a=rows((1, 7), (3, 8)), b=rows((2, 7), (3, 9)))
    join.push(a=rows((5, 7)), b=rows((5, 9)))
    purged = join.why(a={"ts": 1, "k": 7}, b={"ts": 2, "k": 7})
    assert purged.joined is None
    assert "a has promised no more tuples of its key from 1970-01-01T00:00:00.000001Z" in str(
        purged
    )
    broken = join.why(a={"ts": 5, "k": 7}, b={"ts": 5, "k": 9})
    assert broken.joined is False
    assert "had promised not to bring it" in str(broken)
    missing = join.why(a={"ts": 3, "k": 8}, b={"ts": 4, "k": 9})
    assert "promised" not in str(missing)


def test_why_of_equal_rows_of_which_one_is_broken() -> None:
    a, b = ps.Stream("a", time="ts", unique=True, lateness="1 s"), ps.Stream("b", time="ts")
    join = ps.WindowJoin([a, b], on="k", within="1 s").start()
    assert len(join.push(a=rows((1, 7)), b=rows((1, 7)))) == 1
    join.push(a=rows((1, 7)), b=rows())
    assert join.metrics.streams["a"].broken == 1
    taken = join.why(a={"ts": 1, "k": 7}, b={"ts": 1, "k": 7})
    assert taken.joined is not False, "one of them is there"
    assert "had promised not to bring it" not in str(taken)


@pytest.mark.many_rows
@pytest.mark.parametrize("forget", ["both", "window"])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_closed_keys_are_forgotten(how: str, forget: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if only one stream closes them, and nobody asks which are over."""
    monkeypatch.setattr(told, "_KEPT", 5_000)
    a, b = ps.Stream("a", time="ts"), ps.Stream("b", time="ts", unique=True)
    query = ps.WindowJoin([a, b], on="k", within="1000 us", how=how)
    join = query.start(forget=forget)
    sizes = []
    for begin in range(0, 80_000, 2_000):
        table = rows(*((begin + n, begin + n) for n in range(2_000)))
        assert len(join.push(a=table, b=table)) >= 2_000
        sizes.append(join.metrics.bytes)
    assert max(sizes[20:]) <= 1.2 * max(sizes[:20])
    over = join.punctuations()
    assert len(over) <= 7_000
    assert (len(over) > 0) == (how == "inner" and forget == "both")


def test_a_column_that_is_left_out_means_any_value() -> None:
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    join = ps.WindowJoin(streams, on=["k", "l"], within="unbounded").start()
    table = pa.table({"ts": [1] * 6, "k": [0, 0, 0, 1, 1, 1], "l": list("xyzxyz")})
    join.push(a=table, b=table)
    join.punctuate("b", k=0)
    assert join.metrics.streams["a"].live == 3
    join.punctuate("b", l=ps.OneOf(["x", "y"]))
    assert join.metrics.streams["a"].live == 1
    join = ps.WindowJoin(streams, on=["k", "l"], within="unbounded").restore(join.snapshot())
    join.punctuate("b", k=ps.Range(1, None), l="z")
    assert join.metrics.streams["a"].live == 0
    results = join.push(a=table.set_column(0, "ts", pa.array([2] * 6)), b=table.slice(0, 0))
    assert len(results) == 6
    assert join.metrics.streams["a"].live == 0
    join.punctuate("a", at=1)
    assert join.metrics.live == 0
    broken = join.push(a=table.set_column(0, "ts", pa.array([3] * 6)), b=table.slice(0, 0))
    assert len(broken) == 0
    assert len(join.broken()["a"]) == 6


def test_ranges_that_overlap_become_one() -> None:
    join = FOREVER.start()
    join.push(a=rows((1, 1)), b=rows((1, 50)))
    for low in range(0, 100, 2):
        join.punctuate("b", k=ps.Range(low, low + 2), at=1)
    promises = join.driver.promises
    assert promises is not None
    assert len(promises.wide.ranges[1]) == 1
    join.punctuate("b", k=ps.Range(200, None), at=1)
    assert len(promises.wide.ranges[1]) == 2


RANGES: dict[str, Callable[[int], Any]] = {
    "int64": lambda number: number,
    "uint64": lambda number: number + 2**64 - 1_000,
    "float": lambda number: number / 4 - 10,
    "text": lambda number: f"{number:04}",
    "bytes": lambda number: number.to_bytes(4, "big"),
    "date": lambda number: date(2024, 1, 1) + timedelta(days=number),
    "time": lambda number: datetime_time(number // 60, number % 60),
    "timestamp": lambda number: datetime(2024, 1, 1) + timedelta(seconds=number),
    "decimal": lambda number: Decimal(number) / 8 - 7,
}


@pytest.mark.parametrize("kind", RANGES)
@given(SEEDS)
def test_closed_ranges_are_what_their_promises_say(kind: str, seed: int) -> None:
    draw, value = random.Random(seed), RANGES[kind]
    ranges, promises, passed = ClosedRanges(), [], 0
    numbers = range(60)
    types = {"uint64": pa.uint64(), "decimal": pa.decimal128(10, 3)}
    column = pa.array([value(number) for number in numbers], types.get(kind))
    for _ in range(draw.randint(1, 12)):
        low, high = sorted(draw.choices(numbers, k=2))
        ends = [None if draw.random() < 0.1 else end for end in (low, high)]
        passed += draw.randint(0, 3)
        promises.append((*ends, passed + draw.randint(-5, 10)))
        given = ps.Range(*(None if end is None else value(end) for end in ends))
        assert ranges.add(given, promises[-1][2], passed) == 0
        if draw.random() < 0.3:
            ranges = ClosedRanges.load(ranges.save(column.type))
        for number, at in zip(numbers, ranges.at(column).tolist(), strict=True):
            wanted = min(
                at
                for low, high, at in [*promises, (None, None, NEVER)]
                if (low is None or low <= number) and (high is None or number <= high)
            )
            assert max(at, passed) == max(wanted, passed), "those that hold are the same"


@pytest.mark.many_rows
def test_ranges_that_do_not_touch_are_forgotten_oldest_first() -> None:
    ranges = ClosedRanges()
    forgotten = sum(ranges.add(ps.Range(4 * n, 4 * n + 1), 5, 9) for n in range(3_000))
    assert len(ranges) + forgotten == 3_000
    assert len(ranges) <= 1_024
    at = ranges.at(pa.array([4 * n for n in range(3_000)])) < NEVER
    assert at[-len(ranges) :].all()
    assert not at[: -len(ranges)].any()


def test_patterns_of_several_columns_are_forgotten_oldest_first() -> None:
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    join = ps.WindowJoin(streams, on=["k", "l"], within="unbounded").start()
    table = pa.table({"ts": [1], "k": [0], "l": ["x"]})
    join.push(a=table, b=table)
    for key in range(100):
        join.punctuate("b", k=key, at=1)
    promises = join.driver.promises
    assert promises is not None
    assert (len(promises.wide.patterns), promises.forgotten) == (64, 36)
    later = pa.table({"ts": [2, 2], "k": [0, 99], "l": ["y", "y"]})
    assert len(join.push(a=later, b=later)) == 1, "the key 0 is no longer known to be closed"
    assert join.metrics.streams["b"].broken == 1


@pytest.mark.many_rows
def test_an_increasing_stream_lets_partners_go_that_it_has_left_behind() -> None:
    a, b = ps.Stream("a", time="ts", increasing=True), ps.Stream("b", time="ts")
    join = ps.WindowJoin([a, b], on="k", within="unbounded").start()
    most = 0
    for begin in range(0, 40_000, 2_000):
        # Every second key is missing in `a`, and those of `b` come before.
        own = rows(*((begin + n, begin + n) for n in range(0, 2_000, 2)))
        other = rows(*((begin + n, begin + n + 500) for n in range(2_000)))
        join.push(a=own, b=other)
        most = max(most, join.metrics.streams["b"].live)
    assert most < 8_000
    assert join.metrics.streams["b"].broken == 0
    join.push(a=rows((50_000, 7)), b=rows((50_000, 9)))
    assert join.metrics.streams["a"].broken == 1


def push_cost(closed: int) -> float:
    """The least time of a push of one row, with so many closed keys whose tuples are live."""
    a, b = ps.Stream("a", time="ts", unique=True), ps.Stream("b", time="ts")
    join = ps.WindowJoin([a, b], on="k", within="1 hour").start()
    ts = np.arange(closed)
    join.push(a=pa.table({"ts": ts, "k": ts}), b=rows((closed, -1)))
    pushes = [(rows((closed + n, closed + n)), rows((closed + n, n))) for n in range(150)]
    times = []
    for own, other in pushes:
        begin = time.perf_counter()
        join.push(a=own, b=other)
        times.append(time.perf_counter() - begin)
    assert join.metrics.live == closed + 151
    return sorted(times)[len(times) // 4]


@pytest.mark.many_rows
def test_a_push_does_not_go_through_all_closed_keys() -> None:
    push_cost(1_000)
    assert push_cost(400_000) < 3 * push_cost(1_000)


def test_punctuate_is_refused_beside_windows_of_rows() -> None:
    streams = [ps.Stream("a", time="ts", window="2 rows"), ps.Stream("b", time="ts", window="1 s")]
    join = ps.WindowJoin(streams, on="k").start()
    join.push(a=rows((1, 1)), b=rows((1, 1)))
    with pytest.raises(ps.InputError, match="count rows"):
        join.punctuate("a", k=1)
    with pytest.raises(ps.InputError, match="columns of the key"):
        FOREVER.start().punctuate("a", [1])  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_time_that_never_comes(unit: str) -> None:
    a, b = ps.Stream("a", time="ts", expires={"b": "x"}), ps.Stream("b", time="ts")
    join = ps.WindowJoin([a, b], on="k", within="1 s").start()
    never = pa.array([2**63 - 1], pa.int64()).cast(pa.timestamp(unit))
    join.push(a=rows((1, 1)).append_column("x", never), b=rows())
    assert len(join.push(b=rows((2, 1), (3, 1)))) == 2
    assert join.metrics.streams["b"].broken == 0


@pytest.mark.parametrize("promise", ["increasing", "clustered"])
@pytest.mark.parametrize("one_batch", [True, False])
def test_tuples_of_one_time_have_no_order(promise: str, one_batch: bool) -> None:
    a, b = ps.Stream("a", time="ts", **{promise: True}), ps.Stream("b", time="ts")
    parts = [[(10, 3), (10, 2)], [(11, 3)], [(12, 3)], [(13, 4)], [(14, 4)]]
    for order in (1, -1):
        join = ps.WindowJoin([a, b], on="k", within="1 s").start()
        rest = [each for part in parts[1:] for each in part]
        batches = [[*parts[0][::order], *rest]] if one_batch else parts
        for part in batches:
            join.push(a=rows(*part), b=rows((part[-1][0], 9)))
        assert join.metrics.streams["a"].broken == 0
        join.push(a=rows((15, 3)), b=rows((15, 9)))
        assert join.metrics.streams["a"].broken == 1


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_a_tuple_that_comes_back_ends_other_clusters(step: int) -> None:
    a, b = ps.Stream("a", time="ts", clustered=True), ps.Stream("b", time="ts")
    join = ps.WindowJoin([a, b], on="k", within="1 s").start()
    tuples = [(1, 1), (2, 2), (3, 1), (4, 2), (5, 3), (6, 2), (7, 3)]
    for begin in range(0, len(tuples), step):
        part = tuples[begin : begin + step]
        join.push(a=rows(*part), b=rows((part[-1][0], 9)))
    broken = [(row["ts"], row["k"]) for row in rows_of(join.broken()["a"])]
    assert broken == [(3, 1), (4, 2), (6, 2), (7, 3)]


def test_keys_of_different_types_under_ranges() -> None:
    small = pa.table({"ts": pa.array([1], pa.int64()), "k": pa.array([7], pa.int8())})
    join = FOREVER.start()
    join.push(a=rows((1, 7), (1, 400)), b=small)
    join.punctuate("a", k=ps.Range(0, 1000), at=1)
    assert join.metrics.streams["b"].live == 0
    join.punctuate("b", k=100, at=1)
    restored = FOREVER.restore(join.snapshot())
    for each in (join, restored):
        assert sorted(each.punctuations()["k"].to_pylist()) == [100]
        each.push(b=small.set_column(0, "ts", pa.array([2])))
        assert each.metrics.streams["b"].broken == 0


@pytest.mark.many_rows
def test_keys_that_are_closed_far_ahead_are_forgotten() -> None:
    a, b = ps.Stream("a", time="ts", expires={"b": "x"}), ps.Stream("b", time="ts")
    join = ps.WindowJoin([a, b], on="k", within="10 us").start()
    sizes = []
    for begin in range(0, 30_000, 1_000):
        own = rows(*((begin + n, begin + n) for n in range(1_000)))
        own = own.append_column("x", pa.array([10**12] * 1_000, pa.int64()))
        join.push(a=own, b=rows((begin + 999, -1)))
        sizes.append(join.metrics.bytes)
    assert sizes[-1] <= 2 * sizes[4]


@pytest.mark.many_rows
def test_limits_in_bytes_count_what_is_known_of_promises() -> None:
    a, b = ps.Stream("a", time="ts", unique=True), ps.Stream("b", time="ts")
    query = ps.WindowJoin([a, b], on="k", within="1 hour")
    join = query.start(limits=ps.Limits(memory="400 KiB", shed="oldest"))
    for begin in range(0, 20_000, 1_000):
        table = rows(*((begin + n, begin + n) for n in range(1_000)))
        join.push(a=table, b=rows((begin + 999, -1)))
    assert join.metrics.bytes <= 1.3 * 400 * 1024
