"""The ceiling: the recall that the best of all policies could have had, and the memory it takes.

It is known of inner joins of two streams. Bounds are looked for, a recall that can be had and one
that cannot be exceeded: they are close, and take far less time than what is exact. It is done at
the sizes of memory that all policies are measured at, so that it is seen to be above them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.lab.optimum.optimum import optimum
from penstock.lab.sizing.curve import GRID, trace
from penstock.lab.sizing.intervals import Interval
from penstock.model.query import Query

__all__ = ["Ceiling", "CeilingPoint", "Least", "ceiling", "ceiling_curve", "why_no_ceiling"]

_TOLERANCE: Final = 0.02


@dataclass(frozen=True)
class CeilingPoint:
    """memory: in rows. recall: that can be had with it. upper: that no policy can exceed."""

    memory: int
    recall: float
    upper: float


@dataclass(frozen=True)
class Least:
    """Of a recall. enough: a memory that is known to be enough for the best of all policies; None
    if none was found. too_little: the largest that is known to be too little for any."""

    recall: float
    enough: int | None
    too_little: int


@dataclass(frozen=True)
class Ceiling:
    """points: in order of memory. least: for each recall that was asked for."""

    points: tuple[CeilingPoint, ...]
    least: tuple[Least, ...]


def ceiling(query: Query, tables: Mapping[str, Any], memory: int, pool: Any) -> Interval:
    """The recall that the best of all policies has within a memory: that can be had, and that
    cannot be exceeded."""
    best = optimum(query, tables, memory=memory, pool=pool, method="prices")
    return best.recall, best.recall_upper


def why_no_ceiling(query: Query) -> str | None:
    """Why the best is not known of a query; None if it is."""
    if len(query.names) != 2:
        return f"it is known of joins of two streams, and these are {len(query.names)}"
    if query.how != "inner":
        return f"it is known of inner joins, and this is a {query.how} join"
    return None


def ceiling_curve(best: Callable[[int], Interval], need: int, recalls: Sequence[float]) -> Ceiling:
    """Close in on the memory that recalls take. best: recalls at a memory, see `ceiling`."""

    def measure(memory: int) -> CeilingPoint:
        recall, upper = best(memory)
        return CeilingPoint(memory, recall, upper)

    points = tuple(trace(measure, need, recalls, GRID, _TOLERANCE).values())
    least = [
        Least(
            recall,
            min((each.memory for each in points if each.recall >= recall), default=None),
            max((each.memory for each in points if each.upper < recall), default=0),
        )
        for recall in recalls
    ]
    return Ceiling(points, tuple(least))
