"""`penstock calibrate` as typer sees it: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.calibrate import run_calibrate
from penstock.cli.views.display import failures_shown

__all__ = ["calibrate"]


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
        run_calibrate(quick, as_json, plot)
