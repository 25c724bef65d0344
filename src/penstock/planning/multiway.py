"""What a join of many streams costs by the order in which windows are probed (Golab and Özsu).

A global order is an order of all streams; an arrival of one of them probes the others in that
order. What a window adds to the cost of an order depends on which windows stand before it and not
on how these are ordered, so the best order of n streams is found by going through the 2^n sets of
streams instead of the n! orders, and is exact all the same. Beyond `EXACT_STREAMS` that takes too
long, and the next stream is always the one that adds the least: a good order, not surely the best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Final, TypedDict, Unpack

from penstock.errors import PlanError
from penstock.planning.costs import Cost, Costing
from penstock.planning.touched import Structure, number
from penstock.planning.weights import Weights, weights_of

__all__ = [
    "EXACT_STREAMS", "MultiwayOptions", "best_order", "best_order_of", "cheapest_order",
    "global_orders", "multiway_breakdown", "multiway_cost", "multiway_costing", "order_cost",
]  # fmt: skip

EXACT_STREAMS: Final = 10  # a fifth of a second
_DIGITS: Final = 12  # two orders that differ beyond them cost the same


class MultiwayOptions(TypedDict, total=False):
    """How windows are kept, and the join treated: the options of `multiway_costing`."""

    indexes: str | Sequence[str]
    bucket: float | Sequence[float]
    node: int
    expire: str
    model: str
    interval: float | None


def multiway_costing(  # noqa: PLR0913  what the papers' formulas are of
    *,
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float],
    weights: str | Weights = "tuples",
    indexes: str | Sequence[str] = "scan",
    bucket: float | Sequence[float] = 10,
    node: int = 100,
    expire: str = "eager",
    model: str = "kang2003",
    interval: float | None = None,
) -> Costing:
    """What the costs of all orders are worked out from.

    windows: of each stream, in units of time; one holds rate * window tuples. distinct: keys in
    each window. indexes, bucket: one for all windows, or one for each. The rest is as in
    `binary_cost`.
    """
    streams = len(rates)
    named = [indexes] * streams if isinstance(indexes, str) else list(indexes)
    buckets = list(bucket) if isinstance(bucket, Sequence) else [bucket] * streams
    lengths = {
        "rates": streams,
        "windows": len(windows),
        "distinct": len(distinct),
        "indexes": len(named),
        "bucket": len(buckets),
    }
    if len(set(lengths.values())) > 1:
        raise PlanError(f"every stream needs one of each, got {lengths}")
    structures = tuple(
        Structure(name, number(rate, "a rate") * number(window, "a window"), each, node)
        for name, rate, window, each in zip(named, rates, windows, buckets, strict=True)
    )
    return Costing(
        tuple(rates),
        structures,
        tuple(distinct),
        weights_of(weights),
        model=model,
        expire=expire,
        interval=interval,
    )


def global_orders(order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The order of each origin that follows from a global one: the same, without the origin."""
    return tuple(
        tuple(window for window in order if window != origin) for origin in range(len(order))
    )


def order_cost(costing: Costing, order: Sequence[int]) -> Cost:
    """What a global order costs per unit time, by window."""
    if len(order) != len(costing.streams) or set(order) != set(costing.streams):
        raise PlanError(
            f"an order must name each of the streams 0 to {len(costing.streams) - 1} once, "
            f"got {tuple(order)}"
        )
    return costing.of_orders(global_orders(order))


def multiway_breakdown(
    order: Sequence[int],
    *,
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float],
    weights: str | Weights = "tuples",
    **options: Unpack[MultiwayOptions],
) -> Cost:
    """What a global order costs per unit time, by window. Arguments: see `multiway_costing`."""
    costing = multiway_costing(
        rates=rates,
        windows=windows,
        distinct=distinct,
        weights=weights,
        **options,
    )
    return order_cost(costing, order)


def multiway_cost(
    order: Sequence[int],
    *,
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float],
    weights: str | Weights = "tuples",
    **options: Unpack[MultiwayOptions],
) -> float:
    """What a global order of the streams, numbered from 0, costs per unit time in all."""
    return multiway_breakdown(
        order,
        rates=rates,
        windows=windows,
        distinct=distinct,
        weights=weights,
        **options,
    ).total


def best_order(
    *,
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float],
    weights: str | Weights = "tuples",
    origin: int | None = None,
    **options: Unpack[MultiwayOptions],
) -> tuple[int, ...]:
    """The global order that costs the least; of equals, the one with the lowest numbers first.

    origin: instead, the order of the other streams in which the arrivals of this one are cheapest.
    """
    costing = multiway_costing(
        rates=rates,
        windows=windows,
        distinct=distinct,
        weights=weights,
        **options,
    )
    return best_order_of(costing, origin)


def best_order_of(costing: Costing, origin: int | None = None) -> tuple[int, ...]:
    """`best_order`, when it is known what the costs are of."""
    if origin is None:
        return cheapest_order(tuple(costing.streams), _added_by_all(costing))
    if origin not in costing.streams:
        raise PlanError(
            f"origin must be one of the streams 0 to {len(costing.streams) - 1}, got {origin!r}"
        )
    others = tuple(each for each in costing.streams if each != origin)

    def added(before: Sequence[int], window: int) -> float:
        return costing.probe(window, costing.reached(origin, before, window))

    return cheapest_order(others, added)


_Added = Callable[[Sequence[int], int], float]


def _added_by_all(costing: Costing) -> _Added:
    def added(before: Sequence[int], window: int) -> float:
        """What a window costs that stands behind these in the global order."""
        visits = []
        for origin in costing.streams:
            if origin != window:
                others = [each for each in before if each != origin]
                visits.append((origin, costing.reached(origin, others, window)))
        return costing.direction(window, visits).total

    return added


def cheapest_order(
    streams: tuple[int, ...],
    added: Callable[[Sequence[int], int], float],
    exact: int = EXACT_STREAMS,
) -> tuple[int, ...]:
    """The cheapest order of these; beyond `exact` of them, a cheap one. added: what a stream costs
    behind some others."""
    if len(streams) > exact:
        return _greedy(streams, added)
    # The best order of each set of streams, as the front of a longer one: the smaller sets first.
    best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {frozenset(): (0.0, ())}
    for size in range(1, len(streams) + 1):
        for members in map(frozenset, combinations(streams, size)):
            fronts = []
            for last in members:
                cost, front = best[members - {last}]
                fronts.append((rounded(cost + added(front, last)), (*front, last)))
            best[members] = min(fronts)
    return best[frozenset(streams)][1]


def _greedy(streams: tuple[int, ...], added: _Added) -> tuple[int, ...]:
    order: tuple[int, ...] = ()
    while len(order) < len(streams):
        left = [each for each in streams if each not in order]
        order = (*order, min(left, key=lambda each: (rounded(added(order, each)), each)))
    return order


def rounded(cost: float) -> float:
    """Without the digits in which what costs the same may differ."""
    return float(f"{cost:.{_DIGITS}g}")
