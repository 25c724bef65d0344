"""The progress bars of commands: over files that are read to their ends, and over parts of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

__all__ = ["file_progress", "part_progress"]


@contextmanager
def file_progress(
    console: Console, size: int, quiet: bool = False
) -> Iterator[Callable[[int, str], None]]:
    """A bar over `size` bytes, in a terminal only; what it gives takes how many of them are behind
    us, and what else is to be shown."""
    columns = (
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        DownloadColumn(binary_units=False),
        TextColumn("{task.fields[shown]}"),
        TimeRemainingColumn(compact=True),
    )
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("", total=size, shown="")

        def update(completed: int, shown: str) -> None:
            progress.update(task, completed=completed, shown=shown)

        yield update


@contextmanager
def part_progress(console: Console) -> Iterator[Callable[[float, str], None]]:
    """A bar, in a terminal only; what it gives takes which part is done, 0 to 1, and what is done
    now."""
    columns = (
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TextColumn("{task.fields[shown]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=1.0, shown="")

        def update(part: float, shown: str) -> None:
            progress.update(task, completed=part, shown=shown)

        yield update
