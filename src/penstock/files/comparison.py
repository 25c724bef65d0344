"""Whether the keys and times of files can be compared, and what to do if they cannot.

The join checks this as well, but its message is for programs, which can cast columns: these
messages are about files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from penstock.errors import SchemaError
from penstock.files.command_error import CommandError
from penstock.model.keys import common_kind

__all__ = ["Columns", "check_comparable", "comparable"]


class Columns(NamedTuple):
    """The columns of a file that a join compares with those of the others."""

    path: str
    key: Sequence[str]
    time: str
    schema: pa.Schema


def comparable(*kinds: pa.DataType) -> bool:
    """Whether keys of these types can be equal."""
    try:
        common_kind(kinds, ["a key"] * len(kinds))
    except SchemaError:
        return False
    return True


def check_comparable(files: Sequence[Columns]) -> None:
    """Refuse files whose keys or times are of different kinds."""
    for names in zip(*(file.key for file in files), strict=True):
        kinds = [file.schema.field(name).type for file, name in zip(files, names, strict=True)]
        if not comparable(*kinds):
            got = _told(files, names, kinds)
            raise CommandError(
                f"the keys cannot be compared: {got}; name columns of the same kind with --on, "
                "or write one of the files anew"
            )
    times = [file.time for file in files]
    kinds = [file.schema.field(file.time).type for file in files]
    classes = {_time_class(kind) for kind in kinds}
    if len(classes) > 1:
        advice = (
            "write the integers as ISO 8601 text such as 2024-12-31T23:59:59Z, or the times as "
            "whole microseconds since 1970"
            if "integer" in classes
            else "give the times without a zone one, such as Z at their end, or take it from the "
            "others"
        )
        raise CommandError(f"the times cannot be compared: {_told(files, times, kinds)}; {advice}")


def _told(files: Sequence[Columns], names: Sequence[str], kinds: Sequence[pa.DataType]) -> str:
    return ", ".join(
        f"{name!r} of {file.path} is {kind}"
        for file, name, kind in zip(files, names, kinds, strict=True)
    )


def _time_class(kind: pa.DataType) -> str:
    if pa.types.is_int64(kind):
        return "integer"
    return "zoned" if kind.tz else "zoneless"
