"""Where a plan would change: how far the rates of two streams may drift apart before another is
cheaper.

For two streams, indexes of a fixed size and eager removal this is the crossover of Kang et al.
(`planning.crossover`). Here it is looked for by steps and closed in on, so that it holds for any
number of streams, for windows of time, which grow with their rate, and under limits. The rates of
the two change and their sum stays. A change that is undone within one step goes unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import floor, log, sqrt
from typing import Final

from penstock.planning.case import Case
from penstock.planning.planner import Choice

__all__ = ["FARTHEST", "MOST_STREAMS", "RateShift", "Turn", "rate_shifts", "rates_at"]

FARTHEST: Final = 1e6  # times the ratio of today
MOST_STREAMS: Final = 5  # beyond, it takes too long
_LEAST: Final = 1e-100  # what is beyond leaves no room to be shifted
_STEPS: Final = {2: 2.0}  # the ratio from one look to the next
_STEP: Final = 4.0
_CLOSE: Final = {2: 1 + 1e-9}
_CLOSE_ENOUGH: Final = 1.001


@dataclass(frozen=True)
class Turn:
    """From this ratio on another plan is the cheapest."""

    ratio: float
    choice: Choice


@dataclass(frozen=True)
class RateShift:
    """Of the rate of one stream to that of another: how it is, and where the plan changes when it
    falls and when it rises; None where it never does, or only beyond FARTHEST."""

    streams: tuple[int, int]
    ratio: float
    below: Turn | None
    above: Turn | None


def rate_shifts(case: Case, chosen: Choice) -> tuple[RateShift, ...]:
    """Of every pair of streams that come at all."""
    rates = case.whole().rates
    if len(rates) > MOST_STREAMS:
        return ()
    found = []
    for pair in combinations(range(len(rates)), 2):
        ratio = rates[pair[0]] / rates[pair[1]] if rates[pair[1]] > 0 else 0.0
        if _LEAST < ratio < 1 / _LEAST:
            below, above = (_turn(case, chosen, pair, ratio, down) for down in (True, False))
            found.append(RateShift(pair, ratio, below, above))
    return tuple(found)


def rates_at(case: Case, pair: tuple[int, int], ratio: float) -> dict[str, float]:
    """The rates of all streams when those of two have this ratio, and the same sum."""
    rates = list(case.whole().rates)
    together = rates[pair[0]] + rates[pair[1]]
    rates[pair[0]] = together * ratio / (1 + ratio)
    rates[pair[1]] = together / (1 + ratio)
    return dict(zip(case.query.names, rates, strict=True))


def _turn(
    case: Case, chosen: Choice, pair: tuple[int, int], start: float, down: bool
) -> Turn | None:
    streams = len(case.query.names)

    def best(ratio: float) -> Choice:
        planner = case.planner(rates_at(case, pair, ratio))
        return planner.choose() if streams <= 3 else planner.improved(chosen)

    def differs(ratio: float) -> bool:
        return not best(ratio).is_same_plan(chosen)

    step = _STEPS.get(streams, _STEP)
    for looks in range(1, floor(log(FARTHEST, step)) + 1):
        far = start / step**looks if down else start * step**looks
        if differs(far):
            near = far * step if down else far / step
            ratio = _closed_in(differs, near, far, _CLOSE.get(streams, _CLOSE_ENOUGH))
            return Turn(ratio, best(ratio))
    return None


def _closed_in(differs: Callable[[float], bool], near: float, far: float, close: float) -> float:
    """Where what holds at the far end begins to."""
    while max(near / far, far / near) > close:
        middle = sqrt(near * far)
        if differs(middle):
            far = middle
        else:
            near = middle
    return far
