"""`penstock profile` as typer sees it: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import AsJson, BatchRows, Force, Keys, Names, Times, Where
from penstock.cli.profile import FileStream, ProfileRequest, run_profile
from penstock.cli.request import for_each_file, shared_columns, stream_names
from penstock.cli.views.display import failures_shown
from penstock.files.errors import CommandError

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
        if not time:
            raise CommandError("the files have no time; give --time")
        run_profile(
            ProfileRequest(
                files=[
                    FileStream(*file)
                    for file in zip(
                        files,
                        stream_names(files, names),
                        shared_columns(on or (), len(files)),
                        for_each_file(time, len(files), "time"),
                        for_each_file(within or ["unbounded"], len(files), "within"),
                        strict=True,
                    )
                ],
                where=where,
                output=output,
                as_json=as_json,
                batch_rows=batch_rows,
                force=force,
            )
        )
