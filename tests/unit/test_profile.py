"""What is measured of streams, against streams of which it is known."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import penstock as ps
from penstock.cli import app
from penstock.cli.workload_file import read_workload
from penstock.runtime.profile import Profile, profile_streams
from penstock.samples import uniform, zipf
from penstock.stats.heavy_keys import HeavyKeys
from penstock.stats.key_sketch import KeySketch
from penstock.stats.slots import Slots

WORDS = st.lists(st.integers(-3, 40), max_size=200)
SPLITS = st.lists(st.integers(0, 200), max_size=6)


def split(rows: Any, places: list[int]) -> Iterator[Any]:
    """In pieces that end at these places."""
    ends = sorted({min(place, len(rows)) for place in places} | {len(rows)})
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        yield rows[begin:end] if isinstance(rows, np.ndarray) else rows.slice(begin, end - begin)


def query(window: str = "10 seconds", names: str = "ab", **options: Any) -> ps.WindowJoin:
    if "where" not in options:
        options = {"on": "k", **options}
    return ps.WindowJoin([ps.Stream(name, time="ts") for name in names], within=window, **options)


# The sketches.


@given(WORDS, WORDS, SPLITS)
def test_small_sketches_are_exact(left: list[int], right: list[int], places: list[int]) -> None:
    sketches = []
    for words in (left, right):
        sketch = KeySketch()
        for piece in split(np.array(words, np.int64), places):
            sketch.add(piece)
        assert (sketch.rows, sketch.distinct) == (len(words), len(set(words)))
        assert sketch.error == 0
        sketches.append(sketch)
    counts = Counter(left), Counter(right)
    met = sum(counts[0][key] * counts[1][key] for key in counts[0])
    assert sketches[0].meets(sketches[1]) == met


@pytest.mark.parametrize("seed", range(5))
def test_large_sketches_keep_to_their_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = KeySketch(1024, seed), KeySketch(1024, seed)
    keys = rng.integers(-(1 << 62), 1 << 62, 50_000)
    for _ in range(4):
        left.add(rng.choice(keys, 50_000))
        right.add(rng.choice(keys, 50_000))
    # Of so many keys this share comes in 200,000 draws.
    expected = 50_000 * (1 - np.exp(-4))
    assert left.error == pytest.approx(1 / np.sqrt(1022))
    assert left.distinct == pytest.approx(expected, rel=5 * left.error)
    pairs = left.rows * right.rows
    assert left.meets(right) / pairs == pytest.approx(1 / 50_000, rel=6 * left.error)


@given(st.lists(st.integers(0, 12), max_size=300), SPLITS)
def test_heavy_keys_are_too_low_by_little(words: list[int], places: list[int]) -> None:
    heavy = HeavyKeys(4)
    for piece in split(np.array(words, np.int64), places):
        heavy.add(piece)
    highest = max(Counter(words).values(), default=0)
    assert heavy.rows == len(words)
    assert highest - len(words) / 4 <= heavy.share() * len(words) + 1e-9
    assert heavy.share() * len(words) <= highest + 1e-9


@given(st.lists(st.integers(-20, 20), max_size=200), SPLITS, st.integers(1, 5))
def test_slots_are_held_whole(numbers: list[int], places: list[int], most: int) -> None:
    def filled(pieces: Iterator[Any]) -> Slots[list[int]]:
        slots: Slots[list[int]] = Slots(most, list)
        for piece in pieces:
            for held, rows in slots.divide(piece):
                held.extend(piece[rows].tolist())
        return slots

    array = np.array(numbers, np.int64)
    slots = filled(split(array, places))
    assert slots.held == filled(iter([array])).held
    assert len(slots.held) == min(most, len(set(numbers)))
    for slot, held in slots.held.items():
        assert held == [slot] * numbers.count(slot)
    ends = {min(numbers, default=None), max(numbers, default=None)}
    assert len(slots.whole()) == len(set(slots.held) - ends)


# Streams.


def measured(work: Any, join: ps.WindowJoin, batch_rows: int = 1_000) -> Profile:
    batches = {
        name: (
            batch
            for start in range(0, work.rows, batch_rows)
            for batch in work.table(stream, start, start + batch_rows).to_batches()
        )
        for name, stream in zip(join.names, work.streams, strict=True)
    }
    return profile_streams(join, batches)


@pytest.mark.parametrize("string_keys", [False, True])
def test_uniform_streams(string_keys: bool) -> None:
    work = uniform(seed=3, rows=20_000, rate=200, keys=50, payload=1, string_keys=string_keys)
    profile = measured(work, query())
    for each in profile.streams:
        assert (each.rows, each.taking_part) == (20_000, 20_000)
        assert each.rate == pytest.approx(200, rel=1e-3)
        (keys,) = each.distinct
        assert (keys.columns, keys.overall, keys.in_window, keys.error) == (("k",), 50, 50, 0)
        assert each.heaviest_share == pytest.approx(1 / 50, rel=0.2)
        assert each.row_bytes == pytest.approx(40 if string_keys else 24)
    workload = profile.workload
    assert workload.window_tuples(query(), "a") == pytest.approx(2_000, rel=1e-3)
    assert workload.distinct_keys("a", ["k"]) == 50
    assert workload.selectivity(query(), 0, 1) == pytest.approx(1 / 50, rel=0.05)


def test_skewed_streams_match_more_often() -> None:
    work = zipf(seed=3, rows=20_000, rate=1_000, keys=1_000, skew=1.0)
    profile = measured(work, query("5 seconds"))
    shares = 1 / np.arange(1, 1_001)
    shares /= shares.sum()
    assert profile.streams[0].heaviest_share == pytest.approx(shares[0], rel=0.05)
    assert profile.streams[0].top_share == pytest.approx(shares[:10].sum(), rel=0.05)
    assert profile.selectivities["a", "b"] == pytest.approx((shares**2).sum(), rel=0.1)


def test_keys_that_move_on_are_counted_in_a_window() -> None:
    """Every key lives for a second: over all time there are a hundred times as many as in it."""
    ts = np.arange(10_000) * 10_000  # 100 in a second
    table = pa.table({"ts": ts, "k": ts // 1_000_000 * 1_000 + np.arange(10_000) % 20})
    profile = profile_streams(query("1 second"), {"a": table, "b": table})
    (keys,) = profile.streams[0].distinct
    assert (keys.overall, keys.in_window) == (2_000, 20)
    assert profile.selectivities["a", "b"] == pytest.approx(1 / 40)  # as in windows: see below
    for window in ("100 rows", "200 arrivals"):
        (keys,) = profile_streams(query(window), {"a": table}).streams[0].distinct
        assert keys.in_window == 20
    (keys,) = profile_streams(query("5 rows per key"), {"a": table}).streams[0].distinct
    assert keys.in_window == 2_000


@pytest.mark.parametrize(("lag_s", "seen"), [(0, 1.0), (0.5, 0.75), (1, 0.5)])
def test_keys_that_follow_each_other(lag_s: float, seen: float) -> None:
    """Every key comes once in each stream: the truth is one match for each tuple, and what is seen
    of it depends on how far apart they come."""
    ts = np.arange(50_000) * 1_000
    first = pa.table({"ts": ts, "k": np.arange(50_000)})
    second = pa.table({"ts": ts + int(lag_s * 1e6), "k": np.arange(50_000)})
    profile = profile_streams(query("1 second"), {"a": first, "b": second})
    matches = query("1 second").start().push(a=first, b=second).num_rows
    pairs = 50_000 * 2_001  # those of a second before and after
    truth = matches / pairs
    assert profile.selectivities["a", "b"] == pytest.approx(seen * truth, rel=0.1)
    assert profile.streams[0].distinct[0].in_window == 1_000


def test_streams_in_fewer_windows_than_three_count_as_one() -> None:
    table = pa.table({"ts": [999_999, 1_000_000, 1_000_001], "k": [1, 2, 3]})
    (keys,) = profile_streams(query("1 second"), {"a": table}).streams[0].distinct
    assert keys.in_window == 3


@pytest.mark.jit_off
def test_filters_and_missing_keys_take_no_part() -> None:
    ts = np.arange(1_000) * 1_000_000
    keys = [None if row % 4 == 0 else row % 7 for row in range(1_000)]
    table = pa.table({"ts": ts, "k": keys, "x": np.arange(1_000) % 2})
    half = query(where="a.k = b.k AND a.x = 1")
    first, second = profile_streams(half, {"a": table, "b": table}).streams
    assert (first.taking_part, second.taking_part) == (500, 750)
    assert first.rate == pytest.approx(0.5, rel=0.01)
    assert second.rate == pytest.approx(0.75, rel=0.01)


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.none() | st.integers(-5, 5)), min_size=1, max_size=40
)
# What holds of two rows (k, x); and whether rows without an x take part, for those that are found
# by the order of it do not.
PREDICATES: dict[str, tuple[Any, bool]] = {
    "a.k = b.k": (lambda a, b: a[0] == b[0], True),
    "a.k = b.k AND a.x < b.x": (
        lambda a, b: a[0] == b[0] and None not in (a[1], b[1]) and a[1] < b[1],
        True,
    ),
    "abs(a.x - b.x) <= 1": (lambda a, b: abs(a[1] - b[1]) <= 1, False),
    "a.x <> b.k": (lambda a, b: a[1] is not None and a[1] != b[0], True),
}


@pytest.mark.jit_off
@given(ROWS, ROWS, st.sampled_from(list(PREDICATES)), SPLITS)
def test_selectivity_of_few_rows_is_exact(
    left: list[Any], right: list[Any], where: str, places: list[int]
) -> None:
    holds, with_nulls = PREDICATES[where]
    streams = {
        name: split(
            pa.table(
                {
                    "ts": np.arange(len(rows)),
                    "k": [row[0] for row in rows],
                    "x": pa.array([row[1] for row in rows], pa.int64()),
                }
            ),
            places,
        )
        for name, rows in (("a", left), ("b", right))
    }
    found = profile_streams(query("unbounded", where=where), streams).selectivities
    sides = [[row for row in rows if with_nulls or row[1] is not None] for rows in (left, right)]
    pairs = [holds(a, b) for a in sides[0] for b in sides[1]]
    if any(pairs):
        assert found["a", "b"] == pytest.approx(sum(pairs) / len(pairs))
    else:  # known to be rare, or not known
        assert found.get(("a", "b"), 0) < 1 / max(len(pairs), 1)


@pytest.mark.jit_off
@given(st.lists(st.tuples(st.integers(0, 9_000_000), st.integers(0, 9)), max_size=60), SPLITS)
def test_batches_do_not_count(rows: list[tuple[int, int]], places: list[int]) -> None:
    table = pa.table(
        {
            "ts": pa.array([ts for ts, _ in rows], pa.int64()),
            "k": pa.array([key for _, key in rows], pa.int64()),
        }
    )
    own = query("1 second")
    whole = profile_streams(own, {"a": table, "b": table})
    parts = profile_streams(own, {"a": split(table, places), "b": split(table, places)})
    assert whole == parts


@pytest.mark.jit_off
def test_a_stream_without_a_span_is_measured_by_the_others() -> None:
    ts = np.arange(100) * 1_000_000
    long = pa.table({"ts": ts, "k": ts})
    profile = profile_streams(query(), {"a": long, "b": long.slice(0, 1)})
    assert profile.workload.rate("b") == pytest.approx(1 / 99)
    assert profile_streams(query(), {"a": long, "b": long.slice(0, 0)}).workload.rate("b") == 0
    assert profile_streams(query(), {"a": long, "b": iter([])}).workload.rate("b") == 0
    alone = profile_streams(query(), {"a": long.slice(0, 1)})
    assert alone.streams[0].rate is None
    with pytest.raises(ps.PlanError, match="cannot be told from 1 rows that span no time"):
        _ = alone.workload


@pytest.mark.jit_off
def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ps.InputError, match=r"\['c'\] are no streams"):
        profile_streams(query(), {"c": pa.table({"ts": [1], "k": [1]})})
    with pytest.raises(ps.SchemaError, match="no key column 'k'"):
        profile_streams(query(), {"a": pa.table({"ts": [1]})})
    arriving = ps.WindowJoin(
        [ps.Stream("a", time=ps.ARRIVAL), ps.Stream("b", time="ts")], on="k", within="1 s"
    )
    with pytest.raises(ps.PlanError, match="takes its time of arrival"):
        profile_streams(arriving, {"a": pa.table({"k": [1]})})


# A running join.


def pushed(join: ps.Join, work: Any, batch_rows: int = 500) -> None:
    for start in range(0, work.rows, batch_rows):
        join.push(
            {
                name: work.table(stream, start, start + batch_rows)
                for name, stream in zip(join.query.names, work.streams, strict=True)
            }
        )


@pytest.mark.parametrize(
    "window", ["10 seconds", "1000 rows", "30 rows per key", "1000 arrivals", "unbounded"]
)
def test_a_running_join_knows_its_streams(window: str) -> None:
    work = uniform(seed=3, rows=5_000, rate=100, keys=20, payload=1)
    with query(window).start() as join:
        pushed(join, work)
        workload = join.workload()
        before = join.metrics
        again = query(window).restore(join.snapshot())
        if window in ("10 seconds", "1000 rows", "unbounded"):  # others do not hold all of late
            assert again.workload().rate("b") == pytest.approx(100, rel=0.05)
        assert join.metrics == before
    workload.check(join.query)
    assert workload.rate("a") == pytest.approx(100, rel=0.05)
    assert workload.distinct_keys("a", ["k"]) == 20
    assert workload.selectivity(join.query, 0, 1) == pytest.approx(1 / 20, rel=0.1)
    assert workload.bytes_of_row("b") == pytest.approx(24, abs=2)
    assert workload.windows is None


@pytest.mark.slow
def test_a_running_join_by_several_paths() -> None:
    work = uniform(seed=3, rows=3_000, rate=100, keys=20, payload=1, streams=("a", "b", "c"))
    chain = query(names="abc", where="a.k = b.k AND abs(b.v - c.v) <= 100000000")
    with chain.start() as join:
        pushed(join, work)
        workload = join.workload()
    assert workload.distinct_keys("b", ["k"]) == 20
    assert workload.distinct_keys("c", ["v"]) > 900
    assert workload.selectivity(chain, 0, 1) == pytest.approx(1 / 20, rel=0.1)
    # Of numbers below 2^30 so far apart.
    near = 100_000_000 / 2**30
    assert workload.selectivity(chain, 1, 2) == pytest.approx(2 * near - near**2, rel=0.2)
    assert workload.selectivity(chain, 0, 2) == 1


def test_a_running_join_under_limits_tells_the_rates_that_came() -> None:
    work = uniform(seed=3, rows=3_000, rate=100, keys=20)
    with query().start(limits=ps.Limits(memory="50 rows")) as join:
        pushed(join, work)
        assert join.workload().rate("a") == pytest.approx(100, rel=0.05)


def test_a_running_join_tells_rates_of_late_and_windows_of_now() -> None:
    with query().start() as join:
        for gap_us, first in ((1_000_000, 0), (1_000, 2_000_000_000)):
            for start in range(0, 2_000, 5):
                ts = first + np.arange(start, start + 5) * gap_us
                table = pa.table({"ts": ts, "k": np.arange(5)})
                join.push(a=table, b=table)
        join.resize("a", "5 seconds")
        workload = join.workload()
    assert workload.rate("a") == pytest.approx(1_000, rel=0.01)
    assert workload.window_tuples(query(), "a") == pytest.approx(5_000, rel=0.01)
    assert workload.window_tuples(query(), "b") == pytest.approx(10_000, rel=0.01)


@pytest.mark.jit_off
def test_a_join_that_has_seen_nothing_knows_nothing() -> None:
    table = pa.table({"ts": [5], "k": [1]})
    with query().start() as join:
        with pytest.raises(ps.StateError, match="rates are not known yet"):
            join.workload()
        join.push(a=table, b=table)
        with pytest.raises(ps.StateError, match="1 of 'a', 1 of 'b', span no time; push more"):
            join.workload()
        join.push(a=pa.table({"ts": [2_000_005], "k": [1]}))
        assert join.workload().rate("a") == pytest.approx(0.5)
        assert join.workload().rate("b") == pytest.approx(0.5)
        join.finish()
        assert join.workload().distinct in ({}, None)


# The command.


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["profile", *(str(argument) for argument in arguments)])


def failure(result: Result) -> str:
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    work = uniform(seed=3, rows=5_000, rate=100, keys=20, payload=1)
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, stream in zip(paths, work.streams, strict=True):
        pq.write_table(work.table(stream), path)
    return paths


USUAL = ("--on", "k", "--time", "ts")


def test_the_table(files: list[Path]) -> None:
    result = run(*files, *USUAL, "--within", "10 seconds")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    for line in (
        r"rows +5,000 +5,000",
        r"span +49 seconds +49 seconds",
        r"rate +(99\.\d+|100(\.\d)?) /s +(99\.\d+|100(\.\d)?) /s",
        r"distinct keys +20 +20",
        r"in a window +20 +20",
        r"heaviest key +\d\.\d\d% +\d\.\d\d%",
        r"bytes a row +24\.\d +24\.\d",
        r"window +10 seconds +10 seconds",
        r"selectivity of a and b: 0\.0\d+",
    ):
        assert re.search(rf"^ ?{line} *$", result.stdout, re.MULTILINE), (line, result.stdout)
    assert "taking part" not in result.stdout


def test_the_workload_is_saved_and_read(files: list[Path], tmp_path: Path) -> None:
    output = tmp_path / "workload.json"
    result = run(*files, *USUAL, "--within", "10 seconds", "--within", "20 seconds", "-o", output)
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith(f"workload in {output}\n")
    workload = read_workload(output)
    assert workload.rate("a") == pytest.approx(100, rel=0.01)
    assert workload.distinct_keys("b", ["k"]) == 20
    assert "give --force" in failure(run(*files, *USUAL, "-o", output))
    assert run(*files, *USUAL, "-o", output, "--force").exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"a.parquet", "b.parquet", output.name}


def test_json_for_programs(files: list[Path]) -> None:
    result = run(*files, "--time", "ts", "--where", "a.k = b.k AND a.v > 0", "--json")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert [each["name"] for each in shown["streams"]] == ["a", "b"]
    assert ps.Workload.from_dict(shown["workload"]).rate("b") == pytest.approx(100, rel=0.01)


def test_one_file_and_three(files: list[Path], tmp_path: Path) -> None:
    alone = run(files[0], *USUAL, "--json")
    assert alone.exit_code == 0, alone.output
    assert list(json.loads(alone.stdout)["workload"]["rates"]) == ["a"]
    other = tmp_path / "c.csv"
    other.write_text(
        "id,at\n" + "".join(f"{n},{datetime(2024, 1, 1, 0, 0, n)}\n" for n in range(9))
    )
    result = run(
        *files, other, "--on", "k=k=id", "--time", "ts", "--time", "ts", "--time", "at",
        "--names", "x,y,z", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["workload"]["rates"]["z"] == pytest.approx(1)


def test_one_row_has_no_rate(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("k,ts\n1,2024-01-01\n")
    result = run(path, *USUAL)
    assert result.exit_code == 0, result.output
    assert re.search(r"rate +unknown", result.stdout)
    assert json.loads(run(path, *USUAL, "--json").stdout)["workload"] is None
    assert "the rate of stream 'a' cannot be told" in failure(
        run(path, *USUAL, "-o", tmp_path / "w.json")
    )
    assert not (tmp_path / "w.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.parquet", "--time", "ts"], "the streams have no key; give --on, or --where"),
        (["a.parquet", "--on", "k"], "the files have no time; give --time"),
        (["a.parquet", *USUAL, "--time", "ts"], "once for each of the 1 in their order, got 2"),
        (["a.parquet", "b.parquet", *USUAL, *["--within", "1 s"] * 3], "--within is given once"),
        (["none.csv", *USUAL], "does not exist; check the path"),
        (["a.parquet", "--on", "x", "--time", "ts"], "has no column 'x'; its columns are"),
        (["a.parquet", "b.parquet", "--on", "k=", "--time", "ts"], "cannot read --on 'k='"),
        (["a.parquet", *USUAL, "--within", "soon"], "write a number and a unit"),
        (["a.parquet", *USUAL, "--names", "x,y"], "--names needs one name, got 'x,y'"),
        (["a.parquet", *USUAL, "--where", "a.k >"], "cannot read where="),
        (["a.parquet", *USUAL, "-o", "none/w.json"], "there is no directory"),
    ],
)
def test_errors_are_one_line(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(files[0].parent)
    assert message in failure(run(*arguments))


def test_a_file_that_is_no_workload_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    with pytest.raises(ps.PenstockError, match="No such file or directory; check the path"):
        read_workload(path)
    for text, message in (
        ("{", "it must be JSON"),
        ("[]", "an object with rates"),
        ('{"rates": -1}', "0 or more, got -1"),
    ):
        path.write_text(text)
        with pytest.raises(ps.PenstockError, match=message):
            read_workload(path)
