"""The second oracle's first half: what time it is, and which tuples take part.

Written from docs/semantics.md, *Time* and *Predicates*. "Reading:" marks what that page leaves
open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from support.second_question import Arrival, Call, Question, Side
from support.second_terms import (
    NOT_DISTINCT,
    Column,
    Expression,
    Row,
    compared,
    holds,
    is_nan,
    plain_equality,
    streams,
    value,
)

THE_END = 2**62  # every watermark after `finish()`


class Time:
    """The watermarks of the streams and of the join."""

    def __init__(self, sides: Sequence[Side], clock_us: int) -> None:
        self.sides = sides
        self.newest: list[int | None] = [None] * len(sides)
        self.promised: list[int | None] = [None] * len(sides)
        self.spoke_us = [clock_us] * len(sides)
        self.joint: int | None = None

    def of(self, stream: int) -> int | None:
        """The greatest time it has brought less its lateness, or what it was advanced to."""
        newest = self.newest[stream]
        brought = None if newest is None else newest - self.sides[stream].lateness_us
        known = [time for time in (brought, self.promised[stream]) if time is not None]
        return max(known, default=None)

    def settle(self, clock_us: int) -> None:
        """The join's watermark is the lowest of its streams', and never goes back.

        Reading: a stream that has never spoken is silent since the start, or the restart. If all
        are left out the watermark stays.
        """
        included = [
            self.of(stream)
            for stream, side in enumerate(self.sides)
            if side.idle_us is None or clock_us - self.spoke_us[stream] <= side.idle_us
        ]
        heard = [watermark for watermark in included if watermark is not None]
        if included and len(heard) == len(included):
            lowest = min(heard)
            self.joint = lowest if self.joint is None else max(self.joint, lowest)

    def arrival(self, clock_us: int) -> int:
        """The instant of a push: the clock's; but not before earlier ones, nor before what a
        stream that takes its time so was advanced to, nor before the join's watermark."""
        by_arrival = [s for s, side in enumerate(self.sides) if side.takes_arrival_time]
        bounds = [clock_us, self.joint, *(self.of(stream) for stream in by_arrival)]
        return max(bound for bound in bounds if bound is not None)


def take_in(
    question: Question, calls: Sequence[Call], start_us: int
) -> tuple[list[Arrival], list[tuple[int | None, list[int | None]]]]:
    """All tuples that came; and after each call the join's watermark and those of its streams."""
    sides = question.sides
    time = Time(sides, start_us)
    judge = _judge(question)
    arrivals: list[Arrival] = []
    watermarks: list[tuple[int | None, list[int | None]]] = []
    for number, call in enumerate(calls):
        if call.kind == "restart":
            time.spoke_us = [call.clock_us] * len(sides)
        # The watermark at the start of a push holds for the whole of it.
        time.settle(call.clock_us)
        if call.kind == "advance":
            promised = time.promised[call.stream]
            time.promised[call.stream] = call.ts if promised is None else max(promised, call.ts)
        if call.kind == "finish":
            watermarks.append((THE_END, [THE_END] * len(sides)))
            continue
        begin, instant = time.joint, time.arrival(call.clock_us)
        for stream, batch in call.batches.items():
            for own_ts, values in batch:
                ts = instant if sides[stream].takes_arrival_time else own_ts
                is_late = begin is not None and ts < begin
                arrival = Arrival(stream, ts, values, number, len(arrivals), is_late)
                judge(arrival)
                arrivals.append(arrival)
                newest = time.newest[stream]
                time.newest[stream] = ts if newest is None else max(newest, ts)
                time.spoke_us[stream] = call.clock_us
        time.settle(call.clock_us)
        watermarks.append((time.joint, [time.of(stream) for stream in range(len(sides))]))
    return arrivals, watermarks


def _judge(question: Question) -> Callable[[Arrival], None]:
    """Sees whether an arrival is filtered, what its key is, and which values it lacks."""
    count = len(question.sides)
    keys = key_columns(question)
    linked, ordered = ([], []) if keys[0] else _needed(question)
    filters = [[term for term in question.where if streams(term) == {s}] for s in range(count)]

    def lacks(stream: int, values: Row, parts: Sequence[Expression]) -> bool:
        found = [value(part, {stream: values}) for part in parts if streams(part) == {stream}]
        return any(part is None or is_nan(part) for part in found)

    def judge(arrival: Arrival) -> None:
        stream, values = arrival.stream, arrival.values
        window = question.sides[stream].window
        before = question.bounds is None and window.kind == "since" and arrival.ts < window.size
        passes = all(holds(term, {stream: values}) for term in filters[stream])
        arrival.is_filtered = before or not passes
        key = [Column(stream, name) for name in keys[stream]]
        arrival.lacks_key = lacks(stream, values, [*key, *linked])
        arrival.lacks_order = lacks(stream, values, ordered)
        arrival.key = tuple(values[column.name] for column in key)

    return judge


def key_columns(question: Question) -> list[list[str]]:
    """Of each stream the columns of the key: those of `on=`; or without it those that `=` makes
    equal in all streams, of each class of them the first by name."""
    if question.on is not None:
        return [list(names) for names in question.on]
    columns: list[list[str]] = [[] for _ in question.sides]
    for together in _classes(question, "="):
        if len({column.stream for column in together}) == len(columns):
            for stream, names in enumerate(columns):
                names.append(min(column.name for column in together if column.stream == stream))
    return columns


def _classes(question: Question, sign: str) -> list[set[Column]]:
    """The columns that terms with this sign make equal, over as many steps as it takes."""
    classes: list[set[Column]] = []
    for term in question.where:
        pair = plain_equality(term, sign)
        if pair is not None:
            touched = [together for together in classes if together & set(pair)]
            classes = [together for together in classes if together not in touched]
            classes.append(set(pair).union(*touched))
    return classes


def _needed(question: Question) -> tuple[list[Expression], list[Expression]]:
    """In a join without a key, what a tuple must have a value of: the columns that `=` links
    streams by; and what order compares between streams that nothing links."""
    equal = _classes(question, "=")
    groups = [{c.stream for c in t} for t in equal + _classes(question, NOT_DISTINCT)]
    ordered = [
        part
        for term in question.where
        if len(streams(term)) == 2 and not any(streams(term) <= group for group in groups)
        for part in compared(term)
    ]
    return [column for together in equal for column in together], ordered
