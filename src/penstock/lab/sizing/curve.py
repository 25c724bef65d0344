"""Recall against memory: measured at some sizes, and closed in on where a recall is asked for.

Recall is taken to grow with memory. Between the largest size that was too small and the smallest
that was not, the next is tried where a straight line between the two has the recall, a little to
one side of it, so that mostly two tries close in; where that did not halve what was left, half-way.
All figures returned were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final, Protocol, TypeVar

__all__ = ["GRID", "TOLERANCE", "trace"]

# Parts of the exact need that are always measured.
GRID: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)
TOLERANCE: Final = 0.015  # of the memory: less is not enough, or was not tried
_NUDGE: Final = 0.4  # of it, to one side of where the line has the recall
_GROWTH: Final = 1.05
_MOST_GROWTH: Final = 2.0


class _Measured(Protocol):
    @property
    def recall(self) -> float:
        """What it came to."""


Measured = TypeVar("Measured", bound=_Measured)


def trace(
    measure: Callable[[int], Measured],
    need: int,
    recalls: Sequence[float],
    grid: Sequence[float] = GRID,
    tolerance: float = TOLERANCE,
) -> dict[int, Measured]:
    """What was measured, by memory, in order of it.

    need: about the memory at which the recall is 1. recalls: to close in on.
    """
    points: dict[int, Measured] = {}

    def at(memory: int) -> Measured:
        if memory not in points:
            points[memory] = measure(memory)
        return points[memory]

    for part in grid:
        at(max(round(part * need), 1))
    for recall in sorted(recalls):
        before = float("inf")
        while (bracket := _bracket(points, recall, need)) is not None:
            low, high = bracket
            by_line = high - low <= before / 2
            before = high - low
            if high not in points:
                at(high)
            elif before > max(1.0, tolerance * high):
                at(_between(points, bracket, recall, tolerance if by_line else None))
            else:
                break
    return dict(sorted(points.items()))


def _bracket(points: dict[int, Measured], recall: float, need: int) -> tuple[int, int] | None:
    """The largest memory that is too little, and the least that is enough, or might be; None when
    there seems to be none."""
    reached = [memory for memory, point in points.items() if point.recall >= recall]
    if not reached:
        most = max(points)
        return None if most > _MOST_GROWTH * need else (most, ceil(_GROWTH * most) + 1)
    high = min(reached)
    return max((memory for memory in points if memory < high), default=0), high


def _between(
    points: dict[int, Measured], bracket: tuple[int, int], recall: float, tolerance: float | None
) -> int:
    """A memory in between: where a line has the recall, to a part of `tolerance`; or half-way."""
    low, high = bracket
    least = points[low].recall if low else 0.0
    rise = points[high].recall - least
    if tolerance is None or rise <= 0:
        return (low + high) // 2
    on_line = low + (high - low) * (recall - least) / rise
    nudge = _NUDGE * tolerance * on_line
    guess = on_line + nudge if on_line + 2 * nudge < high else on_line - nudge
    return round(min(max(guess, low + 1), high - 1))
