"""What the demo shows while it runs: a panel in a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Final

import pyarrow as pa
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from penstock.cli.display import say, short
from penstock.cli.result_rows import as_rich
from penstock.cli.sparkline import sparkline

__all__ = ["DemoState", "Refresh", "shown"]

_WIDTH: Final = 78
_HISTORY: Final = 36
_FRAMES_A_SECOND: Final = 8


@dataclass
class DemoState:
    """The query so far.

    total: rows there are to read. rows: read of each stream. seconds, batch_rows: of each
    batch. speeds: rows a second of all streams, batch by batch. lag_us: of the watermark,
    behind the newest event time. doing: what is waited for now.
    """

    title: str
    total: int
    rows: dict[str, int]
    started: float = field(default_factory=time.perf_counter)
    first_results_s: float | None = None
    doing: str = ""
    doing_since: float = 0.0
    seconds: list[float] = field(default_factory=list)
    batch_rows: list[int] = field(default_factory=list)
    stream_speeds: dict[str, float] = field(default_factory=dict)
    speeds: deque[float] = field(default_factory=lambda: deque(maxlen=_HISTORY))
    results: int = 0
    late: int = 0
    live: int = 0
    peak_live: int = 0
    bytes: int = 0
    rebuilt: int = 0
    lag_us: int | None = None
    examples: pa.Table | None = None

    @property
    def elapsed_s(self) -> float:
        """Since the command began."""
        return time.perf_counter() - self.started

    @property
    def all_rows(self) -> int:
        """Read of all streams together."""
        return sum(self.rows.values())

    @property
    def batch_s(self) -> float:
        """The median of the batches' times."""
        return median(self.seconds or [0.0])

    @property
    def steady_speed(self) -> float:
        """Rows a second, of batches without the first: that one starts the workers."""
        rows, seconds = self.batch_rows, self.seconds
        steady = slice(1, None) if len(rows) > 1 else slice(None)
        return sum(rows[steady]) / max(sum(seconds[steady]), 1e-9)

    def now(self, doing: str) -> None:
        """Something else is waited for."""
        self.doing, self.doing_since = doing, time.perf_counter()


# What changed: "doing", "batch" or "examples".
Refresh = Callable[[str], None]


@contextmanager
def shown(console: Console, state: DemoState) -> Iterator[Refresh]:
    """Show `state` as it grows. Call what this gives after every change, with what changed."""
    if console.is_terminal:
        spinner = Spinner("dots")
        with Live(
            console=console,
            get_renderable=lambda: _panel(state, spinner),
            refresh_per_second=_FRAMES_A_SECOND,
        ):
            yield lambda change: None
    else:
        yield lambda change: _print(console, state, change)


def _print(console: Console, state: DemoState, change: str) -> None:
    if change == "doing":
        say(console, f"{state.elapsed_s:5.1f} s  {state.doing}")
    elif change == "batch":
        say(console, f"{state.elapsed_s:5.1f} s  {_line(state)}")
    elif state.examples is not None:
        say(console, "the first results", "bold")
        console.print(as_rich(state.examples))


def _line(state: DemoState) -> str:
    speeds = " ".join(f"{name} {short(speed)}/s" for name, speed in state.stream_speeds.items())
    return (
        f"{state.all_rows / state.total:4.0%}  batch {len(state.seconds)} {state.seconds[-1]:.2f} s"
        f"  {speeds}  {state.results:,} results  {state.live:,} live  lag {_lag(state)}"
    )


def _panel(state: DemoState, spinner: Spinner) -> RenderableType:
    bar = Table.grid(padding=(0, 1), expand=True)
    bar.add_column(ratio=1)
    bar.add_column(justify="right", width=4)
    done = state.all_rows / state.total
    bar.add_row(ProgressBar(total=state.total, completed=state.all_rows), f"{done:.0%}")
    parts: list[RenderableType] = [bar, "", _streams(state), "", _numbers(state)]
    if state.doing:
        since = time.perf_counter() - state.doing_since
        spinner.update(text=Text(f"{state.doing}: {since:.1f} s", "dim"))
        parts += ["", spinner]
    title = f"penstock on Spark: {state.title}"
    panel = Panel(
        Group(*parts),
        title=title,
        border_style="cyan",
        padding=(0, 2),
        width=_WIDTH,
        title_align="left",
    )
    if state.examples is None:
        return panel
    return Group(panel, Text(" the first results", "bold"), as_rich(state.examples))


def _streams(state: DemoState) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=13, style="dim")
    table.add_column(width=11, justify="right", style="bold")
    table.add_column(width=7, justify="right", style="bold")
    table.add_column(width=_HISTORY, style="cyan")
    table.add_row("", Text("rows", "dim"), Text("rows/s", "dim"), "")
    for name, rows in state.rows.items():
        table.add_row(name, f"{rows:,}", short(state.stream_speeds.get(name, 0)), "")
    speed = state.speeds[-1] if state.speeds else 0.0
    table.add_row("all", f"{state.all_rows:,}", short(speed), sparkline(state.speeds))
    return table


def _numbers(state: DemoState) -> Table:
    table = Table.grid(padding=(0, 2))
    for width, style in ((13, "dim"), (18, "bold"), (13, "dim"), (20, "bold")):
        table.add_column(width=width, style=style)
    last = f"{state.seconds[-1]:.2f} s" if state.seconds else "-"
    table.add_row("results", f"{state.results:,}", "live rows", f"{state.live:,}")
    table.add_row("batches", f"{len(state.seconds)}", "state", f"{state.bytes / 1e6:,.0f} MB")
    table.add_row("batch time", last, "watermark lag", _lag(state))
    table.add_row("late", f"{state.late:,}", "elapsed", f"{state.elapsed_s:.1f} s")
    return table


def _lag(state: DemoState) -> str:
    return "-" if state.lag_us is None else f"{state.lag_us / 1e6:.1f} s"
