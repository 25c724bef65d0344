"""`penstock join` as typer sees it: its options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from penstock.cli.join_command import JoinRequest, run_join
from penstock.cli.options import Indexes, Keys, Names, Times, Windows
from penstock.cli.request import (
    either_side,
    job_streams,
    memory_limits,
    paired_columns,
    with_indexes,
)
from penstock.cli.views.display import failures_shown
from penstock.files.errors import CommandError
from penstock.jobs.job import Job
from penstock.model.limits import POLICIES
from penstock.runtime.late import KEPT_LATE_ROWS

__all__ = ["join"]

_LATE_EXIT_CODE: Final = 3
# Options for one side, which are taken but not shown: those for all files say the same.
_Hidden = Annotated[str | None, typer.Option(hidden=True)]
_HiddenKeys = Annotated[list[str] | None, typer.Option(hidden=True)]


def join(  # noqa: PLR0913, PLR0917 - an argument is an option of the command
    left: Annotated[Path, typer.Argument(metavar="LEFT", help="File of the left stream.")],
    right: Annotated[Path, typer.Argument(metavar="RIGHT", help="File of the right stream.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File for the results; its ending is the format."
        ),
    ],
    on: Keys = None,
    time: Times = None,
    within: Windows = None,
    lateness: Annotated[
        str,
        typer.Option(metavar="LENGTH", help="How far rows may be out of the order of their times."),
    ] = "0 seconds",
    late: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Files for the late rows: late.csv makes late_<stream>.csv."
        ),
    ] = None,
    fail_late: Annotated[
        bool,
        typer.Option(
            "--fail-late",
            help=f"Exit with code {_LATE_EXIT_CODE} if rows came late; files are written anyway.",
        ),
    ] = False,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Most to keep, such as '100000 rows' or '512 MiB'; what is too much is dropped.",
        ),
    ] = None,
    shed: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help=f"With --memory, what goes first: {', '.join(POLICIES)}.",
            show_default="prob",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="With --memory, other random draws."),
    ] = None,
    names: Names = None,
    index: Indexes = None,
    batch_rows: Annotated[
        # All of a batch may be late, and the join keeps no more than this until they are drained.
        int,
        typer.Option(min=1, max=KEPT_LATE_ROWS, metavar="ROWS", help="Rows read at a time."),
    ] = 65_536,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show only warnings and errors.")
    ] = False,
    left_on: _HiddenKeys = None,
    right_on: _HiddenKeys = None,
    left_time: _Hidden = None,
    right_time: _Hidden = None,
    left_window: _Hidden = None,
    right_window: _Hidden = None,
    left_index: _Hidden = None,
    right_index: _Hidden = None,
) -> None:
    """Join two files on equal keys within a window of time.

    The files may be parquet, CSV, JSON lines or Arrow, of any size: only windows are kept.
    """
    with failures_shown():
        keys = paired_columns(on or (), left_on or (), right_on or ())
        if not keys:
            raise CommandError("the join has no key; give --on")
        times = either_side(time or (), left_time, right_time, "time")
        windows = either_side(within or (), left_window, right_window, "within")
        streams = job_streams((left, right), names, keys, times, windows)
        streams = [
            replace(each, lateness=lateness, index=own or each.index)
            for each, own in zip(
                with_indexes(streams, index or ()), (left_index, right_index), strict=True
            )
        ]
        limits = memory_limits(memory, shed, seed)
        job = Job(streams, limits=limits, batch_rows=batch_rows)
        late_rows = run_join(JoinRequest(job, out, late, force, quiet))
    if fail_late and late_rows:
        raise typer.Exit(_LATE_EXIT_CODE)
