"""Greedy choices of tuples to keep, in O(c log c) for c keys.

*Average degree*, for k tuples of both sides together: components are kept in order of their average
degree m * n / (m + n), the last one in part. At least half of the most pairs that could be kept are
kept, and at most twice the fewest that could be lost are lost.

*Node degree*, for a number of each side: the tuples of the left side with the most partners are
kept, then those of the right side with the most partners among them. It loses at most twice the
fewest pairs. The paper says the same of the pairs kept, which is not so: of three components K(1,
10) and one K(3, 3), three tuples a side, it keeps the three tuples with ten partners each and so 3
pairs, where 9 could be kept; with more and larger components like these the ratio has no bound. So
its choice is held against a second one, `by_prices`, which never keeps less than half, and the
better of the two is taken: both factors of 2 hold for it."""

from __future__ import annotations

import numpy as np

from penstock.lab.static.components import Ints, split
from penstock.lab.static.prices import Prices

__all__ = ["by_average_degree", "by_node_degree", "by_prices", "most_partners"]


def by_average_degree(left: Ints, right: Ints, keep: int) -> tuple[Ints, Ints]:
    """How many to keep of each component, `keep` of both sides together."""
    size = left + right
    degree = np.divide(left * right, size, out=np.zeros(len(size)), where=size > 0)
    order = np.argsort(-degree, kind="stable")
    ends = np.cumsum(size[order])
    place = int(np.searchsorted(ends, keep, side="right"))
    kept_left, kept_right = np.zeros_like(left), np.zeros_like(right)
    whole = order[:place]
    kept_left[whole], kept_right[whole] = left[whole], right[whole]
    if place < len(order):
        last = order[place]
        nodes = keep - int(size[whole].sum())
        kept_left[last], kept_right[last] = split(int(left[last]), int(right[last]), nodes)
    return kept_left, kept_right


def by_node_degree(left: Ints, right: Ints, keep: tuple[int, int]) -> tuple[Ints, Ints]:
    """How many to keep of each component, `keep` of each side together."""
    kept_left = most_partners(left, right, keep[0])
    by_degree = kept_left, most_partners(right, kept_left, keep[1])
    return max(by_degree, by_prices(left, right, keep), key=_joined)


def by_prices(left: Ints, right: Ints, keep: tuple[int, int]) -> tuple[Ints, Ints]:
    """The whole components of the fractional optimum with the best of what is left of it, or one
    of its components alone; then each side in turn the best for the other.

    The fractional optimum has at most two components in part, shares z and z' of them, with values
    v and v'. It is W + z v + z' v', W being that of the whole ones. In the same room whole
    components and parts of both sides of the two give W + z^2 v + z'^2 v', and each of the two has
    room alone. If the larger value of the two is less than half, then
    W > 2 max(v, v') - z v - z' v', and as z - z^2 is never above 1/4, the first choice is at least
    half.
    """
    prices = Prices.of(left, right, keep)
    m, n = np.minimum(left, keep[0]), np.minimum(right, keep[1])
    none = np.zeros_like(left), np.zeros_like(right)
    choices = [none, _closed((m, n), prices.whole, prices.parts, keep)]
    for part in prices.parts:
        choices.append(_closed((m, n), np.array([], np.int64), (part,), keep))
    kept_left, kept_right = max(choices, key=_joined)
    joined = -1
    while (found := _joined((kept_left, kept_right))) > joined:
        joined = found
        kept_left = most_partners(left, kept_right, keep[0])
        kept_right = most_partners(right, kept_left, keep[1])
    return kept_left, kept_right


def most_partners(there: Ints, partners: Ints, keep: int) -> Ints:
    """How many tuples of each key to keep of one side: those with the most partners."""
    order = np.argsort(-partners, kind="stable")
    counts = there[order]
    kept = np.zeros_like(there)
    kept[order] = np.clip(keep - (np.cumsum(counts) - counts), 0, counts)
    return kept


def _closed(
    sides: tuple[Ints, Ints], whole: Ints, parts: tuple[int, ...], keep: tuple[int, int]
) -> tuple[Ints, Ints]:
    """These components whole, and one or two others in the room that they leave. Pairs grow
    linearly with each side of a component, so an end of what is possible is best for it."""
    choices = []
    for ends in ((0, 0), (0, 1), (1, 0), (1, 1)):
        kept = np.zeros_like(sides[0]), np.zeros_like(sides[1])
        for side, end in enumerate(ends):
            kept[side][whole] = sides[side][whole]
            room = keep[side] - int(kept[side].sum())
            for part in parts if end else reversed(parts):
                kept[side][part] = min(room, int(sides[side][part]))
                room -= int(kept[side][part])
        choices.append(kept)
    return max(choices, key=_joined)


def _joined(kept: tuple[Ints, Ints]) -> int:
    return int((kept[0] * kept[1]).sum())
