"""`penstock explain`: which plan a join would have, what it costs, and what else there is.

Streams are given by hand (--stream), by a workload that was measured before (--workload), or by
files of sample rows, which are measured first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.commands.profile import measured
from penstock.cli.options import AsJson, BatchRows, Force, Keys, Names, Times, Where, Windows
from penstock.cli.request import for_each_file, job_streams, plan_limits, shared_columns
from penstock.cli.stream_option import (
    StreamOption,
    given_workload,
    parse_selectivities,
    parse_streams,
)
from penstock.cli.views.display import consoles, failures_shown, say
from penstock.cli.workload_file import check_writable, read_workload
from penstock.files.command_error import CommandError
from penstock.jobs.job import Job
from penstock.model.limits import Limits
from penstock.model.stream import Stream
from penstock.model.workload.workload import Workload
from penstock.planning.explain.rendering import rendered
from penstock.planning.weights import WEIGHTS
from penstock.window_join import WindowJoin

__all__ = ["explain"]

_TIME = "time"  # of streams that are not read


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
            "also bytes=, punctuation_rate=, index= and probes=b+c. Repeatable.",
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
    within: Windows = None,
    names: Names = None,
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
        _run(
            _ExplainRequest(
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


@dataclass(frozen=True)
class _ExplainRequest:
    """The options as they were given."""

    files: Sequence[Path]
    streams: Sequence[str]
    workload: Path | None
    selectivities: Sequence[str]
    on: Sequence[str]
    where: str | None
    time: Sequence[str]
    within: Sequence[str]
    names: str | None
    horizon: str | None
    limits: Limits | None
    weights: str | None
    as_json: bool
    plot: Path | None
    batch_rows: int
    force: bool


def _run(request: _ExplainRequest) -> None:
    """Plan, and show it."""
    if not request.on and request.where is None:
        raise CommandError("the streams have no key; give --on, or --where")
    if request.plot is not None:
        check_writable(request.plot, request.force)
    streams = parse_streams(request.streams)
    query, workload = _of_files(request) if request.files else _by_hand(request, streams)
    if request.horizon is not None:
        if workload is None:
            raise CommandError("--horizon goes with rates; give rate= with every --stream")
        workload = replace(workload, horizon=request.horizon)
    explanation = query.explain(
        workload,
        indexes={each.name: each.told["index"] for each in streams if "index" in each.told},
        probe_orders={
            each.name: [name.strip() for name in each.told["probes"].split("+")]
            for each in streams
            if "probes" in each.told
        },
        limits=request.limits,
        weights=request.weights,
    )
    out, err = consoles()
    if request.plot is not None:
        explanation.plot(request.plot)
    if request.as_json:
        say(out, explanation.to_json())
        return
    if out.is_terminal:
        out.print(rendered(explanation))
    else:
        say(out, str(explanation))
    if request.plot is not None:
        say(err, f"plot in {request.plot}")


def _of_files(request: _ExplainRequest) -> tuple[WindowJoin, Workload]:
    for option, value in (("--stream", request.streams), ("--workload", request.workload)):
        if value:
            raise CommandError(
                f"files are measured, and {option} tells what they would be; give one or the other"
            )
    if len(request.files) < 2:
        raise CommandError("a join has two streams or more, got one file; name another")
    streams = job_streams(
        request.files,
        request.names,
        shared_columns(request.on, len(request.files)),
        request.time,
        request.within,
    )
    job = Job(streams, request.where, batch_rows=request.batch_rows)
    query = job.query
    return query, measured(query, job, promises=False).workload


def _by_hand(
    request: _ExplainRequest, streams: Sequence[StreamOption]
) -> tuple[WindowJoin, Workload | None]:
    workload: Workload | None
    if request.workload is None:
        workload = given_workload(streams, parse_selectivities(request.selectivities))
    else:
        workload = read_workload(request.workload)
        twice = [each.name for each in streams if each.is_measured]
        if twice or request.selectivities:
            raise CommandError(
                f"{request.workload} tells what the streams are like, and so do the options"
                f"{f' for {twice}' if twice else ''}; give one or the other"
            )
    names = [each.name for each in streams]
    if not names and workload is not None and isinstance(workload.rates, dict):
        names = list(workload.rates)
    if len(names) < 2:
        raise CommandError(
            f"a join has two streams or more, got {names or 'none'}; give files, --workload, or "
            "for each stream --stream 'NAME,rate=1000,window=10 minutes,distinct=60000'"
        )
    own = {each.name: each.told["window"] for each in streams if "window" in each.told}
    within = for_each_file(request.within, len(names), "within") if request.within else []
    windows = dict(zip(names, within, strict=False)) | own
    for name in names:
        if name not in windows:
            raise CommandError(
                f"stream {name!r} has no window; give --within, or window= in its --stream"
            )
    keys = shared_columns(request.on, len(names))
    query = WindowJoin(
        [Stream(name, _TIME, window=windows[name]) for name in names],
        on=dict(zip(names, keys, strict=True)) if request.on else None,
        where=request.where,
    )
    return query, workload
