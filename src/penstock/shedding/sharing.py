"""An amount shared out over streams, each with a floor and a cap. Three ways of doing it.

- `in_turn`: as much as possible to the first, then to the next. Best if the gain is linear.
- `evenly`: the same for all. Best if the gain is the product of the shares.
- `for_most_combinations`: best for windows, whose gain is a sum of such products.

`portions` does it in whole numbers, in proportion and without bounds.

Invariant of the three: floor <= share <= cap, and the shares add up to the lower of the amount and
the sum of the caps. Streams that look alike get alike. Callers see to it that the floors fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, groupby
from math import copysign, inf, isclose, prod
from typing import NamedTuple

from penstock.shedding.output_rate import probe_values

__all__ = ["Bounds", "evenly", "for_most_combinations", "in_turn", "portions"]

Shares = tuple[float, ...]

# A window that a round moves by less is still.
_STILL = 1e-13
# Some twenty are usual, and a hundred for six streams were never seen.
_ROUNDS = 1_000


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

    Two windows at a time, the others held: of what the two have together, the best split is known
    exactly. Until none of them moves. That ends at the maximum, for there is only one: measured in
    time, x = window / rate, the sum is a constant times the elementary symmetric polynomial of
    degree n - 1 of x, whose (n - 1)-th root is concave where no x is negative; and if no two
    windows can gain by an exchange, no other change gains. Of two streams, it is one step.

    General solvers (SLSQP) agree, but not if one cap is a millionth of another.
    """
    windows = list(evenly(amount, bounds))
    for _ in range(_ROUNDS):
        before = tuple(windows)
        for first, second in combinations(range(len(rates)), 2):
            _exchange(windows, first, second, bounds, rates)
        if all(isclose(*pair, rel_tol=_STILL) for pair in zip(before, windows, strict=True)):
            break
    return _alike(tuple(windows), bounds, rates)


def _exchange(windows: list[float], first: int, second: int, bounds: Bounds, rates: Shares) -> None:
    """The best split of what two windows x and y have together: s = x + y.

    Results are c * x * y + p * (rate of second * x + rate of first * y) with p combinations of the
    other windows, and c of them and a new tuple of theirs. Highest where x - y is p / c times the
    difference of the rates, or on a bound.
    """
    others = [stream for stream in range(len(rates)) if stream not in {first, second}]
    values = probe_values(tuple(windows[stream] for stream in others))
    pairs = sum(rates[stream] * value for stream, value in zip(others, values, strict=True))
    lean = prod(windows[stream] for stream in others) * (rates[second] - rates[first])
    if pairs == 0 and lean == 0:
        return
    together = windows[first] + windows[second]
    wanted = (together + lean / pairs) / 2 if pairs else copysign(inf, lean)
    # A bound is met to the last bit, also that of a window next to nothing beside the other.
    least, most = bounds.of((second, first))
    y = min(max(together - wanted, least[0]), most[0])
    x = min(max(together - y, least[1]), most[1])
    if x != together - y:
        y = min(max(together - x, least[0]), most[0])
    windows[first], windows[second] = x, y


def _at_level(level: float, bounds: Bounds) -> Shares:
    return tuple(min(max(level, floor), cap) for floor, cap in zip(*bounds, strict=True))


def _alike(shares: Shares, bounds: Bounds, rates: Shares) -> Shares:
    """The mean for streams of the same rate and bounds: by concavity at least as good."""
    kinds = list(zip(rates, *bounds, strict=True))
    means = []
    for kind in kinds:
        own = [share for share, other in zip(shares, kinds, strict=True) if other == kind]
        _, floor, cap = kind
        # The mean of three times 0.1 is above 0.1.
        means.append(min(max(sum(own) / len(own), floor), cap))
    return tuple(means)


def portions(whole: int, parts: Sequence[float]) -> list[int]:
    """Divide `whole` in proportion to the parts; what is left over goes to the first of those
    that miss most."""
    total = sum(parts)
    shares = [whole * part / total for part in parts] if total else [0.0] * len(parts)
    rounded = [int(share) for share in shares]
    missing = sorted(range(len(parts)), key=lambda each: rounded[each] - shares[each])
    for each in missing[: whole - sum(rounded)]:
        rounded[each] += 1
    return rounded
