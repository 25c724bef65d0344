"""The files of a job, opened together, so that their keys and times can be compared."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from itertools import permutations

import pyarrow as pa
from rich.console import Console

from penstock.cli.views.display import say
from penstock.errors import InputWarning
from penstock.files.command_error import CommandError
from penstock.files.comparison import Columns, check_comparable, comparable
from penstock.files.source import Source, open_source
from penstock.jobs.job import Job, JobStream

__all__ = ["open_sources", "warn_of_early_times"]


def open_sources(job: Job) -> list[Source]:
    """All files of a job.

    Types guessed from CSV that do not fit another file give way to its types: a key such as 00123
    is no number if the other holds text, and no rows have no types.
    """
    files = job.streams
    sources = [_open(job, own, {}) for own in range(len(files))]
    for own, other in permutations(range(len(files)), 2):
        types = _better_types(files, sources, own, other)
        if types:
            # Where they do not fit either, what is wrong is said below.
            with suppress(CommandError):
                sources[own] = _open(job, own, types)
    check_comparable(
        [
            Columns(str(file.path), file.key, file.time, source.schema)
            for file, source in zip(files, sources, strict=True)
        ]
    )
    return sources


def _better_types(
    files: Sequence[JobStream], sources: Sequence[Source], own: int, other: int
) -> dict[str, pa.DataType]:
    source, file, other_file = sources[own], files[own], files[other]
    if source.kind.name != "CSV":
        return {}
    types = {}
    for column, other_column in zip(file.key, other_file.key, strict=True):
        kind = source.schema.field(column).type
        other_kind = sources[other].schema.field(other_column).type
        if source.is_empty or (not pa.types.is_string(kind) and not comparable(kind, other_kind)):
            types[column] = other_kind
    if source.is_empty:
        types[file.time] = sources[other].schema.field(other_file.time).type
    return types


def _open(job: Job, own: int, types: dict[str, pa.DataType]) -> Source:
    file = job.streams[own]
    return open_source(file.path, file.key, file.time, job.batch_rows, types)


def warn_of_early_times(console: Console, job: Job, sources: Sequence[Source]) -> None:
    """Say which files hold integers for times that look like seconds."""
    warnings.filterwarnings("ignore", category=InputWarning)  # joins need not say it again
    for file, source in zip(job.streams, sources, strict=True):
        if source.is_early:
            say(
                console,
                f"warning: the times of {source.path} lie in early 1970: penstock reads "
                f"integers as microseconds; if column {file.time!r} is in seconds, multiply it "
                "by 1,000,000, if in milliseconds, by 1,000",
                "bold yellow",
            )
