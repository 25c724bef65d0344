"""`penstock size`: what it says of a recording holds when the engine is run again."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import penstock as ps
from penstock.cli import app
from penstock.errors import PlanError
from penstock.lab.sizing import Recording, size
from penstock.lab.sizing.ceiling import ceiling, ceiling_curve
from penstock.lab.sizing.curve import TOLERANCE, trace
from penstock.lab.sizing.policy_curve import Curve, Enough
from penstock.lab.sizing.recommendation import recommended
from penstock.lab.sizing.replay import exact_replay, replay
from penstock.lab.sizing.sizing import Request, Sizing
from penstock.samples import zipf

# Small, skewed, and the same for all tests that only look at what is said.
WORK = zipf(keys=300, rows=3_000, rate=1_000.0, payload=2, streams=("a", "b"))
TABLES = {name: WORK.table(name) for name in WORK.streams}
STREAMS = [ps.Stream(name, time="ts") for name in "ab"]
QUERY = ps.WindowJoin(STREAMS, on="k", within="200 milliseconds")


def rows_at(ts: list[int], keys: list[int]) -> pa.Table:
    return pa.table({"ts": pa.array(ts, pa.int64()), "k": pa.array(keys, pa.int64())})


def recall_of(query: ps.WindowJoin, tables: dict[str, Any], limits: ps.Limits) -> float:
    """In one push, which is another way of feeding than that of a sizing."""
    found = []
    for each in (None, limits):
        with query.start(limits=each) as join:
            join.push(tables)
            join.finish()
            found.append(join.metrics.produced)
    return found[1] / found[0]


@pytest.fixture(scope="module")
def sized() -> Sizing:
    return size(Recording.of(QUERY, TABLES), Request(with_ceiling=False))


# The exact need.


INSTANTS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3)), max_size=30)
WINDOWS = ("5 us", "0 us", "20 us", "tumbling 16 us", "unbounded")


@given(
    st.lists(INSTANTS, min_size=2, max_size=3),
    st.sampled_from(WINDOWS),
    st.sampled_from(["inner", "semi"]),
)
@example([[(0, 0), (0, 0)], [(1, 0)]], "5 us", "semi")  # both wait for it
@example([[(0, 0), (2, 0)], [(1, 0), (2, 1)]], "5 us", "semi")  # one waits, one has been waited for
@example([[(5, 0), (5, 1)], [(5, 0), (3, 1)]], "0 us", "semi")
def test_the_need_is_the_most_live_at_an_instant(
    rows: list[list[tuple[int, int]]], window: str, how: str
) -> None:
    names = "abc"[: len(rows)]
    how = how if len(rows) == 2 else "inner"
    query = ps.WindowJoin(
        [ps.Stream(name, time="ts") for name in names], on="k", within=window, how=how
    )
    tables = {
        name: rows_at([ts for ts, _ in each], [key for _, key in each])
        for name, each in zip(names, rows, strict=True)
    }
    peak = 0
    with query.start(schemas={name: each.schema for name, each in tables.items()}) as join:
        for now in range(61):
            arriving = {
                name: each.filter(pa.compute.equal(each["ts"], now))
                for name, each in tables.items()
            }
            # All that has ended is gone before what comes now is counted.
            for name in names:
                join.advance(name, now)
            join.push(arriving)
            peak = max(peak, join.metrics.live)
    exact = exact_replay(Recording.of(query, tables))
    assert exact.need.rows.tolist() == [peak]
    assert exact.here == peak == exact.need.streams.sum()
    assert exact.produced.tolist() == [join.metrics.produced]


def test_the_need_is_enough_and_less_is_not() -> None:
    """Of streams in step, where what has ended is gone before it is counted."""
    rng = np.random.default_rng(5)
    ts = np.sort(rng.integers(0, 3_000, 900)).tolist()
    tables = {name: rows_at(ts, rng.integers(0, 20, 900).tolist()) for name in "ab"}
    query = ps.WindowJoin(STREAMS, on="k", within="100 us")
    recording = Recording.of(query, tables)
    exact = exact_replay(recording)
    full = replay(recording, exact.cuts, ps.Limits(f"{exact.here} rows", loss="off"))
    assert full.held is None
    assert full.produced.tolist() == exact.produced.tolist()
    less = replay(recording, exact.cuts, ps.Limits(f"{exact.here - 1} rows", loss="off"))
    assert less.held is not None


def test_rows_out_of_order_are_put_in_order() -> None:
    shuffled = {
        name: table.take(np.random.default_rng(1).permutation(len(table)))
        for name, table in TABLES.items()
    }
    exact = exact_replay(Recording.of(QUERY, TABLES))
    again = exact_replay(Recording.of(QUERY, shuffled))
    assert (again.produced.tolist(), again.here) == (exact.produced.tolist(), exact.here)


def test_the_need_is_that_of_rows_in_order_whatever_may_be_late() -> None:
    patient = replace(
        QUERY,
        streams=[replace(each, lateness="1 second", idle_timeout="1 hour") for each in STREAMS],
    )
    exact, same = (exact_replay(Recording.of(query, TABLES)) for query in (QUERY, patient))
    assert (exact.here, exact.produced.tolist()) == (same.here, same.produced.tolist())
    limits = ps.Limits("100 rows", loss="off")
    tallies = [
        replay(Recording.of(query, TABLES), exact.cuts, limits) for query in (QUERY, patient)
    ]
    assert tallies[0].produced.tolist() == tallies[1].produced.tolist()


def test_the_bytes_are_about_what_the_exact_join_holds(sized: Sizing) -> None:
    held = 0
    with QUERY.start() as join:
        for batch in WORK.batches(100):
            join.push(batch)
            held = max(held, join.metrics.bytes)
    assert held / 2 < sized.need_bytes < held * 2


# The curve.


class Measured:
    def __init__(self, recall: float) -> None:
        self.recall = recall


@given(
    st.integers(2, 5_000),
    st.lists(st.floats(0.01, 0.99), min_size=1, max_size=40),
    st.lists(st.floats(0.05, 1), min_size=1, max_size=3),
)
def test_a_curve_closes_in_on_every_recall(
    need: int, steps: list[float], recalls: list[float]
) -> None:
    heights = np.sort(steps)

    def recall(memory: int) -> float:
        if memory >= need:
            return 1.0
        return float(np.interp(memory, np.linspace(0, need, len(heights)), heights))

    tried: list[int] = []

    def measure(memory: int) -> Measured:
        tried.append(memory)
        return Measured(recall(memory))

    points = trace(measure, need, recalls)
    assert list(points) == sorted(points)
    assert len(tried) == len(points) <= 9 + 14 * len(recalls)
    for wanted in recalls:
        enough = min(memory for memory, point in points.items() if point.recall >= wanted)
        too_little = max((memory for memory in points if memory < enough), default=0)
        assert too_little == 0 or recall(too_little) < wanted
        assert enough - too_little <= max(1, TOLERANCE * enough)


def test_a_recall_that_is_never_had_is_given_up() -> None:
    points = trace(lambda memory: Measured(0.5), 100, [0.9])
    assert 200 <= max(points) <= 220


@pytest.mark.parametrize("policy", ["random", "oldest", "prob", "life", "expected_life", "age"])
def test_what_is_reported_was_measured(sized: Sizing, policy: str) -> None:
    """The memory reaches the recall when tried again, and the next that was tried does not."""
    recording = Recording.of(QUERY, TABLES)
    exact = exact_replay(recording)
    (curve,) = (each for each in sized.curves if each.policy == policy)

    def recall(memory: int) -> float:
        limits = ps.Limits(f"{memory} rows", shed=policy, loss="off")
        produced = replay(recording, exact.cuts, limits).produced
        return float(produced[0] / exact.produced[0])

    memories = [point.memory for point in curve.points]
    for wanted, enough in zip(sized.recalls, curve.enough, strict=True):
        assert enough is not None
        assert recall(enough.memory) == enough.measured >= wanted
        less = memories[memories.index(enough.memory) - 1]
        assert recall(less) < wanted
        assert enough.memory - less <= max(1, TOLERANCE * enough.memory)


def test_what_is_reported_holds_however_the_streams_are_pushed(sized: Sizing) -> None:
    for curve in sized.curves:
        for wanted, enough in zip(sized.recalls, curve.enough, strict=True):
            assert enough is not None
            limits = ps.Limits(f"{enough.memory} rows", shed=curve.policy)
            assert recall_of(QUERY, TABLES, limits) > wanted - 0.01, curve.policy


def test_recall_grows_with_memory(sized: Sizing) -> None:
    """But for chance, in what is drawn at random and in what is learned."""
    for curve in sized.curves:
        recalls = [point.recall for point in curve.points]
        assert all(later > earlier - 0.01 for earlier, later in itertools.pairwise(recalls))
        assert recalls[-1] > 0.99


def test_by_worth_less_memory_is_enough(sized: Sizing) -> None:
    enough = {curve.policy: curve.enough[1] for curve in sized.curves}
    assert enough["prob"] is not None
    assert enough["oldest"] is not None
    assert enough["prob"].memory < 0.6 * enough["oldest"].memory
    assert 0.9 * sized.need < enough["oldest"].memory <= 1.02 * sized.need


def test_three_streams() -> None:
    query = ps.WindowJoin(
        [ps.Stream(name, time="ts") for name in "abc"], on="k", within="100 milliseconds"
    )
    work = zipf(keys=300, rows=2_000, rate=1_000.0, streams=("a", "b", "c"))
    tables = {name: work.table(name) for name in "abc"}
    found = size(Recording.of(query, tables), Request(policies=["prob"]))
    assert found.no_ceiling == "it is known of joins of two streams, and these are 3"
    (curve,) = found.curves
    enough = curve.enough[1]
    assert enough is not None
    assert enough.memory < found.need
    limits = ps.Limits(f"{enough.memory} rows")
    assert recall_of(query, tables, limits) == pytest.approx(enough.measured, abs=0.02)


@pytest.mark.slow
def test_semi_joins() -> None:
    query = replace(QUERY, how="semi")
    found = size(Recording.of(query, TABLES), Request(policies=["prob"]))
    assert found.no_ceiling == "it is known of inner joins, and this is a semi join"
    for curve in found.curves:
        enough = curve.enough[1]
        assert enough is not None
        limits = ps.Limits(f"{enough.memory} rows", shed=curve.policy)
        assert recall_of(query, TABLES, limits) == pytest.approx(enough.measured, abs=0.02)


def test_further_predicates_and_fixed_pools() -> None:
    query = ps.WindowJoin(STREAMS, on="k", within="200 milliseconds", where="a.v < b.v")
    asked = Request(policies=["prob"], pool="fixed", with_ceiling=False)
    found = size(Recording.of(query, TABLES), asked)
    enough = found.curves[0].enough[1]
    assert enough is not None
    limits = ps.Limits(f"{enough.memory} rows", pool="fixed")
    assert recall_of(query, TABLES, limits) == pytest.approx(enough.measured, abs=0.02)
    assert found.recommendation is not None
    assert found.recommendation.limits == limits
    assert found.recommendation.to_yaml().endswith("  pool: fixed")


# The ceiling.


def test_the_ceiling_is_above_all_policies() -> None:
    tables = {name: table.slice(0, 800) for name, table in TABLES.items()}
    found = size(Recording.of(QUERY, tables), Request(policies=["prob", "life"]))
    assert found.ceiling is not None
    assert found.no_ceiling is None
    for point in found.ceiling.points:
        assert point.recall <= point.upper <= 1
        for curve in found.curves:
            limits = ps.Limits(f"{point.memory} rows", shed=curve.policy)
            assert recall_of(QUERY, tables, limits) <= point.upper
    for number, (wanted, least) in enumerate(zip(found.recalls, found.ceiling.least, strict=True)):
        assert least.enough is not None
        assert least.too_little < least.enough
        assert ceiling(QUERY, tables, least.enough, "shared")[0] >= wanted
        assert ceiling(QUERY, tables, least.too_little, "shared")[1] < wanted
        for curve in found.curves:
            enough = curve.enough[number]
            assert enough is not None
            assert enough.memory > least.too_little


def test_bounds_of_the_ceiling_are_kept_apart() -> None:
    """Of a best that is only known to within a tenth."""
    found = ceiling_curve(lambda memory: (0.9 * memory / 100, min(memory / 100, 1.0)), 100, [0.85])
    (least,) = found.least
    assert 95 <= least.enough <= 98  # 0.855 at the least
    assert 80 <= least.too_little < 85  # where it might just be


def test_what_the_best_is_refused_for_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any) -> Any:
        raise PlanError("more results than can be looked at")

    monkeypatch.setattr("penstock.lab.sizing.sizing.ceiling", refuse)
    found = size(Recording.of(QUERY, TABLES), Request(policies=["oldest"], recalls=[0.5]))
    assert found.ceiling is None
    assert found.no_ceiling == "more results than can be looked at"
    assert found.curves[0].enough[0] is not None


# The recommendation.


def curve(policy: str, memory: int | None, interval: Any = None) -> Curve:
    return Curve(policy, (), (None if memory is None else Enough(0.9, memory, 0.91, interval),))


def test_the_cheapest_policy_is_recommended_and_ties_go_to_prob() -> None:
    def chosen(*curves: Curve) -> tuple[str, int] | None:
        found = recommended(curves, 0.9, "shared")
        return None if found is None else (found.shed, found.memory)

    assert chosen(curve("age", 100), curve("prob", 150)) == ("age", 100)
    assert chosen(curve("age", 100), curve("prob", 102)) == ("prob", 102)
    assert chosen(curve("age", 100), curve("prob", None)) == ("age", 100)
    assert chosen(curve("prob", None)) is None
    assert chosen(curve("prob", 100, (91.2, 110.4))) == ("prob", 111)


def test_a_recommendation_is_for_95_percent_or_what_is_asked_for(sized: Sizing) -> None:
    assert sized.recommend_for == 0.95
    recording = Recording.of(QUERY, TABLES)
    few = Request(recalls=[0.5, 0.6], policies=["oldest"], with_ceiling=False)
    assert size(recording, few).recommend_for == 0.5
    assert size(recording, replace(few, recommend_for=0.6)).recommend_for == 0.6
    with pytest.raises(PlanError, match="needs it among"):
        size(recording, replace(few, recommend_for=0.7))


# What is refused.


def test_without_results_there_is_nothing_to_recall() -> None:
    tables = {"a": rows_at([1, 2], [1, 2]), "b": rows_at([1, 2], [3, 4])}
    with pytest.raises(PlanError, match="has no results"):
        size(Recording.of(ps.WindowJoin(STREAMS, on="k", within="1 s"), tables))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"within": "10 rows"}, "count tuples"),
        ({"within": "1 s", "how": "left"}, "no tuples can be dropped"),
    ],
)
def test_what_has_no_limits_has_no_size(options: dict[str, Any], message: str) -> None:
    query = ps.WindowJoin(STREAMS, on="k", **options)
    with pytest.raises(PlanError, match=message):
        size(Recording.of(query, TABLES))


def test_policies_are_those_that_fit_the_windows() -> None:
    tables = {name: table.slice(0, 300) for name, table in TABLES.items()}
    recording = Recording.of(ps.WindowJoin(STREAMS, on="k", within="unbounded"), tables)
    found = size(recording, Request(with_ceiling=False))
    assert [each.policy for each in found.curves] == ["random", "oldest", "prob"]
    assert found.need == 600
    with pytest.raises(PlanError, match="never leave their windows"):
        size(recording, Request(policies=["life"]))
    with pytest.raises(PlanError, match="shed must be one of"):
        size(recording, Request(policies=["best"]))
    with pytest.raises(PlanError, match="recalls must be"):
        size(recording, Request(recalls=[1.5]))


# The command.


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    directory = tmp_path_factory.mktemp("recording")
    for name, table in TABLES.items():
        pq.write_table(table, directory / f"{name}.parquet")
    return [str(directory / f"{name}.parquet") for name in "ab"]


BASE = ["--on", "k", "--time", "ts", "--within", "200 milliseconds", "--no-optimum"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["size", *arguments], env={"COLUMNS": "80"})


def refused(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    return " ".join(result.stderr.split())


def test_the_command_gives_a_table_and_limits_that_run(
    files: list[str], sized: Sizing, tmp_path: Path
) -> None:
    written = tmp_path / "limits.yaml"
    result = run(*files, *BASE, "--policy", "prob", "--policy", "oldest", "-o", str(written))
    assert result.exit_code == 0, result.output
    assert f"{sized.results:,} of the exact join" in result.stdout
    assert f"{sized.need:,} of 6,000 rows live at once" in result.stdout
    for each in sized.curves:
        if each.policy in ("prob", "oldest"):
            (line,) = (
                line for line in result.stdout.splitlines() if line.split()[:1] == [each.policy]
            )
            assert [f"{enough.memory:,}" for enough in each.enough if enough] == re.findall(
                r"([\d,]+) \(", line
            )
    assert "no optimum: it was not asked for" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    block = result.stdout[result.stdout.index("limits:") :]
    assert block == written.read_text()[written.read_text().index("limits:") :]
    told = dict(line.strip().split(": ") for line in block.splitlines()[1:])
    assert recall_of(QUERY, TABLES, ps.Limits(**told)) > 0.94
    # And with the command, which reads the files in pieces.
    joining = ["--on", "k", "--left-time", "ts", "--right-time", "ts", *BASE[4:6]]
    limits = ["--memory", told["memory"], "--shed", told["shed"]]
    result = CliRunner().invoke(
        app, ["join", *files, *joining, *limits, "-o", str(tmp_path / "joined.parquet")]
    )
    assert result.exit_code == 0, result.output
    assert float(re.findall(r"recall ([\d.]+)%", result.output)[0]) >= 94
    assert "exists already" in refused(*files, *BASE, "-o", str(written))


def test_a_recording_that_says_little_is_called_short(files: list[str]) -> None:
    enough = run(*files, *BASE, "--policy", "random")
    assert "note" not in enough.stdout
    long_windows = [*BASE[:5], "1 hour", *BASE[6:]]
    short = run(*files, *long_windows, "--policy", "random")
    assert "hardly longer than the windows" in short.stdout


def test_json_has_all_points(files: list[str], sized: Sizing) -> None:
    result = run(*files, *BASE, "--policy", "prob", "--for", "99", "--json")
    assert result.exit_code == 0, result.output
    plain = json.loads(result.stdout)
    (curve,) = plain["curves"]
    (same,) = (each for each in sized.curves if each.policy == "prob")
    assert curve["points"] == [
        {"memory": point.memory, "recall": point.recall, "interval": None} for point in same.points
    ]
    assert plain["need"] == sized.need
    assert plain["recalls"] == [0.9, 0.95, 0.99]
    assert plain["recommend_for"] == 0.99
    assert (
        ps.Limits(**plain["recommendation"]["limits"]).memory.rows == curve["enough"][2]["memory"]
    )


def test_the_plot_has_all_lines(files: list[str], tmp_path: Path) -> None:
    plot = tmp_path / "plot.html"
    result = run(*files, *BASE, "--recall", "80,90", "--plot", str(plot))
    assert result.exit_code == 0, result.output
    page = plot.read_text(encoding="utf-8")
    for name in ("random", "oldest", "prob", "life", "expected_life", "age"):
        assert f'"name":"{name}"' in page
        assert f'"name":"{name}, enough"' in page
    assert "exact need, " in page
    assert '"text":"80%"' in page
    assert '"text":"90%"' in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--on", "k", "--time", "ts"], "the files have no window; give --within"),
        (["--on", "k", "--within", "1 s"], "the files have no time; give --time"),
        (["--time", "ts", "--within", "1 s"], "the streams have no key; give --on"),
        ([*BASE, "--recall", "all"], "cannot read --recall 'all'"),
        ([*BASE, "--recall", "120"], "cannot read --recall '120'"),
        ([*BASE, "--for", "90,95"], "--for takes one recall"),
        ([*BASE, "--policy", "best"], "shed must be one of"),
        ([*BASE, "--pool", "own"], "--pool is one of shared, fixed, got 'own'"),
        ([*BASE, "--sample", "0"], "--sample is a part of the rows"),
        ([*BASE[:4], "--within", "10 rows"], "count tuples"),
        ([*BASE, "--how", "left"], "no tuples can be dropped"),
        ([*BASE, "--on", "nobody"], "has no column 'nobody'"),
        ([*BASE, "--plot", "x", "-o", "x"], "would be both the plot and the limits"),
    ],
)
def test_what_cannot_be_done_is_said(files: list[str], arguments: list[str], message: str) -> None:
    assert message in refused(*files, *arguments)


def test_all_rows_are_joined_where_there_is_no_key(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.cli.commands.size.JOINED_ROWS", 1_000)
    monkeypatch.setattr("penstock.lab.recording.reading.JOINED_ROWS", 1_000)
    where = ["--where", "abs(a.v - b.v) <= 1000000000000", "--policy", "oldest"]
    result = run(*files, *BASE[2:], *where, "--recall", "50")
    assert result.exit_code == 0, result.output
    assert "all 6,000 rows are joined" in result.stderr
    assert "the others a part" not in result.stdout
    assert "keys cannot be sampled" in refused(*files, *BASE[2:], *where, "--sample", "0.5")


def test_one_file_is_no_join(files: list[str]) -> None:
    assert "got one file" in refused(files[0], *BASE)
