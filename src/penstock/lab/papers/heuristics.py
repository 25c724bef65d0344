"""The papers' rules for an order of many streams, to be seen beside the best one.

Golab and Özsu order without looking at costs:

    ascending   where all windows have the same number of distinct keys: the smallest window first,
                or with hash tables the smallest buckets
    selective   otherwise: the two streams whose join is the smallest, the faster of them first,
                and then always the stream that leaves the fewest results
    hybrid      where some windows are hashed and others scanned: the hashed ones in the inner
                loops, and each part by the rules above

Re-evaluation in intervals (lazy) goes by the same rules while intervals are short. Which of two
streams comes first in the most selective join is not said; the faster one does in the first of the
paper's examples. In the second the rules miss the best order by 3 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Final

from penstock.errors import PlanError
from penstock.planning.costs import Costing
from penstock.planning.multiway import best_order_of, order_cost

__all__ = ["LISTED_STREAMS", "OrderCosts", "all_orders", "compare_orders", "heuristic_order"]

LISTED_STREAMS: Final = 8  # 40,320 orders


@dataclass(frozen=True)
class OrderCosts:
    """An order by heuristic and the best one, with their costs per unit time."""

    heuristic: tuple[int, ...]
    heuristic_cost: float
    best: tuple[int, ...]
    best_cost: float


def heuristic_order(costing: Costing) -> tuple[int, ...]:
    """The global order by the papers' rules."""
    scanned = [each for each in costing.streams if costing.structures[each].index == "scan"]
    indexed = [each for each in costing.streams if each not in scanned]
    return (*_ordered(costing, scanned), *_ordered(costing, indexed))


def compare_orders(costing: Costing) -> OrderCosts:
    """What the heuristic gives away."""
    heuristic, best = heuristic_order(costing), best_order_of(costing)
    return OrderCosts(
        heuristic, order_cost(costing, heuristic).total, best, order_cost(costing, best).total
    )


def all_orders(costing: Costing) -> list[tuple[float, tuple[int, ...]]]:
    """Every global order with its cost, the cheapest first."""
    if len(costing.streams) > LISTED_STREAMS:
        raise PlanError(
            f"{len(costing.streams)} streams have too many orders to list; "
            f"up to {LISTED_STREAMS} can be, and best_order takes more"
        )
    return sorted(
        (order_cost(costing, order).total, order) for order in permutations(costing.streams)
    )


def _ordered(costing: Costing, streams: Sequence[int]) -> tuple[int, ...]:
    if len(streams) < 2:
        return tuple(streams)
    if len({costing.distinct[each] for each in streams}) == 1:
        return tuple(sorted(streams, key=lambda each: (_size(costing, each), each)))
    return _selective(costing, streams)


def _size(costing: Costing, stream: int) -> float:
    """Tuples that a probe of a window looks at: all of it, or a bucket."""
    structure = costing.structures[stream]
    return structure.tuples if structure.index == "scan" else structure.bucket


def _selective(costing: Costing, streams: Sequence[int]) -> tuple[int, ...]:
    def results(one: int, other: int) -> float:
        """Of the join of two windows."""
        tuples = costing.structures[one].tuples * costing.structures[other].tuples
        return tuples / max(costing.distinct[one], costing.distinct[other])

    pair = min(combinations(streams, 2), key=lambda pair: (results(*pair), pair))
    order = sorted(pair, key=lambda each: (-costing.rates[each], each))
    while len(order) < len(streams):
        keys = min(costing.distinct[each] for each in order)
        order.append(
            min(
                (each for each in streams if each not in order),
                key=lambda each: (
                    costing.structures[each].tuples / max(keys, costing.distinct[each]),
                    each,
                ),
            )
        )
    return tuple(order)
