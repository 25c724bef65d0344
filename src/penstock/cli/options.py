"""Options that several commands take, each defined once."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["AsJson", "BatchRows", "Force", "Indexes", "Keys", "Names", "Times", "Where", "Windows"]

Keys = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Key column, or first=second=... where the names differ. Repeatable.",
    ),
]
Times = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Event-time column, of all files or once for each."),
]
Windows = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WINDOW", help="Window, such as '10 minutes', of all files or once for each."
    ),
]
Names = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Names of the streams, as a,b; else those of files."),
]
Indexes = Annotated[
    list[str] | None,
    typer.Option(
        "--index",
        metavar="INDEX",
        help="hash, buckets(n), bplus_tree, t_tree or scan, of all files or once for each.",
        show_default="the cheapest",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="Predicates, such as 'abs(a.x - b.x) <= 5'."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Show JSON, for programs.")]
BatchRows = Annotated[int, typer.Option(min=1, metavar="ROWS", help="Rows read at a time.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that exists.")]
