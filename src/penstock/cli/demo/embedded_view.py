"""What the embedded demo shows while it runs: a panel in a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from penstock.cli.views.display import instant, say, short
from penstock.cli.views.sparkline import sparkline

__all__ = ["EmbeddedState", "shown"]

_WIDTH: Final = 78
_LABEL: Final = 11
_SPEED: Final = 6
_HISTORY: Final = _WIDTH - 10 - _LABEL - _SPEED  # what frame and gaps leave
_PANEL_PERIOD_S: Final = 0.1
_LINE_PERIOD_S: Final = 1.0


@dataclass
class EmbeddedState:
    """The join so far. speeds: rows a second, at even distances in time."""

    title: str
    total: int
    rows: int = 0
    results: int = 0
    late: int = 0
    live: int = 0
    peak_live: int = 0
    watermark_us: int | None = None
    seconds: float = 0.0
    speeds: deque[float] = field(default_factory=lambda: deque(maxlen=_HISTORY))


@contextmanager
def shown(console: Console, state: EmbeddedState) -> Iterator[Callable[[], None]]:
    """Show `state` as it grows. Call what this gives after every change."""
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield _paced(state, _PANEL_PERIOD_S, lambda: live.update(_panel(state), refresh=True))
    else:
        yield _paced(state, _LINE_PERIOD_S, lambda: say(console, _line(state)))


def _paced(state: EmbeddedState, period_s: float, show: Callable[[], None]) -> Callable[[], None]:
    """`show`, but at most once in a period; the speed is that of the period."""
    last_time, last_rows = time.perf_counter(), 0

    def refresh() -> None:
        nonlocal last_time, last_rows
        now = time.perf_counter()
        if now - last_time < period_s and state.rows < state.total:
            return
        state.speeds.append((state.rows - last_rows) / max(now - last_time, 1e-9))
        last_time, last_rows = now, state.rows
        show()

    return refresh


def _line(state: EmbeddedState) -> str:
    return (
        f"{state.rows / state.total:4.0%}  {state.rows:,} rows  {short(state.speeds[-1])} rows/s  "
        f"{state.results:,} results  {state.live:,} live  "
        f"watermark {instant(state.watermark_us)}"
    )


def _panel(state: EmbeddedState) -> Panel:
    bar = Table.grid(padding=(0, 1), expand=True)
    bar.add_column(ratio=1)
    bar.add_column(justify="right", width=4)
    bar.add_row(
        ProgressBar(total=state.total, completed=state.rows), f"{state.rows / state.total:.0%}"
    )
    numbers = Table.grid(padding=(0, 2))
    for width, style in ((_LABEL, "dim"), (22, "bold"), (8, "dim"), (20, "bold")):
        numbers.add_column(width=width, style=style)
    numbers.add_row("rows", f"{state.rows:,}", "results", f"{state.results:,}")
    numbers.add_row("live tuples", f"{state.live:,}", "late", f"{state.late:,}")
    numbers.add_row("watermark", instant(state.watermark_us), "elapsed", f"{state.seconds:.1f} s")
    speed = Table.grid(padding=(0, 2))
    for width, style in ((_LABEL, "dim"), (_SPEED, "bold"), (_HISTORY, "cyan")):
        speed.add_column(width=width, style=style)
    speed.add_row("rows/s", short(state.speeds[-1]), sparkline(state.speeds))
    return Panel(
        Group(bar, "", numbers, speed),
        title=f"penstock: {state.title}",
        border_style="cyan",
        padding=(0, 2),
        width=_WIDTH,
    )
