"""`penstock join`: two files in, one out, with a progress bar and a summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from penstock.cli.join_files import Totals, join_files
from penstock.cli.options import Indexes, Keys, Names, Times, Windows
from penstock.cli.request import (
    either_side,
    for_each_file,
    job_streams,
    late_path,
    memory_limits,
    paired_columns,
)
from penstock.cli.side import Side
from penstock.cli.sources import open_sources, warn_of_early_times
from penstock.cli.views.display import consoles, failures_shown, lateness_text, say, short
from penstock.cli.views.loss_text import loss_lines, warn_of_loss
from penstock.cli.views.progress import file_progress
from penstock.files.command_error import CommandError
from penstock.files.output import Output
from penstock.jobs.job import Job
from penstock.model.amount import amount
from penstock.model.limits import POLICIES
from penstock.runtime.late import KEPT_LATE_ROWS
from penstock.runtime.metrics import Metrics

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
        if not keys[0]:
            raise CommandError("the join has no key; give --on")
        times = either_side(time or (), left_time, right_time, "time")
        windows = either_side(within or (), left_window, right_window, "within")
        streams = job_streams((left, right), names, keys, times, windows)
        indexes = for_each_file(index, 2, "index") if index else [None, None]
        streams = [
            replace(each, lateness=lateness, index=own or shared)
            for each, own, shared in zip(streams, (left_index, right_index), indexes, strict=True)
        ]
        limits = memory_limits(memory, shed, seed)
        job = Job(streams, limits=limits, batch_rows=batch_rows)
        late_rows = _run(_JoinRequest(job, out, late, force, quiet))
    if fail_late and late_rows:
        raise typer.Exit(_LATE_EXIT_CODE)


@dataclass(frozen=True)
class _JoinRequest:
    """A job, and where what comes of it goes.

    late: the file whose name, with a stream's put in, takes that stream's late rows.
    """

    job: Job
    out: Path
    late: Path | None
    force: bool
    quiet: bool


def _run(request: _JoinRequest) -> int:
    """Do it, say what it came to, and return how many rows came late."""
    started = time.perf_counter()
    job = request.job
    query = job.query
    outputs = _outputs(request)
    sources = open_sources(job)
    sides = [
        Side(stream.name, stream.time, source, job.batch_rows)
        for stream, source in zip(job.streams, sources, strict=True)
    ]
    out, err = consoles()
    warn_of_early_times(err, job, sources)
    with ExitStack() as stack:
        files = [stack.enter_context(output) for output in outputs]
        late = dict(zip([side.name for side in sides], files[1:], strict=False))
        report = stack.enter_context(_progress(err, sides, request.quiet))
        join = stack.enter_context(
            query.start(
                indexes=job.indexes,
                schemas={side.name: side.source.schema for side in sides},
                limits=job.limits,
            )
        )
        totals = join_files(join, sides, files[0], late, report, job.limits is not None)
        metrics = join.metrics
    elapsed = time.perf_counter() - started
    if not request.quiet:
        lines = _summary(sides, totals, metrics, request.out)
        lines += [] if job.limits is None else loss_lines(metrics)
        lines.append(("peak live", amount(totals.peak_live, "tuple")))
        speed = short(sum(side.rows for side in sides) / max(elapsed, 1e-9))
        _show(out, [*lines, ("elapsed", f"{elapsed:.2f} s, {speed} rows/s")])
    _warn_of_late(err, sides, {name: file.path for name, file in late.items()})
    if job.limits is not None:
        warn_of_loss(err, job.limits, metrics, sides, totals)
    return sum(side.late for side in sides)


def _outputs(request: _JoinRequest) -> list[Output]:
    paths = [request.out]
    if request.late is not None:
        paths += [late_path(request.late, side.name) for side in request.job.streams]
    taken = {side.path.resolve() for side in request.job.streams}
    for path in paths:
        if path.resolve() in taken:
            raise CommandError(f"{str(path)!r} would be both read and written; name another file")
        taken.add(path.resolve())
    return [Output(path, request.force) for path in paths]


@contextmanager
def _progress(
    console: Console, sides: Sequence[Side], quiet: bool
) -> Iterator[Callable[[Totals], None]]:
    started = time.perf_counter()
    size = sum(side.source.size for side in sides)
    # Scripts take what a join says on standard error for warnings.
    with file_progress(console, size, quiet or not console.is_terminal) as update:

        def report(totals: Totals) -> None:
            seconds = max(time.perf_counter() - started, 1e-9)
            update(
                sum(side.source.size if side.ended else side.source.position() for side in sides),
                f"{short(sum(side.rows for side in sides) / seconds)} rows/s "
                f"{short(totals.results)} results",
            )

        yield report


def _summary(
    sides: Sequence[Side], totals: Totals, metrics: Metrics, out: Path
) -> list[tuple[str, str]]:
    """What came in, what was left out, and what came of it."""
    lines = []
    for side in sides:
        left_out = metrics.streams[side.name].left_out
        lines.append((side.name, f"{amount(side.rows, 'row')}, {side.late:,} late{left_out}"))
    return [*lines, ("results", f"{amount(totals.results, 'row')} in {out}")]


def _show(console: Console, lines: Sequence[tuple[str, str]]) -> None:
    width = max(len(label) for label, _ in lines)
    for label, text in lines:
        say(console, f"{label:<{width}}  {text}")


def _warn_of_late(console: Console, sides: Sequence[Side], kept: dict[str, Path]) -> None:
    late = [side for side in sides if side.late]
    if not late:
        return
    for side in late:
        them = "it is" if side.late == 1 else "they are"
        where = f"; {them} in {kept[side.name]}" if side.name in kept else ""
        say(
            console,
            f"warning: {side.late:,} of {amount(side.rows, 'row')} of {side.source.path} came late "
            f"and {'was' if side.late == 1 else 'were'} left out of the join{where}",
            "bold yellow",
        )
    needed = lateness_text(max(side.disorder_us for side in sides))
    say(
        console,
        f"warning: the rows are not in order of time; give --lateness '{needed}' to join them all",
        "bold yellow",
    )
