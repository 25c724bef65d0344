"""Options that several commands take, each defined once."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["AsJson", "BatchRows", "Force", "Keys", "Times", "Where"]

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
Where = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="Predicates, such as 'abs(a.x - b.x) <= 5'."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Show JSON, for programs.")]
BatchRows = Annotated[int, typer.Option(min=1, metavar="ROWS", help="Rows read at a time.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that exists.")]
