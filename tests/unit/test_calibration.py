"""Weights that are measured: the fit, what is measured, where weights are kept, the command."""

import itertools
import json
import math
import random
from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from penstock.cli import app
from penstock.cli.commands import calibrate as command
from penstock.planning import machine, measuring
from penstock.planning.calibration import Measured, calibrate, fit_weights, points, scan_limit
from penstock.planning.costs import Costing, Visit
from penstock.planning.fit import fitted
from penstock.planning.machine import SHIPPED, forget_weights, store_weights, weights_here
from penstock.planning.measuring import Point, Subject
from penstock.planning.touched import NODE_ENTRIES, Structure
from penstock.planning.weights import STRUCTURES, WEIGHTS, Weight, Weights
from penstock.windows import invariants
from support.thoroughness import often

TINY = (10, 40, 160)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the user's without weights; kernels keep theirs."""
    monkeypatch.setattr(machine, "weights_file", lambda: tmp_path / "of_user" / "weights.json")
    return tmp_path / "of_user" / "weights.json"


def explained(weights: Weights, point: Point) -> Measured:
    """What would be measured if the cost model were exact."""
    structure = Structure(point.index, point.tuples, point.tuples / point.buckets, NODE_ENTRIES)
    costing = Costing((1.0, 1.0), (structure,) * 2, (point.distinct,) * 2, weights, "penstock")
    visit = Visit(1.0, point.tuples / point.distinct)
    direction = costing.direction(1, [(0, visit)])
    return Measured(point, costing.probe(1, visit), direction.insert + direction.expire)


def some_weights(seed: int) -> Weights:
    draw = random.Random(seed)

    def weight(index: str) -> Weight:
        is_tree = index in ("bplus_tree", "t_tree")
        return Weight(
            search=draw.uniform(0.5, 5),
            update=draw.uniform(1, 9),
            per_probe=draw.uniform(5, 30),
            # What is touched by an update of others is always the same, and the fixed part in it.
            per_update=draw.uniform(5, 30) if is_tree else 0.0,
            far_search=draw.uniform(1, 40),
            far_update=0.0 if index == "scan" else draw.uniform(1, 40),
        )

    return Weights("measured", "ns", {index: weight(index) for index in STRUCTURES}, 1 << 17)


# The fit.


@given(st.integers(0, 10_000))
def test_weights_are_found_again(seed: int) -> None:
    weights = some_weights(seed)
    found = fit_weights(
        {index: [explained(weights, each) for each in points(index)] for index in STRUCTURES}
    )
    assert found.weights.cached == weights.cached
    for index in STRUCTURES:
        given, got = astuple(weights.of(index)), astuple(found.weights.of(index))
        assert got == pytest.approx(given, rel=1e-4, abs=1e-4), index
        assert found.searches[index].worst < 1e-6
        assert found.updates[index].worst < 1e-6


def test_noise_is_evened_out_and_told() -> None:
    weights, draw = some_weights(1), random.Random(1)

    def noisy(point: Point) -> Measured:
        exact = explained(weights, point)
        factors = draw.uniform(0.95, 1.05), draw.uniform(0.95, 1.05)
        return Measured(point, exact.probe_ns * factors[0], exact.update_ns * factors[1])

    found = fit_weights({index: list(map(noisy, points(index))) for index in STRUCTURES})
    for index in STRUCTURES:
        assert 0 < found.searches[index].worst < 0.15
        assert found.searches[index].usual <= found.searches[index].worst
        assert found.searches[index].r_squared > 0.9


def test_no_weight_is_below_zero() -> None:
    # Falls with what is counted: no weight explains that.
    fit = fitted([(1, 1, 0), (1, 2, 0), (1, 3, 0)], [3, 2, 1])
    assert min(fit.weights) >= 0
    assert fit.weights[1:] == (0, 0)


