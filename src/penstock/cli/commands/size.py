"""`penstock size`: read a recording, join it within less memory and more, and report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from penstock.cli.options import AsJson, BatchRows, Force, Keys, Names, Times, Where, Windows
from penstock.cli.request import job_streams, shared_columns
from penstock.cli.size_spark import read_by_spark
from penstock.cli.sources import open_sources, warn_of_early_times
from penstock.cli.views.display import consoles, failures_shown, say
from penstock.cli.views.progress import file_progress, part_progress
from penstock.cli.views.size_view import as_json, limits_block, show
from penstock.cli.views.watched import Watched
from penstock.cli.workload_file import check_writable, write_whole
from penstock.extras import check_extra
from penstock.files.command_error import CommandError
from penstock.files.source import Source
from penstock.jobs.job import Job
from penstock.lab.recording.reading import JOINED_ROWS, Streams, read_recording
from penstock.lab.recording.recording import Recording
from penstock.lab.sizing.recall_plot import write_plot
from penstock.lab.sizing.sizing import Request, fitting_policies
from penstock.lab.sizing.sizing import size as sized
from penstock.model.limits import POLICIES
from penstock.window_join import WindowJoin

__all__ = ["size"]

_POOLS: Final = ("shared", "fixed")


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
        keys = shared_columns(on or (), len(files))
        streams = job_streams(files, names, keys, time or (), within or ())
        if len(files) < 2:
            raise CommandError("a join has two streams or more, got one file; name another")
        _run(
            _SizeRequest(
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


@dataclass(frozen=True)
class _SizeRequest:
    """A job, and the options as they were given."""

    job: Job
    recalls: str
    recommend_for: str | None
    policies: Sequence[str] | None
    pool: str
    optimum: bool | None
    sample: float | None
    seed: int
    spark: bool
    plot: Path | None
    output: Path | None
    as_json: bool
    force: bool


def _run(request: _SizeRequest) -> None:
    """Do it, and show what came of it."""
    query = request.job.query
    asked = _asked(query, request)
    if request.plot is not None and request.plot == request.output:
        raise CommandError(
            f"{str(request.plot)!r} would be both the plot and the limits; name two files"
        )
    if request.plot is not None:
        check_extra("lab", "a plot", "plotly")
    for path in (request.plot, request.output):
        if path is not None:
            check_writable(path, request.force)
    out, err = consoles()
    if request.spark:
        recording = read_by_spark(query, request.job, request.sample, request.seed)
    else:
        recording = _read(query, request, err)
    if recording.sample is None and recording.rows > JOINED_ROWS and request.sample is None:
        say(
            err,
            f"all {recording.rows:,} rows are joined: without a key there is nothing to sample "
            "by; this may take long",
            "yellow",
        )
    with part_progress(err) as progress:
        found = sized(recording, asked, progress)
    if request.as_json:
        say(out, as_json(found))
    else:
        show(out, found)
    if request.plot is not None:
        write_plot(found, request.plot)
        say(err, f"plot in {request.plot}")
    if request.output is not None and found.recommendation is not None:
        write_whole(limits_block(found), request.output)
        say(err, f"limits in {request.output}")


def _asked(query: WindowJoin, request: _SizeRequest) -> Request:
    if request.pool not in _POOLS:
        raise CommandError(f"--pool is one of {', '.join(_POOLS)}, got {request.pool!r}")
    if request.sample is not None and not 0 < request.sample <= 1:
        raise CommandError(
            f"--sample is a part of the rows, above 0 and at most 1, got {request.sample:g}"
        )
    recalls = _recalls(request.recalls, "--recall")
    recommend_for = None
    if request.recommend_for is not None:
        (recommend_for, *more) = _recalls(request.recommend_for, "--for")
        if more:
            raise CommandError(f"--for takes one recall, got {request.recommend_for!r}")
        recalls.append(recommend_for)
    return Request(
        recalls,
        fitting_policies(query, request.policies),
        recommend_for,
        request.pool,
        request.seed,
        request.optimum,
    )


def _recalls(text: str, option: str) -> list[float]:
    """From 90,95,99 or 0.9,0.95,0.99."""
    recalls = []
    for part in text.split(","):
        try:
            number = float(part.strip().removesuffix("%"))
        except ValueError:
            number = 0.0
        if not 0 < number <= 100:
            raise CommandError(
                f"cannot read {option} {text!r}; write parts of the results in percent, such as "
                "90,95,99, or as 0.9,0.95,0.99"
            )
        recalls.append(number / 100 if number > 1 else number)
    return recalls


def _read(query: WindowJoin, request: _SizeRequest, err: Console) -> Recording:
    job = request.job
    sources = open_sources(job)
    warn_of_early_times(err, job, sources)
    opened: list[list[Source]] = [sources]

    def streams() -> Streams:
        watched = Watched(opened.pop() if opened else open_sources(job), update)
        return {each.name: watched.batches(at) for at, each in enumerate(job.streams)}

    schemas = {
        stream.name: source.schema for stream, source in zip(job.streams, sources, strict=True)
    }
    with file_progress(err, sum(source.size for source in sources)) as update:
        return read_recording(query, streams, schemas, share=request.sample, seed=request.seed)
