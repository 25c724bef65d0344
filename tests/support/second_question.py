"""What the second oracle is asked, and what it says: plain values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from support.second_terms import Row, Term


class Window(NamedTuple):
    kind: str  # time, rows, rows per key, arrivals, tumbling, since or unbounded
    size: int = 0  # microseconds, rows, arrivals, or the time since when


class Side(NamedTuple):
    """One stream of the join."""

    window: Window
    lateness_us: int = 0
    idle_us: int | None = None
    takes_arrival_time: bool = False


@dataclass(frozen=True)
class Question:
    """What is joined.

    on: of each stream its key columns.
    bounds: on the difference of two streams' times in microseconds, both ends included, instead
        of windows.
    """

    sides: tuple[Side, ...]
    on: tuple[tuple[str, ...], ...] | None = None
    where: tuple[Term, ...] = ()
    how: str = "inner"
    bounds: tuple[int, int] | None = None

    @property
    def counts(self) -> bool:
        """Whether rows or arrivals are counted, so that tuples wait for their turn."""
        counted = ("rows", "rows per key", "arrivals")
        return self.bounds is None and any(side.window.kind in counted for side in self.sides)


class Call(NamedTuple):
    """What is done with the join, and what the wall clock says then.

    kind: push, advance, restart or finish.
    batches: by stream, time and values of each row. The time means nothing where the stream
        takes that of arrival.
    """

    kind: str
    clock_us: int
    batches: Mapping[int, Sequence[tuple[int, Row]]] = {}
    stream: int = 0
    ts: int = 0


class Result(NamedTuple):
    rows: tuple[Row | None, ...]  # of each stream; None if it has no part
    event_time: int


@dataclass
class Counters:
    """Of one stream. `live` is a range: what must be counted, and what may be."""

    arrived: int = 0
    late: int = 0
    filtered: int = 0
    waiting: int = 0
    keyless: int = 0
    live: tuple[int, int] = (0, 0)
    watermark: int | None = None


@dataclass
class Outcome:
    """What one call brings out, and what the counters say after it."""

    results: list[Result] = field(default_factory=list)
    late: list[list[Row]] = field(default_factory=list)
    watermark: int | None = None
    counters: list[Counters] = field(default_factory=list)


@dataclass(eq=False)
class Arrival:
    """One tuple that came.

    lacks_key: its key equals nothing. lacks_order: it has no value that order compares.
    taken: the call in which its turn came; None if it has not.
    matched: the call in which it was first in a result.
    """

    stream: int
    ts: int
    values: Row
    call: int
    place: int
    is_late: bool
    is_filtered: bool = False
    key: tuple[Any, ...] = ()
    lacks_key: bool = False
    lacks_order: bool = False
    taken: int | None = None
    matched: int | None = None

    @property
    def order(self) -> tuple[int, int, int]:
        """Time, then the streams in the query, then arrival."""
        return self.ts, self.stream, self.place
