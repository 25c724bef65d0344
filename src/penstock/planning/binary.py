"""What a join of two streams costs, by the structures its windows are kept in (Kang et al.).

The direction from left to right is what it costs to have the right window: arrivals of the left
stream probe it, its own are inserted, and as many removed. It does not depend on what the left
window is kept in, so any two structures may be combined. HN of the paper is hash on the left window
and a scan of the right one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from penstock.errors import PlanError
from penstock.planning.costs import Cost, Costing
from penstock.planning.touched import Structure
from penstock.planning.weights import Weights, weights_of

__all__ = ["BinaryOptions", "Pair", "binary_breakdown", "binary_cost"]

Pair = tuple[float, float]


class BinaryOptions(TypedDict, total=False):
    """How a join is treated, and costed: the options of `binary_cost`, to be handed on."""

    weights: str | Weights
    bucket: float | Pair
    node: int
    expire: str
    model: str
    interval: float | None
    distinct: Sequence[float] | None


def _both(value: float | Pair, what: str) -> Pair:
    if not isinstance(value, tuple | list):
        return value, value
    if len(value) != 2:
        raise PlanError(f"{what} is one number, or one for each of two windows, got {value!r}")
    return value[0], value[1]


def binary_breakdown(  # noqa: PLR0913  what the paper's formulas are of
    left_index: str,
    right_index: str,
    *,
    left_rate: float,
    right_rate: float,
    left_window: float,
    right_window: float,
    weights: str | Weights = "kang2003",
    bucket: float | Pair = 10,
    node: int = 100,
    expire: str = "eager",
    model: str = "kang2003",
    interval: float | None = None,
    distinct: Sequence[float] | None = None,
) -> Cost:
    """The cost per unit time of a join, towards the left window and towards the right one.

    left_index, right_index: 'scan', 'hash', 'buckets', 'bplus_tree' or 't_tree'. Windows are in
    tuples (a window of time T holds rate * T); one of 0 gets no memory, and the join is one-way.
    bucket: tuples for each bucket, one number or one for each window. node: entries of a node.
    expire: 'eager', 'on_probe', or 'periodic', once in an interval (one unit of time if not given).
    distinct: keys of each window, by which the model 'penstock' knows what a probe finds; without,
    one for each bucket.
    """
    buckets = _both(bucket, "bucket")
    structures = (
        Structure(left_index, left_window, buckets[0], node),
        Structure(right_index, right_window, buckets[1], node),
    )
    if distinct is None:
        distinct = tuple(max(each.tuples / each.bucket, 1.0) for each in structures)
    costing = Costing(
        (left_rate, right_rate),
        structures,
        tuple(distinct),
        weights_of(weights),
        model=model,
        expire=expire,
        interval=interval,
    )
    return costing.of_orders(((1,), (0,)))


def binary_cost(  # noqa: PLR0913  given in full, as the papers' formulas are
    left_index: str,
    right_index: str,
    *,
    left_rate: float,
    right_rate: float,
    left_window: float,
    right_window: float,
    weights: str | Weights = "kang2003",
    bucket: float | Pair = 10,
    node: int = 100,
    expire: str = "eager",
    model: str = "kang2003",
    interval: float | None = None,
    distinct: Sequence[float] | None = None,
) -> float:
    """The cost per unit time of a join, in the unit of the weights: all of `binary_breakdown`."""
    return binary_breakdown(
        left_index,
        right_index,
        left_rate=left_rate,
        right_rate=right_rate,
        left_window=left_window,
        right_window=right_window,
        weights=weights,
        bucket=bucket,
        node=node,
        expire=expire,
        model=model,
        interval=interval,
        distinct=distinct,
    ).total
