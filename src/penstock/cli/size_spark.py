"""Files, or directories of files, read by Spark for `penstock size --spark`.

A directory is of the format of the files in it. Times that are text or dates become timestamps, as
they do without Spark; those without a zone are taken to be in UTC.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from penstock.cli.local_spark import SparkUser, check_installed, local_spark
from penstock.files.command_error import CommandError
from penstock.files.comparison import Columns, check_comparable
from penstock.files.formats import format_of
from penstock.jobs.job import Job, JobStream
from penstock.lab.recording.recording import Recording
from penstock.window_join import WindowJoin

__all__ = ["frames_of", "read_by_spark"]

_USER: Final = SparkUser("--spark", "or leave --spark out")
_READERS: Final[dict[str, Callable[[Any, str], Any]]] = {
    "parquet": lambda reader, path: reader.parquet(path),
    "CSV": lambda reader, path: reader.csv(path, header=True, inferSchema=True),
    "JSON lines": lambda reader, path: reader.json(path),
}
# What a time is read as.
_TIMES: Final = {
    "string": "timestamp", "date": "timestamp", "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz", "bigint": "bigint", "int": "bigint",
}  # fmt: skip


def read_by_spark(query: WindowJoin, job: Job, share: float | None, seed: int) -> Recording:
    """Start Spark on this machine, and have it read and sample the files."""
    check_installed(_USER)
    from penstock.lab.recording.spark_reading import (
        read_frames,  # an optional package: it imports pyspark
    )

    with local_spark("penstock-size", os.cpu_count() or 1, _USER) as (spark, _):
        return read_frames(query, frames_of(spark, job.streams), share=share, seed=seed)


def frames_of(spark: Any, files: Sequence[JobStream]) -> dict[str, Any]:
    """A DataFrame for each stream; refused if their keys or times cannot be compared."""
    frames = {file.name: _frame(spark, file) for file in files}
    check_comparable(
        [Columns(str(file.path), file.key, file.time, _schema(frames[file.name])) for file in files]
    )
    return frames


def _frame(spark: Any, file: JobStream) -> Any:
    frame = _READERS[_kind(file.path)](spark.read, str(file.path.absolute()))
    for column in (*file.key, file.time):
        if column not in frame.columns:
            there = ", ".join(repr(name) for name in frame.columns)
            raise CommandError(f"{file.path} has no column {column!r}; its columns are {there}")
    kind = dict(frame.dtypes)[file.time]
    if kind not in _TIMES:
        raise CommandError(
            f"column {file.time!r} of {file.path} cannot be a time, its type is {kind}; "
            "give timestamps, ISO 8601 text, or whole microseconds since 1970"
        )
    return frame.withColumn(file.time, frame[file.time].cast(_TIMES[kind]))


def _kind(path: Path) -> str:
    """The format of a file, or of those in a directory."""
    if not path.exists():
        raise CommandError(f"cannot read {str(path)!r}: it does not exist; check the path")
    first = path
    if path.is_dir():
        inside = sorted(
            each for each in path.rglob("*") if each.is_file() and each.name[0] not in "._"
        )
        if not inside:
            raise CommandError(f"cannot read {str(path)!r}: there are no files in it")
        first = inside[0]
    kind = format_of(first).name
    if kind not in _READERS:
        raise CommandError(
            f"Spark does not read {kind} files, got {str(first)!r}; leave --spark out, or write it "
            "as parquet"
        )
    return kind


def _schema(frame: Any) -> pa.Schema:
    return frame.limit(0).toArrow().schema
