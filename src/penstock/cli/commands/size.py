"""`penstock size` as typer sees it: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import AsJson, BatchRows, Force, Keys, Names, Times, Where, Windows
from penstock.cli.request import job_streams
from penstock.cli.size import SizeRequest, run_size
from penstock.cli.views.display import failures_shown
from penstock.files.errors import CommandError
from penstock.jobs.job import Job
from penstock.lab.recording.reading import JOINED_ROWS
from penstock.model.limits import POLICIES

__all__ = ["size"]


def size(  # noqa: PLR0913, PLR0917 - an argument is an option of the command
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="One for each stream.")],
    on: Keys = None,
    time: Times = None,
    within: Windows = None,
    where: Where = None,
    how: Annotated[str, typer.Option(metavar="HOW", help="inner, or of two files semi.")] = "inner",
    names: Names = None,
    recall: Annotated[
        str,
        typer.Option(metavar="PARTS", help="Recalls to find the memory for, in percent or parts."),
    ] = "90,95,99",
    recommend_for: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="PART",
            help="The recall to recommend limits for.",
            show_default="95, or the first of --recall",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POLICY",
            help=f"What goes first: {', '.join(POLICIES)}. Repeatable.",
            show_default="all that fit the windows",
        ),
    ] = None,
    pool: Annotated[
        str,
        typer.Option(metavar="POOL", help="shared, one memory for all streams, or fixed, parts."),
    ] = "shared",
    optimum: Annotated[
        bool | None,
        typer.Option(
            "--optimum/--no-optimum",
            help="Find the best that any policy could have done, or leave it out.",
            show_default="if there are few rows",
        ),
    ] = None,
    sample: Annotated[
        float | None,
        typer.Option(
            metavar="PART",
            help="Join about this part of the rows, sampled by key; 1 for all.",
            show_default=f"as many as {JOINED_ROWS:,} rows",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, metavar="NUMBER", help="Another one, other random draws.")
    ] = 0,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Read files, or directories of them, by Spark."),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="HTML file for recall against memory."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File for the limits, as YAML."),
    ] = None,
    as_json: AsJson = False,
    batch_rows: BatchRows = 65_536,
    force: Force = False,
) -> None:
    """Tell how much memory a join needs: for 90, 95, 99 % of its results, and for all.

    The files are a recording of the streams. They are joined again and again, within less memory
    and more, by each policy.
    """
    with failures_shown():
        if not on and where is None:
            raise CommandError("the streams have no key; give --on, or --where")
        streams = job_streams(files, names, on or (), time or (), within or ())
        if len(files) < 2:
            raise CommandError("a join has two streams or more, got one file; name another")
        run_size(
            SizeRequest(
                job=Job(streams, where, how, batch_rows=batch_rows),
                recalls=recall,
                recommend_for=recommend_for,
                policies=policy,
                pool=pool,
                optimum=optimum,
                sample=sample,
                seed=seed,
                spark=spark,
                plot=plot,
                output=output,
                as_json=as_json,
                force=force,
            )
        )
