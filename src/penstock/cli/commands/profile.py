"""`penstock profile` as typer sees it: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import AsJson, BatchRows, Force, Keys, Names, Times, Where
from penstock.cli.profile import ProfileRequest, run_profile
from penstock.cli.request import job_streams
from penstock.cli.views.display import failures_shown
from penstock.files.errors import CommandError
from penstock.jobs.job import Job

__all__ = ["profile"]


def profile(  # noqa: PLR0913, PLR0917 - an argument is an option of the command
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="One for each stream.")],
    on: Keys = None,
    time: Times = None,
    within: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WINDOW",
            help="Window, such as '10 minutes', of all files or once for each; else all rows.",
        ),
    ] = None,
    where: Where = None,
    names: Names = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File for the workload, as JSON."),
    ] = None,
    as_json: AsJson = False,
    batch_rows: BatchRows = 65_536,
    force: Force = False,
) -> None:
    """Measure streams in files: rates, keys, how often they match, bytes a row.

    What is measured is what `penstock explain` plans by. Files are read once, whatever their size.
    """
    with failures_shown():
        if not on and where is None:
            raise CommandError("the streams have no key; give --on, or --where")
        streams = job_streams(files, names, on or (), time or (), within or ["unbounded"])
        job = Job(streams, where, batch_rows=batch_rows)
        run_profile(ProfileRequest(job, output, as_json, force))
