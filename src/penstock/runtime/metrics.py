"""What a running join says of itself: a frozen picture of one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from penstock.kernels.sentinels import BEGINNING, END_OF_TIME
from penstock.model.amount import amount

__all__ = ["Frozen", "Metrics", "StreamMetrics", "shown_watermark", "time_text"]


def shown_watermark(watermark: int) -> int | None:
    """A watermark as users see it: None before the first tuple."""
    return None if watermark == BEGINNING else watermark


def time_text(ts: int) -> str:
    """A time as users read it."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ts)
    except OverflowError:
        return f"{ts:,} us"
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"


def _text(watermark: int | None) -> str:
    if watermark is None:
        return "none yet"
    return "end of all streams" if watermark == END_OF_TIME else time_text(watermark)


def _size(count: int) -> str:
    unit, name = (2**20, "MiB") if count >= 2**20 else (2**10, "KiB")
    return f"{count / unit:,.1f} {name}"


@dataclass(frozen=True)
class StreamMetrics:
    """One stream.

    arrived: tuples pushed, late ones included. late: those behind the watermark.
    late_forgotten: late ones that `late()` can no longer give, because nobody asked in time.
    keyless: tuples in time whose key has a null or a NaN in it; they meet nothing and are not
    kept, unless they count as rows of their window. Without a key: those that lack a value which
    links two streams by equality, or by order if they need neither wait nor come out alone.
    filtered: tuples in time before the begin of their window, or for which a predicate over
    their stream alone does not hold. waiting: tuples in time whose turn has not come.
    live: tuples in the window; with disorder also some that have expired behind one that
    came early, and can no longer match. expired: tuples that have left it.
    shed: tuples that were dropped to keep within limits. lost: results that were, for want of
    one of them; a result that lacks tuples of several streams is lost by the first.
    unprobed: tuples that did not look for partners when they came, for want of service rate; if
    it drops tuples these are shed, too. jumps: tuples that came behind a gap longer than
    `max_jump`, and did not move the watermark when they came.
    punctuations: promises of the stream, in rows of it or by `punctuate`; unusable: those among
    them that say nothing about a key. broken: tuples that it had promised not to bring;
    broken_forgotten: those of them that `broken()` can no longer give. discarded: tuples that did
    not enter the window, since nothing that comes can meet them; purged: that left it for that
    reason.
    So arrived = late + keyless + filtered + broken + waiting + live + expired + shed + discarded +
    purged.
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
    shed: int = 0
    lost: int = 0
    unprobed: int = 0
    jumps: int = 0
    punctuations: int = 0
    unusable: int = 0
    broken: int = 0
    broken_forgotten: int = 0
    discarded: int = 0
    purged: int = 0

    @property
    def left_out(self) -> str:
        """Tuples in time that are not in the window and have not been, in words: nothing, if there
        are none."""
        kinds = (
            (self.keyless, "without a key"),
            (self.filtered, "filtered out"),
            (self.broken, "against a promise"),
            (self.discarded, "discarded"),
        )
        return "".join(f", {count:,} {kind}" for count, kind in kinds if count)

    def __str__(self) -> str:
        waiting = f", {self.waiting:,} waiting" if self.waiting else ""
        shed = f", {self.shed:,} shed" if self.shed else ""
        shed += f", {self.purged:,} purged" if self.purged else ""
        unprobed = f"; {self.unprobed:,} not probed" if self.unprobed else ""
        jumps = f"; {self.jumps:,} beyond max_jump" if self.jumps else ""
        return (
            f"{self.arrived:,} arrived: {self.late:,} late{self.left_out}{waiting}, "
            f"{self.live:,} live, {self.expired:,} expired{shed}{unprobed}{jumps}; "
            f"watermark {_text(self.watermark)}"
        )


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Frozen(Mapping[_Key, _Value]):
    """A mapping that does not change, and can be copied and pickled."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[_Key, _Value]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: _Key) -> _Value:
        return self._items[key]

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)


@dataclass(frozen=True)
class Metrics:
    """The join.

    produced: results so far. late, live, shed, unprobed: totals over the streams. bytes: memory
    held by windows and indexes. watermark: microseconds since the epoch; None before all streams
    have been heard.

    Under limits: lost, the results of the exact answer that did not come out; None if they are
    not counted. lost_interval: if a sample estimates them, where they are with a chance of 95 %.
    lost_by: the same as `lost` by reason. ghosts: tuples that were shed and are remembered to
    count them.

    With punctuations: propagated, keys of which no result comes any more.
    """

    produced: int
    late: int
    live: int
    bytes: int
    watermark: int | None
    streams: Mapping[str, StreamMetrics]
    shed: int = 0
    unprobed: int = 0
    lost: int | None = 0
    lost_interval: tuple[int, int] | None = None
    lost_by: Mapping[str, int] = field(default_factory=lambda: Frozen({}))
    ghosts: int = 0
    propagated: int = 0

    @property
    def recall(self) -> float | None:
        """The part of the exact answer that came out: 1 when nothing was due, None when what is
        lost is not counted."""
        if self.lost is None:
            return None
        due = self.produced + self.lost
        return self.produced / due if due else 1.0

    @property
    def recall_interval(self) -> tuple[float, float] | None:
        """Low and high, between which the recall is with a chance of 95 %. Both are the recall if
        it is exact; None when what is lost is not counted."""
        if self.recall is None:
            return None
        if self.lost_interval is None:
            return self.recall, self.recall
        low, high = self.lost_interval
        dues = (self.produced + high, self.produced + low)
        least, most = (self.produced / due if due else 1.0 for due in dues)
        return least, most

    def __str__(self) -> str:
        lines = [
            f"{amount(self.produced, 'result')}, {self.late:,} late, "
            f"{amount(self.live, 'live tuple')} in {_size(self.bytes)}, "
            f"watermark {_text(self.watermark)}"
        ]
        lines += [f"  {name}: {each}" for name, each in self.streams.items()]
        if self.shed or self.unprobed:
            lines.insert(1, self._shed_text())
        return "\n".join(lines)

    def _recall_text(self) -> str:
        if self.recall_interval is None or self.lost_interval is None:
            return f"{self.recall:.1%}"
        low, high = self.recall_interval
        return f"about {self.recall:.1%} ({low:.1%} to {high:.1%})"

    def _shed_text(self) -> str:
        shed = f"{amount(self.shed, 'tuple')} shed"
        if self.unprobed and self.shed < self.unprobed:  # else they are among the shed
            shed = f"{self.unprobed:,} not probed" + (f", {shed}" if self.shed else "")
        if self.lost is None or self.recall is None:
            return f"  {shed}; what is lost is not counted"
        told = f"{amount(self.lost, 'result')} lost"
        if self.lost_interval is not None:
            low, high = self.lost_interval
            told = f"about {told} ({low:,} to {high:,})"
        return f"  {shed}, {told}, recall {self._recall_text()}"
