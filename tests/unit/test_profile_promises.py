"""Which promises `profile` finds in streams, and what it says they save, against plain counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import penstock as ps
from penstock.cli import app
from penstock.engine.arrivals import Arrivals
from penstock.model.window import parse_window
from penstock.runtime.lifetimes import Lifetimes, Line
from penstock.runtime.profile import profile_streams
from penstock.runtime.promise_profile import PromiseProfile

Row = tuple[int, int]  # time and key
PROMISES = ("unique", "clustered", "increasing")
NEVER = 1 << 60


def table(rows: Sequence[Row]) -> pa.Table:
    ts, keys = zip(*rows, strict=True) if rows else ((), ())
    return pa.table({"ts": pa.array(ts, pa.int64()), "k": pa.array(keys, pa.int64())})


def query(names: Sequence[str], window: str = "10 us", **promised: Sequence[str]) -> ps.WindowJoin:
    streams = [
        ps.Stream(name, time="ts", **dict.fromkeys(promised.get(name, ()), True))  # type: ignore[arg-type]
        for name in names
    ]
    return ps.WindowJoin(streams, on="k", within=window)


def promises_of(rows: Mapping[str, Sequence[Row]], window: str = "10 us") -> PromiseProfile:
    tables = {name: table(each) for name, each in rows.items()}
    found = profile_streams(query(list(rows), window), tables).promises
    assert found is not None
    return found


# The definitions, in plain Python.


def breaks(promise: str, rows: Sequence[Row], number: int) -> bool:
    """Whether a tuple of a stream breaks what others of it promise."""
    ts, key = rows[number]
    before = [row for row in rows if row[0] < ts]
    if promise == "unique":  # of equal times any may be the first
        return any((row[0], at) < (ts, number) and row[1] == key for at, row in enumerate(rows))
    if promise == "increasing":
        return any(row[1] > key for row in before)
    return any(
        row[1] == key and any((other, key) not in rows for other, _ in before if other > row[0])
        for row in before
    )


def closes(promise: str, rows: Sequence[Row], key: int) -> int:
    """When a stream that keeps a promise closes a key."""
    own = [row[0] for row in rows if row[1] == key]
    if promise == "unique":
        return min(own, default=NEVER)
    if promise == "increasing":
        return min((row[0] for row in rows if row[1] > key), default=NEVER)
    return min((row[0] for row in rows if own and row[0] > max(own)), default=NEVER)


def held(
    streams: Sequence[Sequence[Row]], length: int, promised: Mapping[int, Sequence[str]]
) -> float:
    """Live tuples on average: those of each microsecond are counted by themselves."""
    times = [row[0] for rows in streams for row in rows]

    def closed(stream: int, key: int, now: int) -> bool:
        return any(closes(each, streams[stream], key) <= now for each in promised.get(stream, ()))

    def is_over(key: int, now: int) -> bool:
        return all(closed(at, key, now) for at in range(len(streams))) or any(
            closed(at, key, now)
            and not any(row[1] == key and row[0] + length > now for row in rows)
            for at, rows in enumerate(streams)
        )

    total = 0
    for now in range(min(times), max(times)):
        for stream, rows in enumerate(streams):
            others = [at for at in range(len(streams)) if at != stream]
            total += sum(
                ts <= now < ts + length
                and not all(closed(at, key, now) for at in others)
                and not is_over(key, now)
                for ts, key in rows
            )
    return total / (max(times) - min(times))


# What is counted.

ROWS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=12)
STREAMS = st.lists(ROWS, min_size=2, max_size=3)


def kept_by(streams: Sequence[Sequence[Row]]) -> list[tuple[int, str]]:
    return [
        (at, promise)
        for at, rows in enumerate(streams)
        for promise in PROMISES
        if len(rows) > 1 and not any(breaks(promise, rows, each) for each in range(len(rows)))
    ]


@pytest.mark.jit_off
@given(STREAMS)
def test_what_breaks_is_counted_exactly(streams: list[list[Row]]) -> None:
    found = promises_of({"abc"[at]: rows for at, rows in enumerate(streams)})
    expected = {
        ("abc"[at], promise): sum(breaks(promise, rows, each) for each in range(len(rows)))
        for at, rows in enumerate(streams)
        for promise in PROMISES
        if len(rows) > 1
    }
    assert {(each.stream, each.promise): each.broken for each in found.possible} == expected


# Streams that keep something: times grow, and keys with them or without coming back.
KEPT = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=10).map(
    lambda steps: [
        (sum(step[0] for step in steps[: at + 1]), sum(step[1] for step in steps[: at + 1]))
        for at in range(len(steps))
    ]
)


@pytest.mark.jit_off
@given(st.lists(KEPT | ROWS, min_size=2, max_size=3), st.integers(0, 8))
def test_what_is_saved_is_counted_exactly(streams: list[list[Row]], length: int) -> None:
    found = promises_of({"abc"[at]: rows for at, rows in enumerate(streams)}, f"{length} us")
    kept = kept_by(streams)
    times = [row[0] for rows in streams for row in rows]
    if not times or min(times) == max(times):
        assert found.live is None
        return
    assert found.live == pytest.approx(held(streams, length, {}))
    alone = {(each.stream, each.promise): each.live for each in found.possible}
    for at, rows in enumerate(streams):
        for promise in PROMISES if len(rows) > 1 else ():
            expected = held(streams, length, {at: [promise]}) if (at, promise) in kept else None
            assert alone["abc"[at], promise] == (expected and pytest.approx(expected))
    proposed = {
        at: [e.promise for e in found.possible if e.is_proposed and e.stream == "abc"[at]]
        for at in range(len(streams))
    }
    assert found.live_proposed == pytest.approx(held(streams, length, proposed))
    assert found.live_proposed <= found.live


# What is proposed.


def hinted(found: PromiseProfile, names: Sequence[str]) -> list[ps.Stream]:
    """The streams, as written by hints; plain where there is none."""
    return [
        eval(found.hints[name], {"ps": ps})  # noqa: S307  what a user would paste
        if name in found.hints
        else ps.Stream(name, time="ts")
        for name in names
    ]


@given(st.lists(KEPT | ROWS, min_size=2, max_size=3), st.integers(0, 8))
def test_a_proposal_holds_on_the_streams_it_was_made_of(
    streams: list[list[Row]], length: int
) -> None:
    names = "abc"[: len(streams)]
    rows = dict(zip(names, streams, strict=True))
    found = promises_of(rows, f"{length} us")
    for each in found.possible:
        assert not (each.is_proposed and each.broken)
    promising = ps.WindowJoin(hinted(found, names), on="k", within=f"{length} us")
    tables = {name: table(each) for name, each in rows.items()}
    expected = query(names, f"{length} us").start().push(tables)
    answer = promising.start(promises="error").push(tables)
    order = [(name, "ascending") for name in expected.column_names]
    assert answer.sort_by(order) == expected.sort_by(order)


def live_in_join(streams: Mapping[str, Sequence[Row]], join: ps.WindowJoin) -> float:
    """Live tuples of a running join on average, looked at between any two times."""
    times = sorted({row[0] for rows in streams.values() for row in rows})
    schemas = {name: table([]).schema for name in streams}
    total = 0
    with join.start(schemas=schemas, promises="error") as running:
        for now in range(times[0], times[-1]):
            running.push(
                {
                    name: table([(2 * ts, key) for ts, key in rows if ts == now])
                    for name, rows in streams.items()
                }
            )
            for name in streams:
                running.advance(name, 2 * now + 1)
            total += running.metrics.live
    return total / (times[-1] - times[0])


@pytest.mark.parametrize("names", ["ab", "abc"])
@pytest.mark.parametrize("promise", PROMISES)
def test_a_join_holds_as_many_tuples_as_profile_says(names: str, promise: str) -> None:
    """Of `increasing` only keys that its stream brings, since others go when windows are swept."""
    first = [(ts, ts // (1 if promise == "unique" else 3)) for ts in range(60)]
    others = {name: [(ts + 2, key + at) for ts, key in first] for at, name in enumerate(names[1:])}
    streams = {names[0]: first, **others}
    found = promises_of(streams, "9 us")
    (alone,) = (e.live for e in found.possible if (e.stream, e.promise) == (names[0], promise))
    assert alone is not None
    assert found.live is not None
    plain = query(names, "18 us")
    promising = query(names, "18 us", **{names[0]: [promise]})
    assert live_in_join(streams, plain) == pytest.approx(found.live)
    assert live_in_join(streams, promising) == pytest.approx(alone)
    assert alone < found.live


def test_one_promise_does_for_what_others_imply() -> None:
    found = promises_of({"a": [(ts, ts) for ts in range(9)], "b": [(ts, ts) for ts in range(9)]})
    assert found.hints["a"] == 'ps.Stream("a", time="ts", unique=True)'


def test_a_hint_keeps_what_a_stream_says_already() -> None:
    streams = [
        ps.Stream("a b", time="ts", window="1 minute", lateness="2 seconds", clustered=True),
        ps.Stream("b", time="ts", window="1 hour", expires={"a b": "until"}),
    ]
    first = table([(ts, ts) for ts in range(9)])
    second = first.append_column("until", first["ts"])
    join = ps.WindowJoin(streams, on="k")
    found = profile_streams(join, {"a b": first, "b": second}).promises
    assert found is not None
    for hint, stream in zip(found.hints.values(), streams, strict=False):
        written = eval(hint, {"ps": ps})  # noqa: S307
        assert (written.name, written.window) == (stream.name, stream.window)
        assert (written.lateness, written.expires) == (stream.lateness, stream.expires)
        assert written.unique
        assert written.clustered == stream.clustered


def test_promises_that_a_join_cannot_use_are_not_looked_for() -> None:
    rows = table([(ts, ts) for ts in range(9)])
    text = rows.set_column(1, "k", rows["k"].cast(pa.string()))

    def found(join: ps.WindowJoin, given: pa.Table) -> set[str]:
        profile = profile_streams(join, {"a": given, "b": given}).promises
        assert profile is not None
        return {each.promise for each in profile.possible}

    assert found(query("ab"), rows) == {"unique", "clustered", "increasing"}
    assert found(query("ab"), text) == {"unique", "clustered"}
    assert found(query("ab", "5 rows"), rows) == set()
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    by_order = ps.WindowJoin(streams, where="a.k < b.k", within="1 s")
    assert found(by_order, rows) == set()
    assert profile_streams(query("ab"), {"a": rows, "b": rows}, promises=False).promises is None


def test_a_sample_is_cut_where_all_streams_are_known() -> None:
    """Of the first stream half is looked at: what the second brings behind that does not count."""
    line = [(ts, ts) for ts in range(20)]
    lines = [Line(10), Line(100)]
    for each in lines:
        arrivals = table(line)
        words = arrivals["k"].to_numpy().reshape(1, -1)
        each.add(Arrivals(arrivals["ts"].to_numpy(), words, {}))
    assert [each.is_cut for each in lines] == [True, False]
    assert [len(each) for each in lines] == [10, 20]
    window = parse_window("3 us", "a window")
    cut = Lifetimes(lines, [window, window]).average_live({0: ["unique"]})
    short = [row for row in line if row[0] < 10]
    assert cut == pytest.approx(held([short, short], 3, {0: ["unique"]}))


def test_marked_rows_are_no_tuples() -> None:
    rows = table([(ts * 1_000_000, ts // 2) for ts in range(11)])
    marked = rows.append_column("end", pa.array([ts % 2 == 1 for ts in range(11)]))
    streams = [ps.Stream("a", time="ts", punctuation="end"), ps.Stream("b", time="ts")]
    profile = profile_streams(
        ps.WindowJoin(streams, on="k", within="2 s"), {"a": marked, "b": rows}
    )
    assert profile.streams[0].taking_part == 6
    assert profile.workload.punctuation_rates == {"a": pytest.approx(0.5)}
    assert profile.promises is not None
    assert [each.broken for each in profile.promises.possible if each.stream == "a"] == [0, 0, 0]


# The command.


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["profile", *(str(argument) for argument in arguments)])


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Orders that come once, and are paid twice."""
    orders = [(second, second) for second in range(100)]
    payments = [(second + gap, second) for second in range(100) for gap in (2, 4)]
    paths = []
    for name, rows in (("orders", orders), ("payments", payments)):
        of_seconds = table([(second * 1_000_000, key) for second, key in rows])
        times = of_seconds["ts"].cast(pa.timestamp("us"))
        paths.append(tmp_path / f"{name}.parquet")
        pq.write_table(of_seconds.set_column(0, "ts", times), paths[-1])
    return paths


