"""The definition: what a sliding-window join answers, as plain nested loops.

A combination takes one tuple of each stream. It is in the answer when all predicates hold
and every tuple is in its window at the time of the latest of them. Equal tuples count as
often as they came. A tuple behind the join's watermark at the start of the step that brings
it is late, and in no combination. Nothing else decides the answer: not the batches, not the
order of arrival. A combination comes out with the last of its tuples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import inf
from typing import Any

Row = Mapping[str, Any]  # event times are whole microseconds, null is None
Combination = tuple[tuple[Row, ...], int]  # a row of each stream, and the event time


@dataclass(frozen=True)
class OracleStream:
    name: str
    window_us: int
    key: tuple[str, ...] = ("k",)
    time: str = "ts"
    lateness_us: int = 0
    idle_timeout_s: float = inf


@dataclass(frozen=True)
class Step:
    """One call: a batch of rows by stream, or watermarks set by hand; `at` is wall time."""

    rows: Mapping[str, Sequence[Row]]
    advance: Mapping[str, int] = field(default_factory=dict)
    at: float = 0.0


@dataclass
class Outcome:
    """What a step brings, and what is so after it. Live is what can still match."""

    late: dict[str, list[Row]] = field(default_factory=dict)
    results: list[Combination] = field(default_factory=list)
    watermark: float = -inf
    live: dict[str, int] = field(default_factory=dict)


def answer(streams: Sequence[OracleStream], steps: Sequence[Step]) -> list[Outcome]:
    outcomes, admitted = run_clock(streams, steps)
    for arrivals in product(*(admitted[stream.name] for stream in streams)):
        rows = [row for row, _ in arrivals]
        latest = max(row[stream.time] for stream, row in zip(streams, rows, strict=True))
        if equal_keys(streams, rows) and all(map(in_window, streams, rows, [latest] * len(rows))):
            outcomes[max(number for _, number in arrivals)].results.append((tuple(rows), latest))
    for last, outcome in enumerate(outcomes):
        for stream in streams:
            rows = [row for row, number in admitted[stream.name] if number <= last]
            rows = [row for row in rows if equal_keys([stream] * 2, [row] * 2)]
            outcome.live[stream.name] = sum(in_window(stream, r, outcome.watermark) for r in rows)
    return outcomes


def equal_keys(streams: Sequence[OracleStream], rows: Sequence[Row]) -> bool:
    """Column by column. Null equals nothing, NaN equals nothing, not even itself."""
    keys = [[row[column] for column in s.key] for s, row in zip(streams, rows, strict=True)]
    columns = zip(*keys, strict=True)
    return all(a is not None and a == b for values in columns for a, b in pairwise(values))


def in_window(stream: OracleStream, row: Row, latest: float) -> bool:
    return bool(latest - row[stream.time] <= stream.window_us)


def run_clock(
    streams: Sequence[OracleStream], steps: Sequence[Step]
) -> tuple[list[Outcome], dict[str, list[tuple[Row, int]]]]:
    """The late rows of each step; and the others, each with the number of its step."""
    watermark, own = -inf, {stream.name: -inf for stream in streams}
    heard = {stream.name: 0.0 for stream in streams}  # the wall time of its last tuple
    admitted: dict[str, list[tuple[Row, int]]] = {stream.name: [] for stream in streams}
    outcomes: list[Outcome] = []

    def lowest(at: float) -> float:
        awake = [own[s.name] for s in streams if at - heard[s.name] <= s.idle_timeout_s]
        return max(watermark, min(awake, default=watermark))  # it never goes back

    for number, step in enumerate(steps):
        watermark = lowest(step.at)  # this one holds for the whole step
        outcomes.append(outcome := Outcome())
        for s in streams:
            rows = step.rows.get(s.name, ())
            outcome.late[s.name] = [row for row in rows if row[s.time] < watermark]
            admitted[s.name] += [(row, number) for row in rows if row[s.time] >= watermark]
            reached = [row[s.time] - s.lateness_us for row in rows]
            own[s.name] = max(own[s.name], step.advance.get(s.name, -inf), *reached)
            heard[s.name] = step.at if rows else heard[s.name]
        outcome.watermark = watermark = lowest(step.at)
    return outcomes, admitted
