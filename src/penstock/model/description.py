"""What differs between two descriptions of queries, named for a user."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

__all__ = ["Difference", "difference"]


class Difference(NamedTuple):
    """what: a part of the query, or of one of its streams."""

    what: str
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.what} was {self.before!r} and is {self.now!r} now"


def difference(
    before: Mapping[str, Any], now: Mapping[str, Any], ignored: Collection[str] = ()
) -> Difference | None:
    """The first part in which two descriptions (`Query.describe`) differ; None if they do not."""
    for part in now:
        if part in ignored or before[part] == now[part]:
            continue
        if part != "streams" or _names(before) != _names(now):
            return Difference(part, before[part], now[part])
        for was, stream in zip(before["streams"], now["streams"], strict=True):
            for field in stream:
                if was[field] != stream[field]:
                    what = f"{field} of stream {stream['name']!r}"
                    return Difference(what, was[field], stream[field])
    return None


def _names(description: Mapping[str, Any]) -> list[str]:
    return [stream["name"] for stream in description["streams"]]
