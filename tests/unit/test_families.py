"""The runner of the tests: nothing that fails, or does not run, passes for a success."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import families
from families import FAMILIES, WAYS, Part, parts_of, summary
from support import thoroughness
from support.followed import Followed, Outcome, followed

UNIT = Part(next(family for family in FAMILIES if family.name == "unit"), 1, 1)
GOOD = Outcome(passed=3, skipped=1, seconds=2.0)


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


def test_what_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert summary({UNIT: GOOD}, "quick", 5.0) == 0
    assert last_line(capsys) == "3 passed, 1 skipped in 5.00s"


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(passed=3, failed=1, code=1, failures=["tests/unit/test_x.py::test_y"]),
        Outcome(passed=3, code=-9),  # killed
        Outcome(passed=3, code=2),  # an error while tests were collected
        Outcome(code=5),
        Outcome(),
    ],
    ids=["failed", "killed", "not collected", "none chosen", "none ran"],
)
def test_what_does_not(outcome: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
    spark = Part(FAMILIES[0], 1, 1)
    assert summary({UNIT: outcome, spark: GOOD}, "quick", 5.0) == 1
    shown = capsys.readouterr().out
    assert "families that failed, or ran no test: unit" in shown
    assert all(f"FAILED {nodeid}" in shown for nodeid in outcome.failures)
    assert summary({}, "quick", 5.0) == 1


def test_a_failure_in_one_part_is_one_of_the_family() -> None:
    whole = sum([Outcome(passed=1, code=-9), GOOD, Outcome(code=0)], start=Outcome())
    assert whole.code != 0
    assert (whole.passed, whole.skipped, whole.seconds) == (4, 1, 2.0)


def test_what_outgrew_its_budget_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    budget_s = UNIT.family.budgets_s[0]
    assert summary({UNIT: Outcome(passed=1, seconds=budget_s + 1)}, "quick", 5.0) == 0
    assert "over its budget" in capsys.readouterr().out
    assert summary({UNIT: GOOD}, "quick", families.MOST_S["quick"] + 1) == 0
    assert "480 s" in capsys.readouterr().out


SCRIPT = """
print("tests/a.py::test_one[x y] PASSED   [ 25%]")
print("tests/a.py::test_two SKIPPED (a reason) [ 50%]")
print("tests/a.py::test_three FAILED [ 75%]")
print("FAILED tests/a.py::test_three - AssertionError")
print("tests/a.py::test_four ERROR [100%]", end="", flush=True)
print()
raise SystemExit(7)
"""


def test_a_process_is_followed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    outcome = followed("unit", [sys.executable, "-c", SCRIPT], {}, tmp_path)
    assert (outcome.passed, outcome.failed, outcome.skipped, outcome.code) == (1, 2, 1, 7)
    assert outcome.failures == ["tests/a.py::test_three", "tests/a.py::test_four"]
    shown = capsys.readouterr().out
    assert "unit       | tests/a.py::test_three FAILED [ 75%]\n" in shown
    assert "test_one" not in shown  # it passed, a moment after the start


def test_a_test_that_takes_long_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("support.followed.QUIET_S", 0.0)
    follow = Followed("unit")
    follow.take("tests/a.py::test_one PASSED [ 1%]\ntests/a.py::test_two ")
    follow.wait()
    assert "unit       | tests/a.py::test_two ... 0 s after its start" in capsys.readouterr().out


@pytest.mark.parametrize("way", WAYS)
def test_every_family_has_a_budget_and_runs(way: str) -> None:
    place = WAYS.index(way)
    parts = list(parts_of(FAMILIES, way))
    folders = {each.parent.name for each in Path(__file__).parents[1].glob("*/test_*.py")}
    assert {part.family.name for part in parts if part.family.jit} == folders
    assert all(part.family.budgets_s[place] > 0 for part in parts)
    without_jit = [part for part in parts if not part.family.jit]
    assert bool(without_jit) == (way != "quick")
    assert all(part.environment(way)["NUMBA_DISABLE_JIT"] == "1" for part in without_jit)
    assert all("jit_off" in " ".join(part.command(way, False, [])) for part in without_jit)
    for part in parts:
        tries = "quick" if way == "ci" and part in without_jit else way
        assert part.environment(way)["PENSTOCK_TESTS"] == tries


@pytest.mark.parametrize(
    ("way", "number", "text"), [("quick", 4, "a"), ("ci", 20, "a"), ("all", 100, "b")]
)
def test_how_much_is_tried(
    way: str, number: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thoroughness, "WAY", way)
    assert thoroughness.scaled(quick=4, all=100) == number
    assert thoroughness.scaled(quick="a", all="b") == text
    assert thoroughness.scaled(quick=4, all=100, ci=7) == (7 if way == "ci" else number)
