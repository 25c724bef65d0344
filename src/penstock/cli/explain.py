"""`penstock explain`: which plan a join would have, what it costs, and what else there is.

Streams are given by hand (--stream), by a workload that was measured before (--workload), or by
files of sample rows, which are measured first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.cli.profile import measured
from penstock.cli.request import for_each_file, job_streams, shared_columns
from penstock.cli.stream_option import (
    StreamOption,
    given_workload,
    parse_selectivities,
    parse_streams,
)
from penstock.cli.views.display import consoles, say
from penstock.cli.workload_file import check_writable, read_workload
from penstock.files.errors import CommandError
from penstock.jobs.job import Job
from penstock.model.limits import Limits
from penstock.model.stream import Stream
from penstock.model.workload.workload import Workload
from penstock.planning.explain.text import rendered
from penstock.window_join import WindowJoin

__all__ = ["ExplainRequest", "run_explain"]

_TIME = "time"  # of streams that are not read


@dataclass(frozen=True)
class ExplainRequest:
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


def run_explain(request: ExplainRequest) -> None:
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


def _of_files(request: ExplainRequest) -> tuple[WindowJoin, Workload]:
    for option, value in (("--stream", request.streams), ("--workload", request.workload)):
        if value:
            raise CommandError(
                f"files are measured, and {option} tells what they would be; give one or the other"
            )
    if len(request.files) < 2:
        raise CommandError("a join has two streams or more, got one file; name another")
    streams = job_streams(request.files, request.names, request.on, request.time, request.within)
    job = Job(streams, request.where, batch_rows=request.batch_rows)
    query = job.query
    return query, measured(query, job).workload


def _by_hand(
    request: ExplainRequest, streams: Sequence[StreamOption]
) -> tuple[WindowJoin, Workload | None]:
    workload: Workload | None
    if request.workload is None:
        workload = given_workload(streams, parse_selectivities(request.selectivities))
    else:
        workload = read_workload(request.workload)
        twice = [each.name for each in streams if {"rate", "distinct", "bytes"} & set(each.told)]
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
