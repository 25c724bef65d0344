"""Damage to the files of a checkpoint's state, from a lost file to one byte of a segment.

A damage takes the directory of one partition's state, as Spark left it after three batches:
the snapshot of its first version (a zip and sorted tables) and a changelog for every version
since.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from penstock.runtime.envelope import MAGIC

__all__ = ["DAMAGES"]

_ARROW = b"\xff\xff\xff\xff"  # how a stream of Arrow's begins; manifests are JSON


def _flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def _halve(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def _without_checksum(file: Path) -> Path:
    """The file, after what would betray a change to Spark is gone."""
    (file.parent / f".{file.name}.crc").unlink()
    return file


def _changelog(state: Path) -> Path:
    return state / "3.changelog"


def _table(state: Path) -> Path:
    return next((state / "SSTs").glob("*.sst"))


def _flip_in_segment(state: Path) -> None:
    """One byte inside a segment of ours, in a changelog that is sound as Spark sees it."""
    file = _without_checksum(_changelog(state))
    plain = bytearray(pa.CompressedInputStream(pa.OSFile(str(file)), "zstd").read())
    segment = next(
        each.end()
        for each in re.finditer(MAGIC + rb".{44}", plain, re.DOTALL)
        if plain[each.end() : each.end() + 4] == _ARROW
    )
    plain[segment + 100] ^= 1
    with pa.CompressedOutputStream(pa.OSFile(str(file), "wb"), "zstd") as stream:
        stream.write(bytes(plain))


def _unrepairable(state: Path) -> Path:
    """The state, after the changelog is gone that Spark would make its snapshot again from."""
    _without_checksum(state / "1.changelog").unlink()
    return state


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a byte of a changelog": lambda state: _flip(_changelog(state)),
    "half a changelog": lambda state: _halve(_changelog(state)),
    "half a changelog, no checksum": lambda state: _halve(_without_checksum(_changelog(state))),
    "no changelog": lambda state: _changelog(state).unlink(),
    "a byte of a table": lambda state: _flip(_table(_unrepairable(state))),
    "half a table, no checksum": lambda state: _halve(
        _without_checksum(_table(_unrepairable(state)))
    ),
    "half a snapshot": lambda state: _halve(_unrepairable(state) / "1.zip"),
    "half a snapshot that can be made again": lambda state: _halve(state / "1.zip"),
    "no state": shutil.rmtree,
    "a byte of a segment": _flip_in_segment,
}
