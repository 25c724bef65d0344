"""The commands of `penstock`, as typer sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from penstock import __version__
from penstock.cli.calibrate import run_calibrate
from penstock.cli.demo.command import run_demo
from penstock.cli.demo.embedded import run_embedded_demo
from penstock.cli.explain import ExplainRequest, run_explain
from penstock.cli.join_command import JoinRequest, SideRequest, run_join
from penstock.cli.kernels import kernels
from penstock.cli.options import AsJson, BatchRows, Force, Keys, Times, Where
from penstock.cli.profile import FileStream, ProfileRequest, run_profile
from penstock.cli.request import (
    both_sides,
    for_each_file,
    key_columns,
    memory_limits,
    plan_limits,
    shared_columns,
    stream_names,
)
from penstock.cli.size_command import size
from penstock.cli.views.display import failures_shown
from penstock.files.errors import CommandError
from penstock.model.limits import POLICIES
from penstock.planning.weights import WEIGHTS
from penstock.runtime.late import KEPT_LATE_ROWS

__all__ = ["app", "main"]

_LATE_EXIT_CODE: Final = 3
# Of the demo: about a minute on two cores, and ten seconds on one.
_SPARK_ROWS: Final = 5_000_000
_ROWS: Final = 30_000_000
_SECONDS: Final = 90.0


def _without_values(parameters: list[Any]) -> list[Any]:
    """Flags take no value, and the help must not show one."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


app: Final = typer.Typer(
    cls=_Group,
    help="Sliding-window joins over streams.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def main() -> None:
    """The entry point."""
    app(prog_name="penstock")


@app.callback(invoke_without_command=True)
def penstock(
    context: typer.Context,
    # Not eager: then words after it would go unseen.
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Sliding-window joins over streams."""
    if version:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


@app.command("join", cls=_Command)
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
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Event-time column of both files.")
    ] = None,
    left_time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Event-time column, left.")
    ] = None,
    right_time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Event-time column, right.")
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help="How far apart rows may be, such as '10 minutes'."),
    ] = None,
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
    names: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Names of the two streams, as a,b; else those of the files."
        ),
    ] = None,
    left_index: Annotated[
        str | None,
        typer.Option(
            metavar="INDEX",
            help="hash, buckets(n), bplus_tree, t_tree or scan.",
            show_default="the cheapest",
        ),
    ] = None,
    right_index: Annotated[
        str | None,
        typer.Option(
            metavar="INDEX",
            help="hash, buckets(n), bplus_tree, t_tree or scan.",
            show_default="the cheapest",
        ),
    ] = None,
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
                        both_sides(time, left_time, right_time, "time"),
                        both_sides(within, left_window, right_window, "within"),
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


@app.command("profile", cls=_Command)
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
    names: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Names of the streams, as a,b; else those of files."),
    ] = None,
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


@app.command("explain", cls=_Command)
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
    within: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WINDOW", help="Window, such as '10 minutes', of all streams or once for each."
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Names of the files' streams, as a,b."),
    ] = None,
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


app.command("size", cls=_Command)(size)


@app.command("demo", cls=_Command)
def demo(
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
        if embedded:
            run_embedded_demo(rows or _ROWS, seed)
            return
        code = run_demo(rows or _SPARK_ROWS, seed, seconds)
    raise typer.Exit(code)


@app.command("calibrate", cls=_Command)
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


app.add_typer(kernels, name="kernels")
