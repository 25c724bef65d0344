"""Windows: how long a tuple can meet the tuples that come after it.

A tuple t of stream j is in its window at time k when `k - t.ts <= length` (closed on
both ends, so a window of zero meets only its own instant). Window text is parsed here
and nowhere else, so that a further kind of window is one more row of this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from penstock.errors import QueryError
from penstock.model.duration import Duration, duration_us, format_us

__all__ = ["TimeWindow", "Window", "parse_window"]


@dataclass(frozen=True)
class TimeWindow:
    """The last `length_us` microseconds of a stream, both ends included."""

    length_us: int

    def __post_init__(self) -> None:
        if not isinstance(self.length_us, int):
            raise QueryError(
                f"a time window has whole microseconds, got {self.length_us!r}; give an int"
            )
        duration_us(timedelta(microseconds=self.length_us), "a time window")

    def __str__(self) -> str:
        return format_us(self.length_us)


Window = TimeWindow


def parse_window(value: Window | Duration, what: str) -> Window:
    """A window from text, a timedelta, or a window; `what` names it in errors."""
    if isinstance(value, TimeWindow):
        return value
    if isinstance(value, str | timedelta):
        return TimeWindow(duration_us(value, what))
    raise QueryError(
        f"{what} must be text or a timedelta, got {value!r}; write for example '10 minutes'"
    )
