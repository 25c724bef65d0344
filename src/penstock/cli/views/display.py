"""What the commands show: consoles, errors on one line, numbers for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import typer
from rich.console import Console
from rich.text import Text

from penstock.errors import PenstockError

__all__ = ["consoles", "failures_shown", "instant", "lateness_text", "say", "short"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def consoles() -> tuple[Console, Console]:
    """Standard output, for what was asked for, and standard error, for the rest.

    Made anew for each command, so that they follow redirections.
    """
    return (
        Console(highlight=False, markup=False, emoji=False),
        Console(stderr=True, highlight=False, markup=False, emoji=False),
    )


@contextmanager
def failures_shown() -> Iterator[None]:
    """An error of the user's is one red line and exit code 2; Ctrl-C is exit code 130."""
    _, console = consoles()
    try:
        yield
    except PenstockError as error:
        say(console, f"error: {' '.join(str(error).split())}", "bold red")
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        say(console, "interrupted; nothing was written", "bold red")
        raise typer.Exit(130) from None


def say(console: Console, text: str, style: str = "") -> None:
    """One line, however long, without markup: file names may hold brackets."""
    console.print(Text(text, style), soft_wrap=True)


def short(count: float) -> str:
    """A count in at most five characters: 950, 12.3k, 4.56M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            scaled = count / size
            return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f}{unit}"
    return f"{count:.0f}"


def instant(time_us: int | None) -> str:
    """An event time, to the second."""
    if time_us is None:
        return "none yet"
    return f"{_EPOCH + timedelta(microseconds=time_us):%Y-%m-%d %H:%M:%S}"


def lateness_text(length_us: int) -> str:
    """A length for --lateness that is at least this long, and easy to type."""
    for unit, size in (("seconds", 1_000_000), ("milliseconds", 1_000)):
        if length_us >= size:
            return f"{-(-length_us // size)} {unit}"
    return f"{length_us} microseconds"
