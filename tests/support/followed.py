"""Follows a process of pytest: its lines come out as they are written, under its name.

Of tests that pass only one is shown every few seconds, with the share that is done; everything
else is shown in full. When a test takes long, a line says which.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Outcome", "followed"]

SHOWN_EVERY_S = 5.0
QUIET_S = 20.0
RESULT = re.compile(r"^(\S+::.*?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b.*?(\[ *\d+%\])?\s*$")


@dataclass
class Outcome:
    """What came of a process, or of several."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    code: int = 0
    failures: list[str] = field(default_factory=list)

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.seconds + other.seconds,
            max(abs(self.code), abs(other.code)),
            [*self.failures, *other.failures],
        )

    def count(self, line: str) -> bool:
        """Counts the result of a test; returns whether the line is one of a test that passed."""
        found = RESULT.match(line)
        if not found:
            return False
        nodeid, word = found[1], found[2]
        if word in ("PASSED", "XFAIL"):
            self.passed += 1
        elif word == "SKIPPED":
            self.skipped += 1
        else:
            self.failed += 1
            self.failures.append(nodeid)
        return word == "PASSED"


class Followed:
    """Prints what a process writes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun = self.shown = time.monotonic()
        self.outcome = Outcome()
        self.rest = ""

    def take(self, text: str) -> None:
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            if line.strip() and not (self.outcome.count(line) and self._since() < SHOWN_EVERY_S):
                self.show(line)

    def wait(self) -> None:
        """Nothing was written for a while."""
        if self._since() >= QUIET_S:
            running = self.rest.strip() or "at work"
            self.show(f"{running} ... {time.monotonic() - self.begun:.0f} s after its start")

    def show(self, line: str) -> None:
        self.shown = time.monotonic()
        sys.stdout.write(f"{self.name:10} | {line.rstrip()}\n")
        sys.stdout.flush()

    def _since(self) -> float:
        return time.monotonic() - self.shown


def followed(
    name: str, command: Sequence[str], environment: Mapping[str, str], directory: Path
) -> Outcome:
    """Runs it to its end."""
    follow = Followed(name)
    with subprocess.Popen(
        command,
        env=dict(environment),
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        file = process.stdout.fileno()
        while True:
            if not select.select([file], [], [], 1.0)[0]:
                if process.poll() is not None:
                    break  # a grandchild that is still there may hold the pipe open
                follow.wait()
                continue
            written = os.read(file, 65536)
            if not written:
                break
            follow.take(written.decode(errors="replace"))
        process.wait()
    if follow.rest.strip():
        follow.show(follow.rest)
    follow.outcome.seconds = time.monotonic() - follow.begun
    follow.outcome.code = process.returncode
    return follow.outcome
