"""Compressed text files: `.csv.gz` is a `.csv` inside a codec."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

__all__ = ["COMPRESSIONS", "inner_name", "open_text", "write_text"]

COMPRESSIONS: Final = {".bz2": "bz2", ".gz": "gzip", ".lz4": "lz4", ".zst": "zstd"}


def inner_name(path: Path) -> Path:
    """The path without the ending of a codec."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path


def open_text(path: Path) -> tuple[Any, Callable[[], int]]:
    """The stream of a file's text, and how many bytes of the file it has read."""
    raw = pa.OSFile(str(path), "rb")
    size = raw.size()
    codec = COMPRESSIONS.get(path.suffix.lower())

    def position() -> int:
        try:
            return int(raw.tell())
        except ValueError:  # its reader closes it at the end
            return int(size)

    return raw if codec is None else pa.CompressedInputStream(raw, codec), position


def write_text(path: Path, name: Path) -> Any:
    """A stream into `path`, in the codec that `name` ends in."""
    raw = pa.OSFile(str(path), "wb")
    codec = COMPRESSIONS.get(name.suffix.lower())
    return raw if codec is None else pa.CompressedOutputStream(raw, codec)
