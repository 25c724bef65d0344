"""Runs the tests by family, on all cores, each family with a budget of time.

    python tests/families.py quick            # `make test`: a cut of every family
    python tests/families.py all              # `make test-all`: every seed, drawn anew
    python tests/families.py ci --deeper      # only what tries more than `quick` did
    python tests/families.py all recovery     # one family

A family runs as one process of pytest or, where it is long, as several, each with a part of its
tests. Kernels are compiled first, one sort of joins on each core, so that no two processes compile
the same. A line every few seconds says where each process is. A family that takes longer than its
budget says so; it fails only when a test does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parent))

from support.followed import Outcome, followed

Item = TypeVar("Item")
WAYS = ("quick", "ci", "all")
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Family:
    """budgets_s: what its processes take on two quiet cores, added up, for each way. parts: into
    how many processes it goes."""

    name: str
    budgets_s: tuple[int, int, int]
    parts: tuple[int, int, int] = (1, 1, 1)
    jit: bool = True


# Those that wait for Spark come first: what works on one core runs beside them.
FAMILIES = (
    Family("spark", (170, 1100, 1800)),
    Family("answer", (280, 430, 1800), parts=(1, 2, 4)),
    Family("unit", (240, 230, 600), parts=(2, 1, 2)),
    Family("statistics", (110, 450, 3600), parts=(1, 1, 4)),
    Family("agreement", (70, 100, 1800), parts=(1, 1, 4)),
    Family("recovery", (50, 500, 1200), parts=(1, 2, 4)),
    # Tests marked jit_off once more without the JIT; of `all`, coverage sees the kernels.
    Family("without the JIT", (0, 400, 900), parts=(0, 2, 4), jit=False),
)
COMPILED_FIRST = ("by order", "by a key")
EMBEDDED = ("unit", "answer", "agreement", "statistics")
MOST_S = {"quick": 8 * 60, "ci": 26 * 60, "all": 90 * 60}  # of the wall, on two quiet cores


@dataclass(frozen=True)
class Part:
    """One process of pytest."""

    family: Family
    number: int
    of: int

    @property
    def name(self) -> str:
        return self.family.name + (f" {self.number}/{self.of}" if self.of > 1 else "")

    def command(self, way: str, deeper: bool, more: Sequence[str]) -> list[str]:
        family = self.family
        marks = ["not slow"] if way == "quick" else []
        marks += ["deeper"] if deeper and family.jit else []
        marks += [] if family.jit else ["jit_off and not slow and not many_rows"]
        is_measured = not family.jit and way == "all"  # it takes as long again
        measured = ["-m", "coverage", "run", "--parallel-mode"] if is_measured else []
        folders = [f"tests/{name}" for name in ([family.name] if family.jit else EMBEDDED)]
        return [
            *(sys.executable, *measured, "-m", "pytest", "-v", "--no-header", *folders),
            *(["-m", " and ".join(marks)] if marks else []),
            *([f"--part={self.number}/{self.of}"] if self.of > 1 else []),
            *more,
        ]

    def environment(self, way: str) -> dict[str, str]:
        # Without the JIT a kernel is about a hundred times slower.
        without = {} if self.family.jit else {"NUMBA_DISABLE_JIT": "1"}
        tries = "quick" if without and way == "ci" else way
        return {**os.environ, "PENSTOCK_TESTS": tries, "PYTHONUNBUFFERED": "1", **without}


def parts_of(families: Sequence[Family], way: str) -> Iterator[Part]:
    for family in families:
        count = family.parts[WAYS.index(way)]
        for number in range(1, count + 1):
            yield Part(family, number, count)


def compiled(joins: str) -> Outcome:
    """The kernels of one sort of joins."""
    environment = {**os.environ, "PYTHONPATH": f"{os.getenv('PYTHONPATH', '')}:{ROOT / 'tests'}"}
    command = [sys.executable, "-m", "support.compiled", joins]
    return followed("kernels", command, environment, ROOT)


def run_parts(
    parts: Sequence[Part], way: str, deeper: bool, more: Sequence[str], cores: int
) -> dict[Part, Outcome]:
    """As many at a time as there are cores, in their order. Those that compile go first; when one
    fails, nothing else begins."""
    sorts, waiting = SimpleQueue[str](), SimpleQueue[Part]()
    for joins in COMPILED_FIRST:
        sorts.put(joins)
    for part in parts:
        waiting.put(part)
    outcomes: dict[Part, Outcome] = {}
    failed: list[str] = []

    def work() -> None:
        for joins in all_of(sorts):
            if compiled(joins).code:
                failed.append(joins)
        for part in all_of(waiting):
            if failed:
                return
            budget_s = part.family.budgets_s[WAYS.index(way)] / part.of
            print(f"{part.name:10} | starts, with a budget of {budget_s:.0f} s", flush=True)
            outcomes[part] = followed(
                part.name, part.command(way, deeper, more), part.environment(way), ROOT
            )

    print("kernels    | compiling what most tests call, once: about 90 seconds", flush=True)
    threads = [threading.Thread(target=work) for _ in range(cores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        print(f"kernels of joins {' and '.join(failed)} did not compile; the lines above say why")
    return outcomes


def all_of(queue: SimpleQueue[Item]) -> Iterator[Item]:
    """What is in it, until others have taken the rest."""
    while True:
        try:
            yield queue.get_nowait()
        except Empty:
            return


def report_coverage() -> None:
    """Of the kernels, as interpreted code ran through them."""
    command = [sys.executable, "-m", "coverage"]
    subprocess.run([*command, "combine", "--quiet"], cwd=ROOT, check=False)
    report = [*command, "report", "--include=src/penstock/kernels/*"]
    subprocess.run(report, cwd=ROOT, check=False)


def summary(outcomes: dict[Part, Outcome], way: str, took_s: float) -> int:
    """Prints what came of each family, and of all; returns the exit code."""
    print(
        f"\n{'family':16} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8} {'budget':>7}"
    )
    whole = Outcome()
    broken = []
    for family in FAMILIES:
        of_family = [outcome for part, outcome in outcomes.items() if part.family is family]
        if not of_family:
            continue
        total = sum(of_family, start=Outcome())
        budget_s = family.budgets_s[WAYS.index(way)]
        over = "  over its budget" if total.seconds > budget_s else ""
        print(
            f"{family.name:16} {total.passed:7} {total.failed:7} {total.skipped:8} "
            f"{total.seconds:8.0f} {budget_s:7}{over}"
        )
        if total.code or not total.passed:
            broken.append(family.name)
        whole += total
    for nodeid in whole.failures:
        print(f"FAILED {nodeid}")
    if took_s > MOST_S[way]:
        print(f"{took_s:.0f} s in all, of {MOST_S[way]} s: take from what is over its budget")
    if broken:
        print(f"families that failed, or ran no test: {', '.join(broken)}")
    counts = f"{whole.failed} failed, " if whole.failed else ""
    print(f"{counts}{whole.passed} passed, {whole.skipped} skipped in {took_s:.2f}s", flush=True)
    return 1 if broken or not whole.passed else 0


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    reader.add_argument("way", choices=WAYS)
    reader.add_argument("family", nargs="*", help="those to run; all when none is given")
    reader.add_argument("--deeper", action="store_true", help="only tests that scale with the way")
    reader.add_argument("--cores", type=int, default=max(1, min(2, os.cpu_count() or 1)))
    given, more = reader.parse_known_args()
    known = [family.name for family in FAMILIES]
    if unknown := set(given.family) - set(known):
        reader.error(f"no family is called {sorted(unknown)}; the families are {known}")
    chosen = [family for family in FAMILIES if not given.family or family.name in given.family]
    (ROOT / "build").mkdir(exist_ok=True)
    for left in (ROOT / "build").glob("coverage*"):  # of another run
        left.unlink()
    begun = time.monotonic()
    outcomes = run_parts(
        list(parts_of(chosen, given.way)), given.way, given.deeper, more, given.cores
    )
    if given.way == "all" and not all(part.family.jit for part in outcomes):
        report_coverage()
    return summary(outcomes, given.way, time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main())
