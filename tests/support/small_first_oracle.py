"""A small random join as the first oracle, `oracle.py`, is asked."""

from __future__ import annotations

from math import inf
from typing import Any

from support import oracle
from support.second_intake import key_columns
from support.second_terms import Row, holds, streams
from support.small_join import START_US, SmallJoin


def first_answer(join: SmallJoin) -> list[oracle.Outcome] | None:
    """What the first oracle says of a small join; None if it does not know what it is about."""
    question = join.question
    idle = any(side.idle_us is not None for side in question.sides)
    if idle and any(call.kind == "restart" for call in join.calls):
        return None  # its idle clock knows no restart
    if any(side.takes_arrival_time for side in question.sides):
        return None
    keys = key_columns(question)
    sides = []
    for number, (name, side) in enumerate(zip(join.names, question.sides, strict=True)):
        kind, size = side.window
        given: dict[str, Any] = {
            "time": {"window_us": size},
            "unbounded": {},
            "since": {"since": size},
            "tumbling": {"slot_us": size},
            "rows": {"rows": size},
            "rows per key": {"rows": size, "per_key": True},
            "arrivals": {"arrivals": size},
        }[kind]
        if question.bounds is not None:
            given = {"window_us": question.bounds[1] if number == 0 else -question.bounds[0]}
        sides.append(
            oracle.OracleStream(
                name,
                key=tuple(keys[number]),
                lateness_us=side.lateness_us,
                idle_timeout_s=inf if side.idle_us is None else side.idle_us / 1e6,
                **given,
            )
        )
    steps = []
    for call in join.calls:
        if call.kind != "finish":
            rows = {join.names[s]: [row for _, row in batch] for s, batch in call.batches.items()}
            advance = {join.names[call.stream]: call.ts} if call.kind == "advance" else {}
            steps.append(oracle.Step(rows, advance, at=(call.clock_us - START_US) / 1e6))
    where = []
    for term in question.where:
        over = sorted(streams(term))

        def judged(*rows: Row, term: Any = term, over: list[int] = over) -> bool:
            return holds(term, dict(zip(over, rows, strict=True)))

        where.append((tuple(join.names[stream] for stream in over), judged))
    return oracle.answer(sides, steps, question.bounds, where, question.how)
