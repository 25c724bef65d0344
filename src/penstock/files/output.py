"""An output file: it appears under its name only when it is whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from penstock.files.command_error import CommandError, first_line
from penstock.files.formats import format_of
from penstock.files.writers import Sink

__all__ = ["Output"]

# Results come in small tables. Gathered to this much they make good row groups, and
# the memory they take stays bounded.
_GATHER_ROWS: Final = 1 << 17
_GATHER_BYTES: Final = 64 << 20


class Output:
    """Tables of one schema, written beside `path` and renamed to it at the end.

    The first table, even an empty one, decides the schema.
    """

    def __init__(self, path: Path, force: bool = False) -> None:
        self.path = path
        if path.exists() and not path.is_file() and not path.is_dir():
            raise CommandError(
                f"cannot write {str(path)!r}: it is a pipe or a device, which are not supported; "
                "name a file"
            )
        self._kind = format_of(path)
        if path.is_dir():
            raise CommandError(f"cannot write {str(path)!r}: it is a directory; name a file in it")
        if path.exists() and not force:
            raise CommandError(f"{str(path)!r} exists already; give --force to replace it")
        self._partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        self._sink: Sink | None = None
        self._gathered: list[pa.Table] = []
        self._rows = 0
        self._bytes = 0

    def __enter__(self) -> Self:
        # Made at once, so that a place that cannot be written to is known before any work.
        with self._writing():
            self._partial.touch()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._partial.unlink(missing_ok=True)

    def write(self, table: pa.Table) -> None:
        """Append the rows of `table`."""
        if self._sink is None:
            self._sink = self._create(table.schema)
        if table.num_rows == 0:
            return
        self._gathered.append(table)
        self._rows += table.num_rows
        self._bytes += table.nbytes
        if self._rows >= _GATHER_ROWS or self._bytes >= _GATHER_BYTES:
            self._flush(self._sink)

    def _create(self, schema: pa.Schema) -> Sink:
        for field in schema:
            if not self._kind.holds(field.type):
                raise CommandError(
                    f"{self._kind.name} cannot hold column {field.name!r} of type {field.type}; "
                    "write parquet or Arrow instead"
                )
        with self._writing():
            return self._kind.write(self._partial, self.path, schema)

    def _flush(self, sink: Sink) -> None:
        if self._gathered:
            with self._writing():
                sink.write_table(pa.concat_tables(self._gathered))
        self._gathered, self._rows, self._bytes = [], 0, 0

    def _finish(self) -> None:
        if self._sink is None:
            raise CommandError(f"nothing was ever written to {str(self.path)!r}")
        self._flush(self._sink)
        with self._writing():
            self._sink.close()
            self._partial.replace(self.path)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise CommandError(f"cannot write {str(self.path)!r}: {first_line(error)}") from error
