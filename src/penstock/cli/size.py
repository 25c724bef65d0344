"""`penstock size`: a recording is read, joined within less memory and more, and told of."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from penstock.cli.display import consoles, say, short
from penstock.cli.errors import CommandError, first_line
from penstock.cli.profile import FileStream
from penstock.cli.progress import file_progress, part_progress
from penstock.cli.size_spark import read_by_spark
from penstock.cli.size_view import as_json, limits_block, show
from penstock.cli.source import Source
from penstock.cli.sources import open_sources, warn_of_early_times
from penstock.cli.workload_file import check_writable
from penstock.model.stream import Stream
from penstock.sizing.plot import write_plot
from penstock.sizing.reading import JOINED_ROWS, Streams, read_recording
from penstock.sizing.recording import Recording
from penstock.sizing.size import Request, fitting_policies, size
from penstock.window_join import WindowJoin

__all__ = ["SizeRequest", "run_size"]

_POOLS = ("shared", "fixed")


@dataclass(frozen=True)
class SizeRequest:
    """The options as they were given, with one file for each stream."""

    files: Sequence[FileStream]
    where: str | None
    how: str
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
    batch_rows: int
    force: bool


def run_size(request: SizeRequest) -> None:
    """Do it, and show what came of it."""
    query = _query(request)
    asked = _asked(query, request)
    for path in (request.plot, request.output):
        if path is not None:
            check_writable(path, request.force)
    out, err = consoles()
    if request.spark:
        recording = read_by_spark(query, request.files, request.sample, request.seed)
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
    if request.plot is not None:
        write_plot(found, request.plot)
    if request.output is not None and found.recommendation is not None:
        _write(limits_block(found), request.output)
    if request.as_json:
        say(out, as_json(found))
        return
    show(out, found)
    for what, path in (("plot", request.plot), ("limits", request.output)):
        if path is not None and path.exists():
            say(err, f"{what} in {path}")


def _query(request: SizeRequest) -> WindowJoin:
    streams = [Stream(file.name, file.time, window=file.window) for file in request.files]
    keys = {file.name: file.key for file in request.files}
    on = keys if all(keys.values()) else None
    return WindowJoin(streams, on=on, where=request.where, how=request.how)


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
    sources = open_sources(request.files, request.batch_rows)
    warn_of_early_times(err, request.files, sources)
    opened: list[list[Source]] = [sources]

    def streams() -> Streams:
        now = opened.pop() if opened else open_sources(request.files, request.batch_rows)
        watched = _watched(now, update)
        return {file.name: watched(source) for file, source in zip(request.files, now, strict=True)}

    schemas = {
        file.name: source.schema for file, source in zip(request.files, sources, strict=True)
    }
    with file_progress(err, sum(source.size for source in sources)) as update:
        return read_recording(query, streams, schemas, share=request.sample, seed=request.seed)


def _watched(
    sources: Sequence[Source], update: Callable[[int, str], None]
) -> Callable[[Source], Iterator[pa.RecordBatch]]:
    """The batches of a source, with a progress bar that follows."""
    started, rows = time.perf_counter(), 0

    def batches(source: Source) -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in source.batches:
            yield batch
            rows += len(batch)
            seconds = max(time.perf_counter() - started, 1e-9)
            behind = sum(each.position() for each in sources)
            update(behind, f"{short(rows / seconds)} rows/s")

    return batches


def _write(text: str, path: Path) -> None:
    """Write it whole, or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise CommandError(f"cannot write {str(path)!r}: {first_line(error)}") from error
