"""Windows: how long a tuple can meet the tuples that come after it.

A tuple t is in its window at time k when `k <= ends(t.ts)`: both ends of a window are closed,
so one of zero length meets only its own instant. What a window has to say beside that:

    rows      only the newest N tuples of the stream, or of each key, are in it
    arrivals  only tuples among the N arrivals, of all streams, before the latest
    begin_us  nothing before this time is ever in it

Window text is read here and nowhere else: a further kind is one more class and one more row of
`WINDOWS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from penstock.errors import QueryError
from penstock.model.duration import Duration, duration_us, format_us

__all__ = [
    "ALWAYS",
    "FOREVER",
    "WINDOWS",
    "ArrivalWindow",
    "BoundWindow",
    "RowWindow",
    "SinceWindow",
    "TimeWindow",
    "TumblingWindow",
    "UnboundedWindow",
    "Window",
    "parse_window",
]

# Beyond every time and length, and far enough from overflow to be added to a time.
FOREVER: Final = 1 << 61
ALWAYS: Final = -(1 << 61)

_MAX_COUNT: Final = 1 << 25  # of rows or arrivals
_OTHERS: Final = (
    "other windows are '1000 rows', '1000 rows per key', '1000 arrivals', 'tumbling 10 seconds', "
    "'since 2026-01-01T00:00:00Z' and 'unbounded'"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Window:
    """What all windows answer, unless they know better."""

    @property
    def length_us(self) -> int:
        """How long after its time a tuple is in the window, at most."""
        return FOREVER

    @property
    def slot_us(self) -> int:
        """The size of slots whose end is the end of all tuples in them; 0 without slots."""
        return 0

    @property
    def rows(self) -> int:
        """How many of the newest tuples are in it; 0 when only time counts."""
        return 0

    @property
    def per_key(self) -> bool:
        """Whether these are counted for each key."""
        return False

    @property
    def arrivals(self) -> int:
        """Among how many arrivals of all streams tuples meet; 0 when they are not counted."""
        return 0

    @property
    def is_endless(self) -> bool:
        """Whether no tuple ever leaves it."""
        return self.length_us >= FOREVER and not (self.slot_us or self.rows or self.arrivals)

    @property
    def begin_us(self) -> int:
        """What is before this time takes no part."""
        return ALWAYS

    def ends(self, ts: int) -> int:
        """The last time at which a tuple is in the window."""
        return ts + self.length_us

    def oldest(self, watermark: int) -> int:
        """The least time of a tuple that a watermark has not passed."""
        return watermark - self.length_us


@dataclass(frozen=True)
class TimeWindow(Window):
    """The last `us` microseconds of a stream, both ends included."""

    us: int

    def __post_init__(self) -> None:
        if not isinstance(self.us, int):
            raise QueryError(f"a time window has whole microseconds, got {self.us!r}; give an int")
        duration_us(timedelta(microseconds=self.us), "a time window")

    @property
    def length_us(self) -> int:
        return self.us

    def __str__(self) -> str:
        return format_us(self.us)


@dataclass(frozen=True)
class BoundWindow(Window):
    """One side of bounds on a difference; negative where the other must come first."""

    us: int

    @property
    def length_us(self) -> int:
        return self.us

    def __str__(self) -> str:
        return f"bound of {format_us(self.us)}"


@dataclass(frozen=True)
class UnboundedWindow(Window):
    """Everything that ever came."""

    def __str__(self) -> str:
        return "unbounded"


@dataclass(frozen=True)
class SinceWindow(Window):
    """Everything from a fixed time on (a landmark window)."""

    us: int

    @property
    def begin_us(self) -> int:
        return self.us

    def __str__(self) -> str:
        return f"since {(_EPOCH + timedelta(microseconds=self.us)).isoformat()}"


@dataclass(frozen=True)
class TumblingWindow(Window):
    """What is in the same slot; slots are aligned to the epoch."""

    us: int

    def __post_init__(self) -> None:
        if duration_us(timedelta(microseconds=self.us), "a tumbling window") == 0:
            raise QueryError("a tumbling window needs a length, got zero; give it a microsecond")

    @property
    def length_us(self) -> int:
        return self.us - 1

    @property
    def slot_us(self) -> int:
        return self.us

    def ends(self, ts: int) -> int:
        return (ts // self.us + 1) * self.us - 1

    def oldest(self, watermark: int) -> int:
        return watermark // self.us * self.us

    def __str__(self) -> str:
        return f"tumbling {format_us(self.us)}"


@dataclass(frozen=True)
class RowWindow(Window):
    """The last `count` tuples of a stream, or of each key in it."""

    count: int
    of_each_key: bool = False

    def __post_init__(self) -> None:
        _check_count(self.count, "rows")

    @property
    def rows(self) -> int:
        return self.count

    @property
    def per_key(self) -> bool:
        return self.of_each_key

    def __str__(self) -> str:
        return f"{self.count} rows{' per key' if self.of_each_key else ''}"


@dataclass(frozen=True)
class ArrivalWindow(Window):
    """Tuples within `count` arrivals of each other, those of all streams counted."""

    count: int

    def __post_init__(self) -> None:
        _check_count(self.count, "arrivals")

    @property
    def arrivals(self) -> int:
        return self.count

    def __str__(self) -> str:
        return f"{self.count} arrivals"


def _check_count(count: int, what: str) -> None:
    if not isinstance(count, int) or not 1 <= count <= _MAX_COUNT:
        raise QueryError(f"a window has 1 to {_MAX_COUNT:,} {what}, got {count!r}")


def _count(text: str) -> int:
    return int(re.sub("[_,]", "", text))


def _instant_us(text: str, what: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise QueryError(
            f"cannot read {what} from 'since {text}'; "
            "write a date and time such as 'since 2026-01-01T00:00:00Z'"
        ) from None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // timedelta(microseconds=1)


# How windows are written; what matches none of these is a length of time.
WINDOWS: Final[tuple[tuple[str, Callable[[re.Match[str], str], Window]], ...]] = (
    (r"unbounded", lambda match, what: UnboundedWindow()),
    (r"(\d[\d_,]*)\s+rows?", lambda match, what: RowWindow(_count(match[1]))),
    (r"(\d[\d_,]*)\s+rows?\s+per\s+key", lambda match, what: RowWindow(_count(match[1]), True)),
    (r"(\d[\d_,]*)\s+arrivals?", lambda match, what: ArrivalWindow(_count(match[1]))),
    (r"tumbling\s+(.+)", lambda match, what: TumblingWindow(duration_us(match[1], what))),
    (r"since\s+(.+)", lambda match, what: SinceWindow(_instant_us(match[1], what))),
)


def parse_window(value: Window | Duration, what: str) -> Window:
    """A window from text, a timedelta, or a window; `what` names it in errors."""
    if isinstance(value, Window):
        return value
    if isinstance(value, str):
        for form, make in WINDOWS:
            match = re.fullmatch(form, value.strip(), re.IGNORECASE)
            if match:
                return make(match, what)
    if isinstance(value, str | timedelta):
        try:
            return TimeWindow(duration_us(value, what))
        except QueryError as error:
            raise QueryError(f"{error}; {_OTHERS}") from None
    raise QueryError(
        f"{what} must be text or a timedelta, got {value!r}; write for example '10 minutes'"
    )
