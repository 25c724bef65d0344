"""The earth mover's distance: the least work that turns one answer into a part of the other.

Every row of the smaller answer is moved to a row of the larger one, each to another; the work is
the sum of the distances. By named columns it is L1, for which the triangle inequality holds: so
rows that both have stay where they are, and only the rest is matched. In one column the rest is
matched in order; else by scipy's assignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.errors import InputError
from penstock.extras import extra
from penstock.lab.measures.answers import paired
from penstock.lab.measures.distances import (
    MOST_PAIRS,
    Distance,
    Floats,
    check_pairs,
    city_block,
    distances_of,
    points,
    weights,
)

__all__ = ["earth_movers"]

_STEPS_A_PAIR: Final = 100  # in one column a pair takes no memory, and little time


def earth_movers(
    exact: Any,
    approximate: Any,
    distance: Distance,
    *,
    columns: Sequence[str] | None = None,
    most_pairs: int = MOST_PAIRS,
) -> float:
    """The work to move every row of the smaller answer onto a row of the larger one, each onto
    another: the least sum of distances there is.

    0 and more, in units of the distance. 0 when, by the distance, one answer is a part of the
    other: so for all that shedding gives, for equal bags, and when one is empty. Symmetric, if the
    distance is. Over the number of rows moved it is a mean; for answers of one size and one numeric
    column that is scipy's `wasserstein_distance`.

    exact, approximate, columns: as in `compare`.
    distance: the name of a numeric column, several, or a mapping of names to weights: the weighted
        sum of differences, times in microseconds. Or a function of the columns of both answers that
        gives the distances of all pairs: lambda e, a: abs(e["x"] - a["x"]). Rows of sequences have
        0, 1, 2 for names.
    most_pairs: where more pairs of rows are left to be matched, it is refused.

    n rows to be matched with m >= n: O(n² m) in time, O(n m) in memory. By names, rows that both
    answers have do not count among them. In one column O(n (m - n + 1)) and O(m), and a hundred
    times `most_pairs` are allowed.
    """
    answers = paired(exact, approximate, columns)
    rows = len(answers.exact), len(answers.approximate)
    weighted = weights(distance, answers)
    if not min(rows):
        return 0.0
    if weighted is not None:
        first, second = _differing(*points(answers, weighted))
        if not len(first):
            return 0.0
        if len(weighted) == 1:
            return _in_order(first[:, 0], second[:, 0], most_pairs * _STEPS_A_PAIR)
        check_pairs(len(first), len(second), most_pairs)
        return _assigned(city_block(first, second))
    check_pairs(*rows, most_pairs)
    return _assigned(distances_of(answers, distance))


def _differing(exact: Floats, approximate: Floats) -> tuple[Floats, Floats]:
    """The points that are left when those in both are taken out; of the smaller answer first."""
    both = np.concatenate([exact, approximate])
    if both.shape[1] == 1:  # many times faster
        values, number = np.unique(both[:, 0], return_inverse=True)
        distinct = values[:, None]
    else:
        distinct, number = np.unique(both, axis=0, return_inverse=True)
    counts = np.bincount(number[: len(exact)], minlength=len(distinct)) - np.bincount(
        number[len(exact) :], minlength=len(distinct)
    )
    if len(exact) > len(approximate):
        counts = -counts
    return (
        np.repeat(distinct, np.maximum(counts, 0), axis=0),
        np.repeat(distinct, np.maximum(-counts, 0), axis=0),
    )


def _in_order(few: Floats, many: Floats, most_steps: int) -> float:
    """In one dimension moves never need to cross. cost[k]: the least for those of `few` so far,
    when k of `many` have been passed over."""
    few, many = np.sort(few), np.sort(many)
    spare = len(many) - len(few)
    if not spare:
        return float(np.abs(few - many).sum())
    if len(few) * (spare + 1) > most_steps:
        raise InputError(
            f"{len(few):,} and {len(many):,} rows that differ take {len(few) * (spare + 1):,} "
            f"steps to match, and {most_steps:,} are allowed; compare samples of the answers, or "
            "raise most_pairs"
        )
    cost = np.zeros(spare + 1)
    for place, value in enumerate(few.tolist()):
        cost += np.abs(many[place : place + spare + 1] - value)
        np.minimum.accumulate(cost, out=cost)
    return float(cost[-1])


def _assigned(distances: Floats) -> float:
    with extra("lab", "earth_movers"):
        from scipy.optimize import linear_sum_assignment

    return float(distances[linear_sum_assignment(distances)].sum())
