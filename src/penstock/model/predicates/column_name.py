"""Columns as users name them: `stream.column`."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["split_name"]


def split_name(text: str, streams: Sequence[str]) -> tuple[str, str] | None:
    """The stream and the column of a name; None if it names no column of these streams.

    A stream's or a column's name may itself contain dots: the longest stream wins.
    """
    fitting = [
        name for name in streams if text.startswith(f"{name}.") and len(text) > len(name) + 1
    ]
    if not fitting:
        return None
    stream = max(fitting, key=len)
    return stream, text[len(stream) + 1 :]
