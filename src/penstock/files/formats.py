"""The kinds of files that hold streams. `FORMATS` is the table: a name's ending picks its row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from penstock.files.command_error import CommandError
from penstock.files.compression import inner_name
from penstock.files.readers import Reader, read_arrow, read_csv, read_json, read_parquet
from penstock.files.writers import Sink, write_arrow, write_csv, write_json, write_parquet

__all__ = ["FORMATS", "Format", "format_of"]


def _holds_all(kind: pa.DataType) -> bool:
    return True


def _holds_flat(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)


def _holds_text(kind: pa.DataType) -> bool:
    inner = (kind.field(place).type for place in range(kind.num_fields))
    return not _is_bytes(kind) and all(_holds_text(part) for part in inner)


def _is_bytes(kind: pa.DataType) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in tests)


@dataclass(frozen=True)
class Format:
    """One kind of file.

    holds: whether a column of a type can be written to it.
    is_text: it may be compressed as a whole, and its types are guessed from what it says.
    """

    name: str
    endings: tuple[str, ...]
    read: Callable[[Path, int, Mapping[str, pa.DataType]], Reader]
    write: Callable[[Path, Path, pa.Schema], Sink]
    holds: Callable[[pa.DataType], bool] = _holds_all
    is_text: bool = False


FORMATS: Final = (
    Format("parquet", (".parquet", ".pq"), read_parquet, write_parquet),
    Format("Arrow", (".arrow", ".feather", ".arrows", ".ipc"), read_arrow, write_arrow),
    Format("CSV", (".csv",), read_csv, write_csv, _holds_flat, is_text=True),
    Format(
        "JSON lines",
        (".jsonl", ".ndjson", ".json"),
        read_json,
        write_json,
        _holds_text,
        is_text=True,
    ),
)


def format_of(path: Path) -> Format:
    """The format that a file's name ends in."""
    inner = inner_name(path)
    for kind in FORMATS:
        if inner.suffix.lower() in kind.endings and (kind.is_text or inner == path):
            return kind
    endings = ", ".join(ending for kind in FORMATS for ending in kind.endings)
    raise CommandError(
        f"cannot tell the format of {str(path)!r} from its ending {path.suffix!r}; "
        f"use one of {endings} (text may end in .gz, .zst, .bz2 or .lz4 after that)"
    )
