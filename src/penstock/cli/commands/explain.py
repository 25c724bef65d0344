"""`penstock explain` as typer sees it: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.explain import ExplainRequest, run_explain
from penstock.cli.options import AsJson, BatchRows, Force, Keys, Names, Times, Where, Windows
from penstock.cli.request import plan_limits
from penstock.cli.views.display import failures_shown
from penstock.planning.weights import WEIGHTS

__all__ = ["explain"]


def explain(  # noqa: PLR0913, PLR0917 - an argument is an option of the command
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILES", help="Sample rows, one file for each stream."),
    ] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STREAM",
            help="Instead, a stream by hand: 'NAME,rate=1000,window=10 minutes,distinct=60000'; "
            "also bytes=, index= and probes=b+c. Repeatable.",
        ),
    ] = None,
    workload: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead, what `penstock profile --output` wrote."),
    ] = None,
    selectivity: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHARE", help="Part of all pairs that match, as a,b=0.01. Repeatable."
        ),
    ] = None,
    on: Keys = None,
    where: Where = None,
    time: Times = None,
    within: Windows = None,
    names: Names = None,
    horizon: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help="How long streams go on whose windows never end."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Most to keep, such as '100000 rows' or '512 MiB'."),
    ] = None,
    service_rate: Annotated[
        float | None,
        typer.Option(metavar="TUPLES", help="Most to deal with in a second of event time."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Weights of the cost model: {', '.join(WEIGHTS)}.",
            show_default="those of this machine",
        ),
    ] = None,
    as_json: AsJson = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="HTML file for costs against the ratio of two rates."),
    ] = None,
    batch_rows: BatchRows = 65_536,
    force: Force = False,
) -> None:
    """Show the plan of a join: indexes, probe orders, costs, and what would change them."""
    with failures_shown():
        run_explain(
            ExplainRequest(
                files=files or (),
                streams=stream or (),
                workload=workload,
                selectivities=selectivity or (),
                on=on or (),
                where=where,
                time=time or (),
                within=within or (),
                names=names,
                horizon=horizon,
                limits=plan_limits(memory, service_rate),
                weights=weights,
                as_json=as_json,
                plot=plot,
                batch_rows=batch_rows,
                force=force,
            )
        )