def test_a_fixed_part_cannot_be_told_from_a_count_that_is_always_the_same() -> None:
    fit = fitted([(2, 2, 0), (2, 2, 0)], [10, 10])
    assert fit.weights == pytest.approx((0, 5, 0))
    assert not fit.is_varied


def test_twenty_points_for_each_structure() -> None:
    for index in STRUCTURES:
        assert len(set(points(index))) >= 19
        assert min(point.tuples for point in points(index)) == 10
        assert max(point.tuples for point in points(index)) >= 100_000


# What is measured.


@pytest.mark.jit_off
@pytest.mark.parametrize("index", often(STRUCTURES, "hash"))
def test_a_subject_is_a_full_window_whose_probes_find_what_they_should(
    index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.planning.measuring._UPDATES", 64)
    monkeypatch.setattr("penstock.planning.measuring._MOST_PROBES", 64)
    subject = Subject(Point(index, 40, 4, 8))
    for _ in range(2):
        assert subject.windows.live(0) == 0
        assert subject.windows.live(1) == 40
        invariants.check(subject.windows)
        assert subject.update_ns() > 0
        assert subject.probe_ns() > 0
    in_window = subject.windows.keys(1).tolist()
    assert subject.probe(range(10)) == 40
    assert subject.probe([3, 3, 99]) == 2 * in_window.count(3)


@pytest.mark.slow
def test_larger_windows_are_dearer_to_scan_and_hardly_to_hash() -> None:
    measured = {
        index: {
            tuples: min(Subject(Point(index, tuples)).probe_ns() for _ in range(5))
            for tuples in (10, 3000)
        }
        for index in ("scan", "hash")
    }
    assert measured["scan"][3000] > 20 * measured["scan"][10]
    assert measured["hash"][3000] < 20 * measured["hash"][10]
    assert measured["hash"][3000] < measured["scan"][3000] / 5


def test_a_scan_is_cheaper_only_in_tiny_windows_or_where_it_is_seldom_asked() -> None:
    limits = [scan_limit(SHIPPED, ratio) for ratio in (1, 10, 100, 1000)]
    assert limits == sorted(limits)
    assert limits[0] <= 100
    assert limits[-1] > limits[0]
    dear = {**SHIPPED.structures, "scan": Weight(1e6, 1e6, 1e6, 1e6)}
    assert scan_limit(Weights("dear scans", "ns", dear)) == 0
    cheap = {**SHIPPED.structures, "scan": Weight(SHIPPED.of("scan").search / 2, 1.0)}
    assert scan_limit(Weights("cheap scans", "ns", cheap)) > limits[0]


# Where they are kept.


def test_weights_are_the_shipped_ones_until_some_are_kept(cache: Path) -> None:
    assert weights_here() is SHIPPED is WEIGHTS["penstock"]
    weights = some_weights(3)
    assert store_weights(weights) == cache
    assert weights_here() == weights
    other = some_weights(4)
    store_weights(other)
    assert weights_here() == other
    assert list(cache.parent.iterdir()) == [cache]
    forget_weights()
    forget_weights()
    assert weights_here() is SHIPPED


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "{}", '{"format": 1}', "\x00\xff", '"weights"', "[" * 100_000],
)
def test_a_corrupt_file_is_as_good_as_none(cache: Path, text: str) -> None:
    cache.parent.mkdir()
    cache.write_bytes(text.encode("latin-1"))
    assert weights_here() is SHIPPED
    store_weights(some_weights(1))
    assert weights_here() == some_weights(1)


def test_a_file_that_is_no_file_is_as_good_as_none(cache: Path) -> None:
    cache.mkdir(parents=True)
    assert weights_here() is SHIPPED