USUAL = ("--on", "k", "--time", "ts")


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_what_the_command_says_of_promises(files: list[Path]) -> None:
    result = run(*files, *USUAL, "--within", "10 seconds")
    assert result.exit_code == 0, result.output
    shown = words(result.stdout)
    assert "what streams could promise" in shown
    assert any(line.startswith("orders unique none of 100 ") for line in shown)
    assert "payments unique 100 of 200 (50.00%) -" in shown
    assert 'ps.Stream("orders", time="ts", window="10 seconds", unique=True)' in shown
    assert not any(line.startswith('ps.Stream("payments"') for line in shown)
    assert any(line.startswith("the windows then hold") for line in shown)
    assert "sample" not in result.stdout


def test_a_sample_is_called_one(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.runtime.profile.Line", partial(Line, 50))
    result = run(*files, *USUAL, "--within", "10 seconds")
    shown = words(result.stdout)
    assert "only a sample was looked at: the first 50 tuples of a file" in shown
    assert "write, if you know that what holds in this sample always will:" in shown


def test_one_file_has_promises_too(files: list[Path]) -> None:
    shown = words(run(files[0], *USUAL).stdout)
    assert "orders unique none of 100" in shown
    assert not any("instead of" in line for line in shown)


def test_promises_for_programs(files: list[Path]) -> None:
    result = run(*files, *USUAL, "--within", "10 seconds", "--json")
    promises: dict[str, Any] = json.loads(result.stdout)["promises"]
    assert list(promises["hints"]) == ["orders"]
    assert promises["live_proposed"] < promises["live"]
    assert promises["possible"][0]["broken"] == 0
