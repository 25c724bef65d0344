"""`penstock calibrate`: the weights of the cost model, measured on this machine and kept for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.cli.views.calibrate_plot import write_plot
from penstock.cli.views.calibrate_view import fit_table, ratio_table, weight_table
from penstock.cli.views.display import consoles, failures_shown, say
from penstock.cli.workload_file import check_writable
from penstock.extras import check_extra
from penstock.files.command_error import CommandError, first_line
from penstock.planning import calibration
from penstock.planning.calibration import (
    QUICK_ROUNDS,
    ROUNDS,
    SCAN_RATIOS,
    WINDOWS,
    Calibration,
    scan_limit,
)
from penstock.planning.machine import SHIPPED, machine, store_weights
from penstock.planning.weights import STRUCTURES, WEIGHTS

__all__ = ["calibrate"]

_QUICK_WINDOWS: Final = WINDOWS[::3]  # the smallest and the largest among them


def calibrate(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer runs and windows: rougher, in seconds.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print weights, fit and measurements as JSON.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="HTML file for a plot of what was measured."),
    ] = None,
) -> None:
    """Measure what indexes cost on this machine, and plan with that from now on.

    The weights are kept in the user's cache. It takes about a minute, the first time.
    """
    with failures_shown():
        _run(quick, as_json, plot)


def _run(quick: bool, as_json: bool, plot: Path | None) -> None:
    """Measure, keep the weights and show them."""
    out, errors = consoles()
    if plot is not None:
        check_extra("lab", "a plot", "plotly")
        check_writable(plot, True)
    found = _measured(errors, quick)
    if not as_json:
        _show(out, found)
    try:
        kept = store_weights(found.weights)
    except OSError as error:
        raise CommandError(
            f"the weights cannot be kept: {first_line(error)}; "
            "set XDG_CACHE_HOME to a directory that can be written to"
        ) from error
    if as_json:
        stored = {**found.to_dict(), "machine": machine(), "kept_in": str(kept)}
        print(json.dumps(stored, indent=2))
    else:
        say(out, f"kept in {kept}; joins on this machine are planned with them from now on")
    if plot is not None:
        write_plot(found, plot)
        say(errors, f"the plot is in {plot}")


def _measured(console: Console, quick: bool) -> Calibration:
    rounds, windows = (QUICK_ROUNDS, _QUICK_WINDOWS) if quick else (ROUNDS, WINDOWS)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("compiling kernels, once", total=rounds * len(STRUCTURES))

        def done(index: str) -> None:
            progress.update(task, advance=1, description=f"measuring {index}")

        return calibration.calibrate(windows, rounds, done)


def _show(console: Console, found: Calibration) -> None:
    console.print(weight_table(found.weights, SHIPPED))
    console.print(fit_table(found))
    console.print(ratio_table([found.weights, WEIGHTS["kang2003"], WEIGHTS["kang2002"]]))
    for ratio in SCAN_RATIOS:
        limit = scan_limit(found.weights, ratio)
        when = "as often as probed" if ratio == 1 else f"{ratio} times as often as probed"
        what = f"up to {limit:,} tuples a scan is cheaper, beyond that hash"
        if limit == 0:
            what = "hash is always cheaper than a scan"
        say(console, f"a window that is updated {when}: {what}")
