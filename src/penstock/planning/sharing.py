"""An amount shared out over streams, each with a floor and a cap. Three ways of doing it.

- `in_turn`: as much as possible to the first, then to the next. Best where the gain is linear.
- `evenly`: the same for all. Best where the gain is the product of the shares.
- `for_most_combinations`: best for windows of three and more streams.

Invariant of each: floor <= share <= cap, and the shares add up to the lower of the amount and the
sum of the caps. Streams that look alike get alike. Callers see to it that the floors fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod
from typing import Any, NamedTuple

from penstock.planning.output_rate import probe_values

__all__ = ["Bounds", "evenly", "for_most_combinations", "in_turn"]

Shares = tuple[float, ...]

# The solver is sure of a share to about the square root of what a float can tell apart; a share
# that near to its bound lies on it, and a window of nothing must be nothing, not almost.
_NEAR = 1e-7


class Bounds(NamedTuple):
    """The least and the most of each stream."""

    floors: Shares
    caps: Shares

    def of(self, streams: Sequence[int]) -> Bounds:
        return Bounds(
            tuple(self.floors[stream] for stream in streams),
            tuple(self.caps[stream] for stream in streams),
        )


def in_turn(amount: float, bounds: Bounds, turns: Sequence[float]) -> Shares:
    """The lowest turn first, up to its cap, then the next; streams of one turn share evenly."""
    shares = list(bounds.floors)
    rest = amount - sum(shares)
    streams = sorted(range(len(turns)), key=turns.__getitem__)
    for _, group in groupby(streams, key=turns.__getitem__):
        now = list(group)
        own = bounds.of(now)
        given = min(rest, sum(own.caps) - sum(own.floors))
        if given <= 0:
            continue
        for stream, share in zip(now, evenly(sum(own.floors) + given, own), strict=True):
            shares[stream] = share
        rest -= given
    return tuple(shares)


def evenly(amount: float, bounds: Bounds) -> Shares:
    """One level for all, but for those whose floor is above it or whose cap is below it.

    Of all ways it is the one with the largest product: as long as one stream has less than another
    and could have more, moving some from the larger to the smaller raises the product.
    """
    floors, caps = bounds
    if amount >= sum(caps):
        return caps
    if amount <= sum(floors):
        return floors
    for end in sorted({*floors, *caps}):
        if sum(_at_level(end, bounds)) >= amount:
            break
    # Below `end`, and above the end before it, the same streams are held by a floor or a cap.
    held = [floor if floor >= end else cap for floor, cap in zip(*bounds, strict=True)]
    free = [floor < end <= cap for floor, cap in zip(*bounds, strict=True)]
    fixed = sum(share for share, is_free in zip(held, free, strict=True) if not is_free)
    return _at_level((amount - fixed) / sum(free), bounds)


def for_most_combinations(amount: float, bounds: Bounds, rates: Shares) -> Shares:
    """Windows for which the sum of rate times product of the other windows is the largest.

    Measured in time, x = window / rate, that sum is a constant times the elementary symmetric
    polynomial of degree n - 1 of x, whose (n - 1)-th root is concave where no x is negative. So a
    local maximum is the maximum, and a solver that climbs from anywhere inside finds it.
    """
    from scipy.optimize import minimize  # half a second, that joins of two streams do without

    fastest = max(rates)
    start = evenly(amount, bounds)
    if amount >= sum(bounds.caps) or fastest == 0:
        return start
    streams = range(len(rates))
    # In units of the amount and of the fastest stream, so that its tolerance suits all sizes.
    scaled = [rate / fastest for rate in rates]
    root = 1 / (len(rates) - 1)

    def loss(windows: Any) -> float:
        return -float(_combinations(scaled, windows) ** root)

    def slope(windows: Any) -> list[float]:
        inner = max(_combinations(scaled, windows), 1e-300)
        outer = -root * inner ** (root - 1)
        return [outer * _worth(scaled, windows, stream) for stream in streams]

    found = minimize(
        loss,
        [share / amount for share in start],
        jac=slope,
        bounds=[
            (floor / amount, min(cap / amount, 1.0)) for floor, cap in zip(*bounds, strict=True)
        ],
        constraints={
            "type": "eq",
            "fun": lambda windows: sum(windows) - 1,
            "jac": lambda windows: [1.0 for _ in streams],
        },
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    shares = _settled([float(share) * amount for share in found.x], amount, bounds)
    shares = _alike(shares, bounds, rates)
    # It also stops where rounding hides the way up, and says so; the start is the least it owes.
    return max(shares, start, key=lambda windows: _combinations(scaled, windows))


def _at_level(level: float, bounds: Bounds) -> Shares:
    return tuple(min(max(level, floor), cap) for floor, cap in zip(*bounds, strict=True))


def _combinations(rates: Sequence[float], windows: Sequence[float]) -> float:
    values = probe_values(tuple(max(window, 0.0) for window in windows))
    return sum(rate * value for rate, value in zip(rates, values, strict=True))


def _worth(rates: Sequence[float], windows: Sequence[float], stream: int) -> float:
    """Combinations per unit of time that one more tuple in the stream's window adds."""
    others = [other for other in range(len(rates)) if other != stream]
    return sum(
        rates[last] * prod(max(windows[other], 0.0) for other in others if other != last)
        for last in others
    )


def _settled(shares: list[float], amount: float, bounds: Bounds) -> Shares:
    """On the bounds where it is near them, and adding up to the amount."""
    free = []
    for stream, (floor, cap) in enumerate(zip(*bounds, strict=True)):
        # Not near to both, however little is between them.
        near = _NEAR * min(amount, cap - floor)
        if shares[stream] <= floor + near:
            shares[stream] = floor
        elif shares[stream] >= cap - near:
            shares[stream] = cap
        else:
            free.append(stream)
    order = sorted(free, key=lambda stream: -shares[stream]) or range(len(shares))
    for stream in order:
        missing = amount - sum(shares)
        wanted = shares[stream] + missing
        shares[stream] = min(max(wanted, bounds.floors[stream]), bounds.caps[stream])
    return tuple(shares)


def _alike(shares: Shares, bounds: Bounds, rates: Shares) -> Shares:
    """The mean for streams of the same rate and bounds: by concavity at least as good."""
    kinds = list(zip(rates, *bounds, strict=True))
    return tuple(
        sum(share for share, other in zip(shares, kinds, strict=True) if other == kind)
        / kinds.count(kind)
        for kind in kinds
    )
