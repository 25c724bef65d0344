"""`penstock join` as typer sees it: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from penstock.cli.join_command import JoinRequest, SideRequest, run_join
from penstock.cli.options import Index, Names, Times, Windows
from penstock.cli.request import both_sides, key_columns, memory_limits, stream_names
from penstock.cli.views.display import failures_shown
from penstock.model.limits import POLICIES
from penstock.runtime.late import KEPT_LATE_ROWS

__all__ = ["join"]

_LATE_EXIT_CODE: Final = 3


def join(  # noqa: PLR0913, PLR0917 - an argument is an option of the command
    left: Annotated[Path, typer.Argument(metavar="LEFT", help="File of the left stream.")],
    right: Annotated[Path, typer.Argument(metavar="RIGHT", help="File of the right stream.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File for the results; its ending is the format."
        ),
    ],
    on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Key column, or left=right where the names differ. Repeatable."
        ),
    ] = None,
    left_on: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Key column of the left file. Repeatable."),
    ] = None,
    right_on: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Key column of the right file. Repeatable."),
    ] = None,
    time: Times = None,
    left_time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Event-time column, left.")
    ] = None,
    right_time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Event-time column, right.")
    ] = None,
    within: Windows = None,
    left_window: Annotated[
        str | None, typer.Option(metavar="LENGTH", help="How long a left row waits for right ones.")
    ] = None,
    right_window: Annotated[
        str | None, typer.Option(metavar="LENGTH", help="How long a right row waits for left ones.")
    ] = None,
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
    left_index: Index = None,
    right_index: Index = None,
    batch_rows: Annotated[
        # All of a batch may be late, and the join keeps no more than this until they are drained.
        int,
        typer.Option(min=1, max=KEPT_LATE_ROWS, metavar="ROWS", help="Rows read at a time."),
    ] = 65_536,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show only warnings and errors.")
    ] = False,
) -> None:
    """Join two files on equal keys within a window of time.

    The files may be parquet, CSV, JSON lines or Arrow, of any size: only windows are kept.
    """
    with failures_shown():
        late_rows = run_join(
            JoinRequest(
                sides=[
                    SideRequest(*side)
                    for side in zip(
                        (left, right),
                        stream_names((left, right), names),
                        key_columns(on or (), left_on or (), right_on or ()),
                        both_sides(time or (), left_time, right_time, "time"),
                        both_sides(within or (), left_window, right_window, "within"),
                        (left_index, right_index),
                        strict=True,
                    )
                ],
                out=out,
                late=late,
                lateness=lateness,
                limits=memory_limits(memory, shed, seed),
                batch_rows=batch_rows,
                force=force,
                quiet=quiet,
            )
        )
    if fail_late and late_rows:
        raise typer.Exit(_LATE_EXIT_CODE)