def test_weights_of_another_machine_or_format_are_not_used(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_weights(some_weights(1))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(machine, "machine", lambda: "another processor")
        assert weights_here() is SHIPPED
    assert weights_here() == some_weights(1)
    stored = json.loads(cache.read_text())
    cache.write_text(json.dumps({**stored, "format": 0}))
    assert weights_here() is SHIPPED


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("unit", "s"),
        ("unit", None),
        ("structures", {}),
        ("structures", {"scan": {"search": 1, "update": 1}}),
        ("structures", {each: {"search": -1, "update": 1} for each in STRUCTURES}),
        ("structures", {each: {"search": "1", "update": 1} for each in STRUCTURES}),
        ("cached", -1),
        ("cached", "all"),
    ],
)
def test_weights_that_cannot_be_used_are_not(cache: Path, field: str, value: object) -> None:
    store_weights(some_weights(1))
    stored = json.loads(cache.read_text())
    cache.write_text(json.dumps({**stored, "weights": {**stored["weights"], field: value}}))
    assert weights_here() is SHIPPED


def test_a_machine_has_a_name_even_where_the_system_tells_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert machine.machine()
    monkeypatch.setattr(machine, "_PROCESSORS", tmp_path / "none")
    assert machine.machine()


# The command.


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_QUICK_WINDOWS", TINY)
    monkeypatch.setattr(command, "WINDOWS", TINY)


@pytest.mark.slow  # the kernels that are timed are compiled for it
@pytest.mark.usefixtures("tiny")
def test_calibrate_keeps_weights_and_says_so(cache: Path, tmp_path: Path) -> None:
    plot = tmp_path / "fit.html"
    result = CliRunner().invoke(app, ["calibrate", "--quick", "--json", "--plot", str(plot)])
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert shown["kept_in"] == str(cache)
    assert weights_here() == Weights.from_dict(shown["weights"])
    assert set(shown["fit"]) == set(shown["measured"]) == set(STRUCTURES)
    assert all(len(each) == 2 * len(TINY) for each in shown["measured"].values())
    assert set(shown["scan_limit"]) == {"1", "10", "100"}
    assert "plotly" in plot.read_text(encoding="utf-8")


@pytest.mark.slow  # the kernels that are timed are compiled for it
@pytest.mark.usefixtures("tiny")
def test_calibrate_shows_weights_fit_and_where_a_scan_wins(cache: Path) -> None:
    result = CliRunner().invoke(app, ["calibrate"], env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    for word in (*STRUCTURES, "R²", "kang2003", str(cache)):
        assert word in result.stdout
    assert "hash" in result.stdout.splitlines()[-2]


@pytest.mark.slow  # the kernels that are timed are compiled for it
@pytest.mark.usefixtures("tiny")
def test_calibrate_says_what_it_cannot_write(cache: Path, tmp_path: Path) -> None:
    missing = tmp_path / "none" / "fit.html"
    result = CliRunner().invoke(app, ["calibrate", "--quick", "--plot", str(missing)])
    assert result.exit_code == 2
    assert "cannot write" in result.stderr
    assert not cache.exists(), "it is refused before anything is measured"
    cache.parent.parent.mkdir(parents=True, exist_ok=True)
    cache.parent.write_text("in the way")
    result = CliRunner().invoke(app, ["calibrate", "--quick"])
    assert result.exit_code == 2
    assert "XDG_CACHE_HOME" in result.stderr


@pytest.mark.slow  # the kernels that are timed are compiled for it
def test_a_clock_that_stands_still_during_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = itertools.count()
    monkeypatch.setattr(measuring, "thread_time_ns", lambda: next(steps) // 1000 * 10_000_000)
    found = calibrate(TINY[:2], 1)
    times = [time for of in found.measured.values() for each in of for time in astuple(each)[1:]]
    assert all(0 < time < 1e7 for time in times)
    assert all(math.isfinite(fit.loss) for fit in found.searches.values())


@pytest.mark.slow  # the kernels that are timed are compiled for it
def test_done_is_told_after_each_round() -> None:
    told: list[str] = []
    found = calibrate(TINY[:1], 2, told.append)
    assert told == [index for index in STRUCTURES for _ in range(2)]
    assert found.weights.unit == "ns"
