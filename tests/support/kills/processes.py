"""Which processes are ours, and of what sort.

Every process a driver starts, and all that those start, carries the driver's mark in its
environment. A process without the mark is never touched, whoever its parent is now.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MARK = "PENSTOCK_KILLS"
COMMANDS = {  # one word of the command line of each sort of victim
    "driver": {"org.apache.spark.deploy.SparkSubmit"},
    "executor": {"org.apache.spark.executor.CoarseGrainedExecutorBackend"},
    # Workers are forks of the daemon: PySpark's, or penstock's in its place.
    "python": {"pyspark.daemon", "penstock.spark.daemon"},
}


class Process(NamedTuple):
    """A process, and when it began, in clock ticks: numbers are given out again."""

    number: int
    began: str
    command: tuple[str, ...]


def marked(mark: str) -> list[Process]:
    """The living processes with a mark."""
    numbers = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]
    found = (find(mark, number) for number in numbers if number != os.getpid())
    return [process for process in found if process is not None]


def find(mark: str, number: int) -> Process | None:
    """The process of a number, if it lives and has the mark."""
    entry = Path(f"/proc/{number}")
    with suppress(OSError, IndexError):
        if f"{MARK}={mark}\0".encode() in (entry / "environ").read_bytes() + b"\0":
            command = (entry / "cmdline").read_bytes().decode().split("\0")
            return Process(number, _began(entry), tuple(command))
    return None


def victims(mark: str, sort: str) -> list[Process]:
    """The living processes of one sort."""
    return [each for each in marked(mark) if COMMANDS[sort].intersection(each.command)]


def kill(process: Process) -> bool:
    """`kill -9`, if it is still there."""
    with suppress(OSError, IndexError):
        if _began(Path(f"/proc/{process.number}")) == process.began:
            os.kill(process.number, signal.SIGKILL)
            return True
    return False


def kill_all(mark: str) -> None:
    """Until none is left: what is killed may just have started another."""
    while remaining := marked(mark):
        for process in remaining:
            kill(process)


def _began(entry: Path) -> str:
    # The command's name, in parentheses, may hold spaces: count from behind it.
    return (entry / "stat").read_text().rpartition(")")[2].split()[19]
