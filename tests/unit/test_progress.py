"""What long commands say of themselves meanwhile: a bar in a terminal, elsewhere plain lines."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from penstock.cli import app
from penstock.cli.views import progress
from penstock.cli.views.plain_lines import PlainLines
from penstock.cli.views.progress import file_progress, part_progress
from penstock.samples import zipf

PERIOD_S = 0.05
FILE_LINE = re.compile(r" *\d+% of [\d.]+ MB read(  [\d.]+[kMG]? rows/s)?  \d+ s so far")
PART_LINE = re.compile(r" *\d+%  \S.*  \d+ s so far")


def console(terminal: bool = False) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, width=100, force_terminal=terminal), file


def wait_for(text: str, file: io.StringIO) -> None:
    """However busy the machine is."""
    until = time.monotonic() + 60
    while text not in file.getvalue():
        assert time.monotonic() < until, file.getvalue()
        time.sleep(0.01)


def test_files_are_followed_in_plain_lines_also_while_nothing_is_read() -> None:
    shown_on, file = console()
    with file_progress(shown_on, 8_000_000, line_period_s=PERIOD_S) as update:
        wait_for("  0% of 8.0 MB read  ", file)
        update(2_000_000, "900k rows/s")
        wait_for(" 25% of 8.0 MB read  900k rows/s  ", file)
    lines = file.getvalue().splitlines()
    assert all(FILE_LINE.fullmatch(line) for line in lines)


def test_parts_are_followed_in_plain_lines() -> None:
    shown_on, file = console()
    with part_progress(shown_on, line_period_s=PERIOD_S) as update:
        update(0.5, "prob at 10 %")
        wait_for(" 50%  prob at 10 %  ", file)
    assert all(PART_LINE.fullmatch(line) for line in file.getvalue().splitlines())


@pytest.mark.parametrize("quiet", [True, False])
def test_what_is_quick_or_quiet_says_nothing(quiet: bool) -> None:
    shown_on, file = console()
    with file_progress(shown_on, 10, quiet, line_period_s=PERIOD_S if quiet else 60) as update:
        update(5, "1 rows/s")
        time.sleep(3 * PERIOD_S)
    assert file.getvalue() == ""


def test_a_terminal_has_a_bar_and_no_lines() -> None:
    shown_on, file = console(terminal=True)
    with file_progress(shown_on, 10, line_period_s=PERIOD_S) as update:
        update(5, "900k rows/s")
        time.sleep(3 * PERIOD_S)
    assert "900k rows/s" in file.getvalue()
    assert "so far" not in file.getvalue()


@pytest.fixture
def frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    def lines(console: Console, text: Callable[[], str], period_s: float) -> PlainLines:
        return PlainLines(console, text, 0.002)

    monkeypatch.setattr(progress, "PlainLines", lines)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("files")
    work = zipf(keys=300, rows=20_000, rate=1_000.0, payload=2, streams=("a", "b"))
    paths = []
    for name in work.streams:
        paths.append(str(folder / f"{name}.parquet"))
        pq.write_table(work.table(name), paths[-1])
    return paths


def run(*arguments: Any) -> tuple[str, list[str]]:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr.splitlines()


def test_profile_says_how_far_it_is_when_piped(
    frequent: None, files: list[str], tmp_path: Path
) -> None:
    options = ("--on", "k", "--time", "ts", "--within", "1 second", "--batch-rows", 1000, "--json")
    out, lines = run("profile", *files, *options)
    assert json.loads(out)
    assert any(FILE_LINE.fullmatch(line) for line in lines)


def test_size_says_how_far_it_is_when_piped(frequent: None, files: list[str]) -> None:
    options = ("--on", "k", "--time", "ts", "--within", "200 ms", "--policy", "prob", "--json")
    out, lines = run("size", *files, *options, "--batch-rows", 1000, "--no-optimum")
    assert json.loads(out)
    assert any(FILE_LINE.fullmatch(line) for line in lines)
    assert any(PART_LINE.fullmatch(line) for line in lines)


def test_join_says_nothing_meanwhile_when_piped(
    frequent: None, files: list[str], tmp_path: Path
) -> None:
    options = ("--on", "k", "--time", "ts", "--within", "200 ms", "--batch-rows", 1000)
    _, lines = run("join", *files, *options, "-o", tmp_path / "out.parquet")
    assert not any("so far" in line for line in lines)
