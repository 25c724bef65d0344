"""What is done with a small random join: pushes, advances, restarts and the end.

Times come nearly in order, with ties, disorder and leaps; batches are cut anywhere, some are empty;
a stream may stay silent for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from support.second_question import Call, Question
from support.second_terms import Row
from support.small_columns import Columns
from support.small_join import START_US

SECOND_US = 1_000_000


def draw_calls(
    rng: Random, columns: Columns, question: Question, unit_us: int, is_large: bool
) -> tuple[Call, ...]:
    """unit_us: of all event times and windows. is_large: more keys than a small directory holds."""
    rows = rng.randint(90, 160) if is_large else rng.randint(1, 14)
    streams = len(question.sides)
    favourites = {} if is_large else _favourites(rng, columns)
    times = _times(rng, question, unit_us, rows)
    silent = rng.randrange(streams) if rng.random() < 0.3 else None
    silent_until = rng.randint(0, rows)
    waits = any(side.idle_us or side.takes_arrival_time for side in question.sides)
    clock_us, number = START_US, 0
    calls: list[Call] = []
    while number < rows:
        if waits:
            clock_us += rng.choice((0, 1, 2, 3, 5)) * SECOND_US
        batches: dict[int, list[tuple[int, Row]]] = {
            stream: [] for stream in range(streams) if rng.random() < 0.3
        }
        size = rng.choice((1, 2, 3, 3, 6, 14)) * (10 if is_large else 1)
        for place in range(number, min(rows, number + size)):
            stream = rng.randrange(streams)
            if stream == silent and place < silent_until:
                stream = (stream + 1) % streams
            values = columns.row(stream, favourites)
            if not question.sides[stream].takes_arrival_time:
                values["ts"] = times[place]
            batches.setdefault(stream, []).append((times[place], {**values, "id": place}))
        number = min(rows, number + size)
        order = rng.sample(list(batches), len(batches))
        calls.append(Call("push", clock_us, {stream: batches[stream] for stream in order}))
        if rng.random() < 0.12:
            ts = max(times[:number]) + rng.randint(-10, 10) * unit_us
            calls.append(Call("advance", clock_us, stream=rng.randrange(streams), ts=ts))
        if rng.random() < 0.1:
            calls.append(Call("push", clock_us, {}))
        if rng.random() < 0.12:
            calls.append(Call("restart", clock_us))
    if rng.random() < 0.9:
        calls.append(Call("finish", clock_us))
    return tuple(calls)


def _times(rng: Random, question: Question, unit_us: int, rows: int) -> list[int]:
    now = rng.choice((0, 0, -20 * unit_us, START_US))
    if any(side.takes_arrival_time for side in question.sides):
        now = START_US
    times = []
    for _ in range(rows):
        now += rng.choice((0, 0, 0, 1, 1, 2, 5, 30)) * unit_us
        times.append(now - rng.choice((0, 0, 0, 1, 3, 12)) * unit_us)
    return times


def _favourites(rng: Random, columns: Columns) -> dict[str, Sequence[Any]]:
    """Of most columns that must be equal two values only, or tuples of many streams would never
    meet. Such columns are called k or u and a number; k9 must equal k0."""
    chosen: dict[str, Sequence[Any]] = {}
    favourites: dict[str, Sequence[Any]] = {}
    names = {name: values for own in columns.of for name, (_, values) in own.items()}
    for name, values in names.items():
        if name[0] in "ku":
            link = "k0" if name == "k9" else name[:2]
            few = rng.choices(values, k=2) if rng.random() < 0.6 else values
            favourites[name] = chosen.setdefault(link, few)
    return favourites
