"""The two locks fit each other and pyproject.toml: one environment holds either, or both."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PINNED = re.compile(r"^([a-z0-9._-]+)==(\S+) \\$", re.MULTILINE)


def pinned(lock: str) -> dict[str, str]:
    return dict(PINNED.findall((ROOT / "requirements" / lock).read_text()))


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=~!; ]", each)[0] for each in requirements}


def test_the_lock_for_running_is_a_part_of_the_lock_for_developing() -> None:
    run, dev = pinned("run.txt"), pinned("dev.txt")
    assert run
    assert run.items() < dev.items()


def test_each_lock_holds_what_its_extras_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: names(each) for name, each in project["optional-dependencies"].items()}
    core = names(project["dependencies"])
    assert set(extras) == {"lab", "spark"}
    assert extras["lab"] == {"ortools", "plotly", "scipy"}
    run = set(pinned("run.txt"))
    assert core | extras["spark"] <= run
    assert core | extras["spark"] | extras["lab"] <= set(pinned("dev.txt"))
    assert not run & (extras["lab"] | {"mypy", "polars", "duckdb", "pytest"})


def test_no_lock_names_a_host() -> None:
    for lock in ("run.txt", "dev.txt"):
        assert "://" not in (ROOT / "requirements" / lock).read_text()


@pytest.mark.parametrize(
    ("stamps", "installed"),
    [
        (["runnable", "installed", "runnable", "installed"], ["run.txt", "dev.txt"]),
        (["installed", "runnable", "installed"], ["dev.txt"]),
    ],
)
def test_one_environment_takes_both_locks_in_either_order(
    tmp_path: Path, stamps: list[str], installed: list[str]
) -> None:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for folder in ("requirements", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    log = tmp_path / "log"
    # Instead of pip: only what would be installed.
    install = tmp_path / "scripts" / "install"
    install.write_text(f'#!/bin/sh\nmkdir -p "$2"\nbasename "$3" >> {log}\n')
    for stamp in stamps:
        made = subprocess.run(
            ["make", "--silent", f".venv/.{stamp}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not made.returncode, made.stderr
    assert log.read_text().split() == installed
