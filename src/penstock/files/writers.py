"""Writers: tables of one schema into a file of each format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from penstock.files.compression import write_text
from penstock.files.json_lines import JsonLinesWriter

__all__ = ["Sink", "write_arrow", "write_csv", "write_json", "write_parquet"]


class Sink(Protocol):
    """A file being written, as Arrow's own writers have it."""

    def write_table(self, table: pa.Table) -> None:
        """Append the rows of `table`."""

    def close(self) -> None:
        """Write what is left and end the file."""


def write_parquet(path: Path, name: Path, schema: pa.Schema) -> Sink:
    """Parquet: a row group for each table."""
    # Numbers and times rarely repeat: dictionaries of them take twice the time to write and
    # save no space.
    text = [field.name for field in schema if pa.types.is_string(field.type)]
    sink: Sink = pa.parquet.ParquetWriter(str(path), schema, use_dictionary=text)
    return sink


def write_arrow(path: Path, name: Path, schema: pa.Schema) -> Sink:
    """An Arrow IPC file, or a stream where the name ends in `.arrows`."""
    make = pa.ipc.new_stream if name.suffix.lower() == ".arrows" else pa.ipc.new_file
    return _Closing(make, pa.OSFile(str(path), "wb"), schema)


def write_csv(path: Path, name: Path, schema: pa.Schema) -> Sink:
    """Comma-separated, with a header line."""
    return _Closing(pa.csv.CSVWriter, write_text(path, name), schema)


def write_json(path: Path, name: Path, schema: pa.Schema) -> Sink:
    """JSON lines."""
    return _Closing(JsonLinesWriter, write_text(path, name), schema)


class _Closing:
    """A sink that also closes the stream under it, which Arrow's writers leave open."""

    def __init__(self, make: Callable[[Any, pa.Schema], Any], stream: Any, schema: pa.Schema):
        self._stream = stream
        self._sink = make(stream, schema)

    def write_table(self, table: pa.Table) -> None:
        self._sink.write_table(table)

    def close(self) -> None:
        self._sink.close()
        self._stream.close()
