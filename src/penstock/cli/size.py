"""`penstock size`: read a recording, join it within less memory and more, and report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from penstock.cli.size_spark import read_by_spark
from penstock.cli.sources import open_sources, warn_of_early_times
from penstock.cli.views.display import consoles, say
from penstock.cli.views.progress import file_progress, part_progress
from penstock.cli.views.size_view import as_json, limits_block, show
from penstock.cli.views.watched import Watched
from penstock.cli.workload_file import check_writable, write_whole
from penstock.extras import check_extra
from penstock.files.errors import CommandError
from penstock.files.source import Source
from penstock.jobs.job import Job
from penstock.lab.recording.reading import JOINED_ROWS, Streams, read_recording
from penstock.lab.recording.recording import Recording
from penstock.lab.sizing.recall_plot import write_plot
from penstock.lab.sizing.sizing import Request, fitting_policies, size
from penstock.window_join import WindowJoin

__all__ = ["SizeRequest", "run_size"]

_POOLS: Final = ("shared", "fixed")


@dataclass(frozen=True)
class SizeRequest:
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


def run_size(request: SizeRequest) -> None:
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
        found = size(recording, asked, progress)
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


def _asked(query: WindowJoin, request: SizeRequest) -> Request:
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


def _read(query: WindowJoin, request: SizeRequest, err: Console) -> Recording:
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
