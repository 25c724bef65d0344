"""`penstock profile`: what the streams in files are like, for people and for the planner."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from penstock.cli.options import AsJson, BatchRows, Force, Keys, Names, Times, Where
from penstock.cli.request import job_streams, shared_columns
from penstock.cli.sources import open_sources, warn_of_early_times
from penstock.cli.views.display import consoles, failures_shown, instant, say
from penstock.cli.views.progress import file_progress
from penstock.cli.views.promises_view import show_promises
from penstock.cli.views.watched import Watched
from penstock.cli.workload_file import check_writable, write_workload
from penstock.errors import PlanError
from penstock.files.command_error import CommandError
from penstock.jobs.job import Job
from penstock.model.duration import format_us
from penstock.model.query import Query
from penstock.model.workload.workload import Workload
from penstock.runtime.pairs import are_linked
from penstock.runtime.profile import DistinctValues, Profile, StreamProfile, profile_streams
from penstock.stats.heavy_keys import SHARE_ERROR

__all__ = ["measured", "profile"]


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
    """Measure streams in files: rates, keys, how often they match, bytes a row, promises they keep.

    What is measured is what `penstock explain` plans by. Files are read once, whatever their size.
    """
    with failures_shown():
        if not on and where is None:
            raise CommandError("the streams have no key; give --on, or --where")
        keys = shared_columns(on or (), len(files))
        streams = job_streams(files, names, keys, time or (), within or ["unbounded"])
        job = Job(streams, where, batch_rows=batch_rows)
        _run(_ProfileRequest(job, output, as_json, force))


@dataclass(frozen=True)
class _ProfileRequest:
    """A job, of which nothing is joined. output: the file for the workload."""

    job: Job
    output: Path | None
    as_json: bool
    force: bool


def _run(request: _ProfileRequest) -> None:
    """Read the files to their ends, and show what they are like."""
    job, query = request.job, _query(request.job)
    if request.output is not None:
        check_writable(request.output, request.force)
    out, _ = consoles()
    profile = measured(query, job)
    if request.as_json:
        say(out, json.dumps(_plain(profile), indent=2))
    else:
        out.print(_table(profile, query))
        for (first, second), share in profile.selectivities.items():
            say(out, f"selectivity of {first} and {second}: {share:.3g}")
        for left, right in combinations(range(len(job.streams)), 2):
            pair = query.names[left], query.names[right]
            if are_linked(query, left, right) and pair not in profile.selectivities:
                say(out, f"no match of {pair[0]} and {pair[1]} was seen: do keys and times meet?")
        if profile.promises is not None:
            show_promises(out, profile.promises)
    if request.output is not None:
        write_workload(profile.workload, request.output)
        if not request.as_json:
            say(out, f"workload in {request.output}")


def measured(query: Query, job: Job, *, promises: bool = True) -> Profile:
    """What the streams of a job are like, with a progress bar while files are read. promises:
    whether to look for those that they keep."""
    _, err = consoles()
    sources = open_sources(job)
    warn_of_early_times(err, job, sources)
    with file_progress(err, sum(source.size for source in sources)) as update:
        watched = Watched(sources, update)
        return profile_streams(
            query,
            {each.name: watched.batches(at) for at, each in enumerate(job.streams)},
            promises=promises,
        )


def _query(job: Job) -> Query:
    """The join of the files; a single one is joined with itself under another name."""
    if len(job.streams) == 1:
        (only,) = job.streams
        job = replace(job, streams=[only, replace(only, name=f"{only.name}_again")])
    return job.query


def _table(profile: Profile, query: Query) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("")
    for each in profile.streams:
        table.add_column(each.name, justify="right", overflow="fold")
    rows: list[tuple[str, Callable[[StreamProfile], str]]] = [
        ("rows", lambda each: f"{each.rows:,}"),
        ("taking part", lambda each: f"{each.taking_part:,}"),
        ("from", lambda each: instant(each.first_us)),
        ("span", _span),
        ("rate", lambda each: "unknown" if each.rate is None else f"{each.rate:,.4g} /s"),
    ]
    rows = [row for row in rows if row[0] != "taking part" or _leaves_out(profile)]
    paths = max((len(each.distinct) for each in profile.streams), default=0)
    for number in range(paths):
        rows += _distinct_rows(number, paths > 1)
    rows += [
        ("heaviest key", lambda each: _share(each.heaviest_share)),
        ("ten heaviest", lambda each: _share(each.top_share)),
        ("bytes a row", lambda each: "-" if each.row_bytes is None else f"{each.row_bytes:,.1f}"),
        ("window", lambda each: str(query.windows[query.position(each.name)])),
    ]
    for label, shown in rows:
        table.add_row(label, *(shown(each) for each in profile.streams))
    return table


def _leaves_out(profile: Profile) -> bool:
    return any(each.taking_part < each.rows for each in profile.streams)


def _distinct_rows(
    number: int, is_one_of_many: bool
) -> list[tuple[str, Callable[[StreamProfile], str]]]:
    def path(each: StreamProfile) -> DistinctValues | None:
        return each.distinct[number] if number < len(each.distinct) else None

    def overall(each: StreamProfile) -> str:
        found = path(each)
        if found is None:
            return "-"
        about = f" ±{found.error:.1%}" if found.error else ""
        return f"{found.overall:,.0f}{about}"

    def in_window(each: StreamProfile) -> str:
        found = path(each)
        return "-" if found is None else f"{found.in_window:,.0f}"

    def columns(each: StreamProfile) -> str:
        found = path(each)
        return "-" if found is None else ", ".join(found.columns)

    of = [("found by", columns)] if is_one_of_many else []
    return [*of, ("distinct keys", overall), ("in a window", in_window)]


def _share(share: float) -> str:
    """Shares may be too low by this much, so that less of one says nothing."""
    return f"{share:.2%}" if share >= SHARE_ERROR else f"below {SHARE_ERROR:.2%}"


def _span(each: StreamProfile) -> str:
    if each.first_us is None or each.last_us is None:
        return "-"
    length_us = each.last_us - each.first_us
    return format_us(length_us // 1_000_000 * 1_000_000 if length_us > 10_000_000 else length_us)


def _plain(profile: Profile) -> dict[str, Any]:
    workload: Workload | None
    try:
        workload = profile.workload
    except PlanError:
        workload = None
    return {
        "streams": [asdict(each) for each in profile.streams],
        "promises": None if profile.promises is None else asdict(profile.promises),
        "workload": None if workload is None else workload.to_dict(),
    }
