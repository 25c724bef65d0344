"""Readers: a file as batches of rows, never more than a few of them in memory.

Text files say nothing of their types. Those of CSV are inferred from the first `_GUESSED` bytes,
settled so that later rows of the same kind fit, and then kept for the whole file; those of JSON
lines from all of it, since a field may first appear anywhere (json_schema.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet

from penstock.files.compression import open_text
from penstock.files.json_schema import json_schema

__all__ = ["Reader", "read_arrow", "read_csv", "read_json", "read_parquet"]

# Types are guessed from much; the rest is read in less, for Arrow reads 32 blocks ahead.
_GUESSED: Final = 8 << 20
_BLOCK: Final = 2 << 20
_READ_AHEAD: Final = 1 << 20


class Reader(NamedTuple):
    """schema: of every batch. position: how many bytes of the file are behind us."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    position: Callable[[], int]


def read_parquet(path: Path, batch_rows: int, types: Mapping[str, pa.DataType]) -> Reader:
    """Pages are read as they are needed: with `pre_buffer` whole row groups would be."""
    file = pa.parquet.ParquetFile(path, pre_buffer=False, buffer_size=_READ_AHEAD)
    size, rows, seen = path.stat().st_size, max(file.metadata.num_rows, 1), 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal seen
        for batch in file.iter_batches(batch_size=batch_rows):
            seen += batch.num_rows
            yield batch

    return Reader(file.schema_arrow, batches(), lambda: size * seen // rows)


def read_arrow(path: Path, batch_rows: int, types: Mapping[str, pa.DataType]) -> Reader:
    """An IPC file or stream: the magic bytes say which. One record batch at a time, as long as
    the file's writer made them.
    """
    raw = pa.OSFile(str(path), "rb")
    magic = raw.read(6)
    raw.seek(0)
    if magic != b"ARROW1":
        stream = pa.ipc.open_stream(raw)
        return Reader(stream.schema, iter(stream), raw.tell)
    file = pa.ipc.open_file(raw)
    count, seen = file.num_record_batches, 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal seen
        for seen in range(1, count + 1):
            yield file.get_batch(seen - 1)

    return Reader(file.schema, batches(), lambda: raw.size() * seen // max(count, 1))


def read_csv(path: Path, batch_rows: int, types: Mapping[str, pa.DataType]) -> Reader:
    """Comma-separated, with a header line; `types` overrides what is inferred."""
    guessing = pa.csv.ReadOptions(block_size=_GUESSED)
    inferred = pa.csv.open_csv(open_text(path)[0], guessing).schema
    settled = {field.name: _settled_csv(field.type) for field in inferred}
    stream, position = open_text(path)
    reader = pa.csv.open_csv(
        stream,
        pa.csv.ReadOptions(block_size=_BLOCK),
        convert_options=pa.csv.ConvertOptions(column_types={**settled, **types}),
    )
    return Reader(reader.schema, iter(reader), position)


def read_json(path: Path, batch_rows: int, types: Mapping[str, pa.DataType]) -> Reader:
    """JSON lines: an object on each line, with any of the columns that the file has."""
    first, _ = open_text(path)
    with first:
        settled = json_schema(first, _GUESSED)
    stream, position = open_text(path)
    reader = pa.json.open_json(
        stream,
        pa.json.ReadOptions(block_size=_BLOCK),
        pa.json.ParseOptions(explicit_schema=settled),
    )
    return Reader(reader.schema, iter(reader), position)


def _settled_csv(kind: pa.DataType) -> pa.DataType:
    """Whole seconds may get fractions later on, and an empty column some text."""
    if pa.types.is_timestamp(kind) and kind.unit == "s":
        return pa.timestamp("us", kind.tz)
    return pa.string() if pa.types.is_null(kind) else kind
