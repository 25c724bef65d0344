"""A stream: a name, the column that holds its event time, and how much of it to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import QueryError
from penstock.model.arrival_time import ARRIVAL, ARRIVAL_COLUMN, ArrivalTime
from penstock.model.duration import Duration, duration_us
from penstock.model.window import Window, parse_window

__all__ = ["Stream"]


@dataclass(frozen=True)
class Stream:
    """One input of a join.

    name: prefix of its output columns, and its keyword in `push`.
    time: the column of its event time, a timestamp or integer microseconds since the epoch;
        or ARRIVAL, for the time at which a batch is pushed.
    window: how far back its tuples can be met; the query's `within` when not given.
    lateness: how far behind the newest event time a tuple may arrive and still count.
    idle_timeout: after this long without a tuple (on the wall clock) the stream no longer
        holds back the join's watermark; never, when not given.
    max_jump: over a gap in its event times that is longer than this, a push moves its watermark
        no further than this, so that one wrong time far ahead does not make all others late; no
        cap, when not given.
    punctuation: a boolean column; a row in which it is true is no tuple, but a promise that the
        stream brings no more tuples of the row's key, from the row's time on.
    unique: each key comes once in this stream.
    clustered: the tuples of a key follow each other; a new key ends the one before.
    increasing: keys never go back; all below the greatest are over.
    expires: by stream, the column with the time from which on that stream brings no more tuples
        of a row's key, such as `{"bids": "expires_at"}`.
    """

    name: str
    time: str | ArrivalTime
    window: Window | Duration | None = None
    lateness: Duration = "0 seconds"
    idle_timeout: Duration | None = None
    max_jump: Duration | None = None
    punctuation: str | None = None
    unique: bool = False
    clustered: bool = False
    increasing: bool = False
    expires: Mapping[str, str] = field(default_factory=dict)

    time_column: str = field(init=False, repr=False, compare=False)
    lateness_us: int = field(init=False, repr=False, compare=False)
    idle_timeout_us: int | None = field(init=False, repr=False, compare=False)
    max_jump_us: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise QueryError(f"a stream needs a name, got {self.name!r}; give it some text")
        named = isinstance(self.time, str) and self.time not in ("", ARRIVAL_COLUMN)
        if self.time is not ARRIVAL and not named:
            raise QueryError(
                f"stream {self.name!r} needs its event-time column, got {self.time!r}; "
                "name it in time=, or give ps.ARRIVAL"
            )
        where = f"of stream {self.name!r}"
        derived = object.__setattr__  # the one way to fill a frozen dataclass
        derived(self, "time_column", ARRIVAL_COLUMN if self.time is ARRIVAL else self.time)
        if self.window is not None:
            derived(self, "window", parse_window(self.window, f"the window {where}"))
        derived(self, "lateness_us", duration_us(self.lateness, f"the lateness {where}"))
        if self.time is ARRIVAL and self.lateness_us:
            raise QueryError(
                f"stream {self.name!r} takes its time of arrival, and has lateness="
                f"{self.lateness!r}; nothing of it can be late: leave lateness out"
            )
        timeout = self.idle_timeout
        timeout_us = None if timeout is None else duration_us(timeout, f"the idle_timeout {where}")
        derived(self, "idle_timeout_us", timeout_us)
        jump = self.max_jump
        jump_us = None if jump is None else duration_us(jump, f"the max_jump {where}")
        derived(self, "max_jump_us", jump_us)
        if jump_us == 0:
            raise QueryError(
                f"stream {self.name!r} has max_jump={jump!r}, and its watermark could never move; "
                "give more than the longest gap between its tuples, or leave max_jump out"
            )
        self._check_promises()
        if self.time is ARRIVAL and jump_us is not None:
            raise QueryError(
                f"stream {self.name!r} takes its time of arrival, and has max_jump={jump!r}; no "
                "time of it is wrong: leave max_jump out"
            )

    @property
    def promised(self) -> dict[str, Any]:
        """What it says that it will not bring any more, in plain values; nothing if it does not."""
        given = {
            "punctuation": self.punctuation,
            "unique": self.unique,
            "clustered": self.clustered,
            "increasing": self.increasing,
            "expires": dict(self.expires),
        }
        return {name: value for name, value in given.items() if value}

    def check_promises_in(self, names: Sequence[str], key: Sequence[str], counts: bool) -> None:
        """Refuse promises that a join of these streams cannot use. counts: whether a window of it
        counts rows or arrivals."""
        if not self.promised:
            return
        if not key:
            raise QueryError(
                f"stream {self.name!r} promises what it will not bring of a key, and where= makes "
                "no columns of all streams equal; give on="
            )
        if counts:
            raise QueryError(
                f"stream {self.name!r} promises what it will not bring, and a window counts rows "
                "or arrivals, among which a tuple that is forgotten early would be missing; use "
                "windows of time, or leave the promises out"
            )
        if self.increasing and len(key) > 1:
            raise QueryError(
                f"stream {self.name!r} is increasing, and its key has several columns, "
                f"{list(key)}; give a key of one column, or leave increasing= out"
            )
        unknown = [name for name in self.expires if name not in names]
        if unknown:
            raise QueryError(
                f"expires= of stream {self.name!r} names {unknown}, which are no streams; the "
                f"streams are {list(names)}"
            )

    def _check_promises(self) -> None:
        if self.punctuation is not None and (
            not isinstance(self.punctuation, str) or not self.punctuation
        ):
            raise QueryError(
                f"punctuation= of stream {self.name!r} names a boolean column, "
                f"got {self.punctuation!r}"
            )
        for name in ("unique", "clustered", "increasing"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise QueryError(
                    f"{name}= of stream {self.name!r} is about its whole key, and True or False, "
                    f"got {value!r}"
                )
        if not isinstance(self.expires, Mapping):
            raise QueryError(
                f"expires= of stream {self.name!r} gives a column by stream, got "
                f"{self.expires!r}; write {{'bids': 'expires_at'}}"
            )
        if self.name in self.expires:
            raise QueryError(
                f"expires= of stream {self.name!r} is about other streams, and names itself; "
                "mark such rows by punctuation="
            )
