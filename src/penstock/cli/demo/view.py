"""What the demo shows while it runs: a panel in a terminal, plain lines anywhere else.

Whatever is waited for is shown with the seconds it has taken so far. As plain lines, that is one
every few seconds in which nothing else is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from penstock.cli.demo.state import HISTORY, DemoState
from penstock.cli.views.display import short
from penstock.cli.views.plain_lines import LINE_PERIOD_S, PlainLines
from penstock.cli.views.result_rows import as_rich
from penstock.cli.views.sparkline import sparkline

__all__ = ["Refresh", "shown"]

_WIDTH: Final = 78
_FRAMES_A_SECOND: Final = 8

# What changed: "wait", "preview", "batch" or "examples".
Refresh = Callable[[str], None]


@contextmanager
def shown(
    console: Console, state: DemoState, line_period_s: float = LINE_PERIOD_S
) -> Iterator[Refresh]:
    """Show `state` as it grows. Call what this gives after every change, with what changed."""
    if console.is_terminal:
        spinner = Spinner("dots")
        with Live(
            console=console,
            get_renderable=lambda: _panel(state, spinner),
            refresh_per_second=_FRAMES_A_SECOND,
        ):
            yield lambda change: None
        return

    def line(text: str) -> str:
        return f"{state.elapsed_s:5.1f} s  {text}" if text else ""

    def waits() -> str:
        return line("; ".join(map(str, state.waits.values())))

    with PlainLines(console, waits, line_period_s) as lines:
        yield lambda change: _print(console, state, change, lambda text: lines.say(line(text)))


def _print(console: Console, state: DemoState, change: str, say: Callable[[str], None]) -> None:
    if change == "batch":
        say(_line(state))
    elif change == "preview" and state.preview is not None:
        say(str(state.preview))
        console.print(as_rich(state.preview.examples))
    elif change == "examples" and state.examples is not None:
        say("the first results on Spark")
        console.print(as_rich(state.examples))
    elif change == "wait":
        say("; ".join(wait.text for wait in state.waits.values()))


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
    parts: list[RenderableType] = [bar, _streams(state), "", _numbers(state)]
    if waits := state.waits:
        spinner.update(text=Text("\n".join(map(str, waits.values())), "dim"))
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
    if state.examples is not None:
        found, results = "the first results on Spark", state.examples
    elif state.preview is not None:
        found, results = str(state.preview), state.preview.examples
    else:
        return panel
    return Group(panel, Text(f" {found}", "bold"), as_rich(results))


def _streams(state: DemoState) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=13, style="dim")
    table.add_column(width=11, justify="right", style="bold")
    table.add_column(width=7, justify="right", style="bold")
    table.add_column(width=HISTORY, style="cyan")
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
