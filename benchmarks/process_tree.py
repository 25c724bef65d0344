"""The memory of a process and all its descendants, each shared page counted once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["TreeMemory", "processor_seconds", "tree"]

_PROC: Final = Path("/proc")
_TICKS_PER_S: Final = 100  # of the times in /proc, on every Linux that Python runs on


class TreeMemory:
    """The peak of the resident memory of a process and its descendants, by samples.

    A page that n processes share counts as 1/n of a page in each (PSS), so that forked
    workers are not charged for their parent's. A process counts from the second sample that
    finds it: one that is about to become another program still shows its parent's memory.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._known: set[int] = set()
        self.peak_bytes = 0

    def sample(self) -> None:
        """Look now."""
        processes = set(tree(self._root))
        now = sum(_proportional_bytes(process) for process in processes & self._known)
        self.peak_bytes = max(self.peak_bytes, now)
        self._known = processes


def tree(root: int) -> Iterator[int]:
    """A process and its descendants."""
    children = defaultdict(list)
    for process, fields in _all_processes():
        children[int(fields[1])].append(process)
    waiting = [root]
    while waiting:
        process = waiting.pop()
        waiting += children[process]
        yield process


def processor_seconds(root: int) -> float:
    """Processor time spent so far by a process and its descendants, those ended included."""
    wanted, ticks = set(tree(root)), 0
    for process, fields in _all_processes():
        if process in wanted:
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS_PER_S


def _all_processes() -> Iterator[tuple[int, list[str]]]:
    """Every process and its fields in /proc, from the third: state, parent, …"""
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # The name of the program, in parentheses, may hold anything.
                rest = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2]
                yield int(entry.name), rest.split()


def _proportional_bytes(process: int) -> int:
    try:
        rollup = (_PROC / str(process) / "smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0  # it has ended
    found = re.search(r"^Pss:\s+(\d+) kB$", rollup, re.MULTILINE)
    return 0 if found is None else int(found.group(1)) * 1024
