"""`penstock demo` as typer sees it: its options."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from penstock.cli.demo.command import run_demo
from penstock.cli.demo.embedded import run_embedded_demo
from penstock.cli.demo.ended_auctions import run_auction_demo
from penstock.cli.views.display import failures_shown
from penstock.files.command_error import CommandError

__all__ = ["demo"]

# About a minute on two cores, and ten seconds on one.
_SPARK_ROWS: Final = 5_000_000
_ROWS: Final = 30_000_000
_AUCTION_ROWS: Final = 3_000_000
_SECONDS: Final = 90.0


def demo(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[auctions]",
            help="'auctions': count the bids for each auction when it ends, in this process.",
            show_default=False,
        ),
    ] = None,
    embedded: Annotated[
        bool,
        typer.Option("--embedded", help="Join two simpler streams in this process, without Spark."),
    ] = False,
    rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Rows of all streams; {_SPARK_ROWS:,} when not given, embedded {_ROWS:,}.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other streams.")] = 0,
    seconds: Annotated[
        float,
        typer.Option(min=0, help="On Spark, stop this long after the first batch, done or not."),
    ] = _SECONDS,
) -> None:
    """Join the generated streams of an auction site on Spark, and watch it."""
    with failures_shown():
        if what is not None:
            if what != "auctions":
                raise CommandError(f"there is no demo {what!r}; there is 'auctions'")
            run_auction_demo(rows or _AUCTION_ROWS, seed)
            return
        if embedded:
            run_embedded_demo(rows or _ROWS, seed)
            return
        code = run_demo(rows or _SPARK_ROWS, seed, seconds)
    raise typer.Exit(code)
