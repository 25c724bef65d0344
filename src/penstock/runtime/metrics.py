"""What a running join says of itself: a frozen picture of one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from penstock.engine.clock import BEGINNING, END_OF_TIME

__all__ = ["Metrics", "StreamMetrics", "shown_watermark"]


def shown_watermark(watermark: int) -> int | None:
    """A watermark as users see it: None before the first tuple."""
    return None if watermark == BEGINNING else watermark


def _text(watermark: int | None) -> str:
    if watermark is None:
        return "none yet"
    if watermark == END_OF_TIME:
        return "end of all streams"
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=watermark)
    except OverflowError:
        return f"{watermark:,} us"
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"


def _size(count: int) -> str:
    unit, name = (2**20, "MiB") if count >= 2**20 else (2**10, "KiB")
    return f"{count / unit:,.1f} {name}"


@dataclass(frozen=True)
class StreamMetrics:
    """One stream.

    arrived: tuples pushed, late ones included. late: those behind the watermark.
    late_forgotten: late ones that `late()` can no longer give, because nobody asked in time.
    keyless: tuples in time whose key is null or NaN; they meet nothing and are not kept. Also
        those without a value that `where=` compares, unless they may come out alone
    (unless they count as rows of a window of so many rows). filtered: tuples in time before
    the begin of their window. waiting: tuples in time whose turn has not come.
    live: tuples in the window; with disorder also some that have expired behind one that
    came early, and can no longer match. expired: tuples that have left it.
    So arrived = late + keyless + filtered + waiting + live + expired.
    watermark: microseconds since the epoch; None before the first tuple, 2**62 at the end.
    """

    arrived: int
    keyless: int
    late: int
    late_forgotten: int
    live: int
    expired: int
    watermark: int | None
    filtered: int = 0
    waiting: int = 0


@dataclass(frozen=True)
class Metrics:
    """The join.

    produced: results so far. late, live: totals over the streams. bytes: memory held by
    windows and indexes. watermark: microseconds since the epoch; None before all streams
    have been heard.
    """

    produced: int
    late: int
    live: int
    bytes: int
    watermark: int | None
    streams: Mapping[str, StreamMetrics]

    def __str__(self) -> str:
        lines = [
            f"{self.produced:,} results, {self.late:,} late, {self.live:,} live tuples "
            f"in {_size(self.bytes)}, watermark {_text(self.watermark)}"
        ]
        lines += [
            f"  {name}: {each.arrived:,} arrived, {each.late:,} late, {each.live:,} live, "
            f"{each.expired:,} expired, watermark {_text(each.watermark)}"
            for name, each in self.streams.items()
        ]
        return "\n".join(lines)
