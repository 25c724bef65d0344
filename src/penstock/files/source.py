"""A file opened as one stream of a join: batches of even size, with a time column in it.

Types are made plain on the way in, and stay the same for the whole file: dictionaries
become their values, and dates and ISO text in the time column become timestamps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from penstock.files.command_error import CommandError, first_line
from penstock.files.diagnosis import separator_advice, time_advice, unreadable_advice
from penstock.files.formats import Format, format_of
from penstock.model.time_unit import likely_unit

__all__ = ["Source", "open_source"]


@dataclass(frozen=True)
class Source:
    """position: how many of the `size` bytes of the file were read so far.

    is_empty: there are no rows, and so nothing to infer the types of a text file from.
    is_early: its times are integers, and those of its first batch look like another unit than
    microseconds, as which they lie in early 1970.
    """

    path: Path
    kind: Format
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    position: Callable[[], int]
    size: int
    is_empty: bool
    is_early: bool


def open_source(
    path: Path,
    key: Sequence[str],
    time: str,
    batch_rows: int,
    types: Mapping[str, pa.DataType] | None = None,
) -> Source:
    """Open `path`, check that the columns asked for are there, and read its first batch.

    types: how to read columns of a text file, in place of guessing.
    """
    if not path.is_file():
        raise CommandError(f"cannot read {str(path)!r}: {_no_file(path)}")
    kind = format_of(path)
    with _reading(path, kind):
        reader = kind.read(path, batch_rows, types or {})
    names = reader.schema.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CommandError(f"{path} has two columns called {twice[0]!r}; rename one of them")
    for column in (*key, time):
        if column not in names:
            raise CommandError(f"{path} has no column {column!r}; {_instead(column, names)}")
    batches = _guarded(path, kind, reader.batches)
    first = next(batches, None)
    schema = _plain_schema(path, reader.schema, time, first)
    if first is not None:
        batches = chain([first], batches)
    even = _even(_cast(path, batches, schema, time), batch_rows)
    return Source(
        path,
        kind,
        schema,
        even,
        reader.position,
        path.stat().st_size,
        is_empty=first is None,
        is_early=first is not None and _is_early(first.column(time)),
    )


def _no_file(path: Path) -> str:
    if not path.exists():
        return "it does not exist; check the path"
    if path.is_dir():
        return "it is a directory; name a file in it"
    return "it is a pipe or a device, which are not supported; write it to a file first"


def _instead(column: str, names: Sequence[str]) -> str:
    separator = separator_advice(names[0]) if len(names) == 1 else None
    if separator:
        return separator
    there = f"its columns are {', '.join(repr(name) for name in names)}"
    if "," in column:
        return f"{there}; for a key of several columns repeat the option: --on a --on b"
    return there


def _is_early(times: pa.Array) -> bool:
    if times.type != pa.int64():
        return False
    lowest, highest = pc.min_max(times).as_py().values()
    return highest is not None and likely_unit(lowest, highest) is not None


@contextmanager
def _reading(path: Path, kind: Format) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        problem = first_line(error)
        advice = (
            "check that you may read it"
            if isinstance(error, OSError) and error.strerror
            else unreadable_advice(path, kind.name, problem)
        )
        raise CommandError(f"cannot read {path}: {problem}; {advice}") from error


def _guarded(
    path: Path, kind: Format, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    while True:
        with _reading(path, kind):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _plain_schema(
    path: Path, schema: pa.Schema, time: str, first: pa.RecordBatch | None
) -> pa.Schema:
    fields = []
    for field in schema:
        kind = field.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if field.name == time:
            kind = _time_type(path, time, kind, first)
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def _time_type(
    path: Path, time: str, kind: pa.DataType, first: pa.RecordBatch | None
) -> pa.DataType:
    """What to read the time column as; text has a zone if the first batch has one."""
    if pa.types.is_timestamp(kind) or kind == pa.int64():
        return kind
    if pa.types.is_date(kind):
        return pa.timestamp("us")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        zoned = pa.timestamp("us", "UTC")
        try:
            has_zone = first is not None and len(first.column(time).drop_null().cast(zoned)) > 0
        except pa.ArrowInvalid:
            has_zone = False
        return zoned if has_zone else pa.timestamp("us")
    raise CommandError(
        f"column {time!r} of {path} cannot be a time, its type is {kind}; "
        "give timestamps, ISO 8601 text, or whole microseconds since 1970"
    )


def _cast(
    path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema, time: str
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.schema.equals(schema, check_metadata=False):
            yield batch
            continue
        try:
            yield batch.cast(schema)
        except pa.ArrowException as error:
            problem = first_line(error)
            raise CommandError(
                f"column {time!r} of {path} holds something that is no "
                f"{schema.field(time).type}: {problem}; {time_advice(problem)}"
            ) from error


def _even(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of `rows` each; the last may be shorter."""
    pending: list[pa.RecordBatch] = []
    missing = rows
    for batch in batches:
        start = 0
        while batch.num_rows - start >= missing:
            pending.append(batch.slice(start, missing))
            start, missing = start + missing, rows
            yield pa.concat_batches(pending)
            pending = []
        if start < batch.num_rows:
            pending.append(batch.slice(start))
            missing -= batch.num_rows - start
    if pending:
        yield pa.concat_batches(pending)
