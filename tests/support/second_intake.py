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
    Comparison,
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
        self.last_arrival: int | None = None

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
            if side.idle_us is None or clock_us - self.spoke_us[stream] < side.idle_us
        ]
        heard = [watermark for watermark in included if watermark is not None]
        if included and len(heard) == len(included):
            lowest = min(heard)
            self.joint = lowest if self.joint is None else max(self.joint, lowest)

    def arrival(self, clock_us: int) -> int:
        """The instant of a push: the clock's, but not before earlier ones or the watermark."""
        bounds = [clock_us, self.last_arrival, self.joint]
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
                if sides[stream].takes_arrival_time:
                    time.last_arrival = instant
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
    """Sees whether an arrival is filtered, what its key is, and whether it lacks a value."""
    columns = _key_columns(question)
    has_key = bool(columns[0])
    filters = [
        [term for term in question.where if streams(term) == {s}] for s in range(len(columns))
    ]
    pairs = [term for term in question.where if len(streams(term)) > 1]
    asked = [
        [part for term in pairs for part in compared(term) if streams(part) == {s}]
        for s in range(len(columns))
    ]

    def key(stream: int, values: Row) -> tuple[object, ...] | None:
        found = []
        for column, nulls_are_equal in columns[stream]:
            part = values[column]
            if is_nan(part) or (part is None and not nulls_are_equal):
                return None
            found.append(part)
        return tuple(found)

    def judge(arrival: Arrival) -> None:
        stream, rows = arrival.stream, {arrival.stream: arrival.values}
        window = question.sides[stream].window
        before = question.bounds is None and window.kind == "since" and arrival.ts < window.size
        arrival.is_filtered = before or not all(holds(term, rows) for term in filters[stream])
        arrival.key = key(stream, arrival.values) if has_key else ()
        found = [value(part, rows) for part in asked[stream]]
        arrival.lacks_value = any(part is None or is_nan(part) for part in found)

    return judge


def _key_columns(question: Question) -> list[list[tuple[str, bool]]]:
    """Of each stream its columns of the key, and whether a null in it equals a null.

    Columns that are equal in all streams are the key, by `on=` or by `where=`; equality goes on
    from column to column. Reading: if a stream has several columns in one class, all of them are
    in its key. A null equals nothing in a class that any `=` is part of.
    """
    links: list[tuple[Column, Column, bool]] = []
    for position in range(len(question.on[0]) if question.on else 0):
        assert question.on is not None
        row = [Column(stream, names[position]) for stream, names in enumerate(question.on)]
        links += [(row[0], other, False) for other in row[1:]]
    for term in question.where:
        equal = plain_equality(term)
        if equal is not None:
            assert isinstance(term, Comparison)
            links.append((*equal, term.operator == NOT_DISTINCT))
    classes: list[set[Column]] = []
    for left, right, _ in links:
        touched = [group for group in classes if left in group or right in group]
        classes = [group for group in classes if group not in touched]
        classes.append({left, right}.union(*touched))
    count = len(question.sides)
    columns: list[list[tuple[str, bool]]] = [[] for _ in range(count)]
    for group in classes:
        if {column.stream for column in group} != set(range(count)):
            continue
        nulls_are_equal = all(equal for left, _, equal in links if left in group)
        for column in sorted(group, key=lambda column: column.name):
            columns[column.stream].append((column.name, nulls_are_equal))
    return columns
