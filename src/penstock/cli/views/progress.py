"""The progress of commands, over files that are read to their ends and over parts of work.

In a terminal it is a bar, which goes when the work is done. Elsewhere it is a plain line every few
seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from penstock.cli.views.plain_lines import LINE_PERIOD_S, PlainLines

__all__ = ["file_progress", "part_progress"]

# Takes how much is done, and what else is to be shown.
Update = Callable[[float, str], None]


@contextmanager
def file_progress(
    console: Console, size: int, quiet: bool = False, line_period_s: float = LINE_PERIOD_S
) -> Iterator[Update]:
    """Over `size` bytes; what it gives takes how many of them are behind us."""

    def line(behind: float) -> str:
        return f"{behind / max(size, 1):4.0%} of {size / 1e6:,.1f} MB read"

    if quiet:
        yield lambda behind, shown: None
    elif console.is_terminal:
        with _bar(console, size, DownloadColumn(binary_units=False)) as update:
            yield update
    else:
        with _lines(console, line, line_period_s) as update:
            yield update


@contextmanager
def part_progress(console: Console, line_period_s: float = LINE_PERIOD_S) -> Iterator[Update]:
    """Over parts of work; what it gives takes which part is done, 0 to 1."""
    if console.is_terminal:
        with _bar(console, 1.0) as update:
            yield update
    else:
        with _lines(console, lambda part: f"{part:4.0%}", line_period_s) as update:
            yield update


@contextmanager
def _bar(console: Console, total: float, *further: ProgressColumn) -> Iterator[Update]:
    columns = (
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        *further,
        TextColumn("{task.fields[shown]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total, shown="")

        def update(done: float, shown: str) -> None:
            progress.update(task, completed=done, shown=shown)

        yield update


@contextmanager
def _lines(
    console: Console, line: Callable[[float], str], line_period_s: float
) -> Iterator[Update]:
    started = time.perf_counter()
    now = 0.0, ""

    def text() -> str:
        done, shown = now
        parts = [line(done), shown, f"{time.perf_counter() - started:.0f} s so far"]
        return "  ".join(part for part in parts if part)

    def update(done: float, shown: str) -> None:
        nonlocal now
        now = done, shown

    with PlainLines(console, text, line_period_s):
        yield update
