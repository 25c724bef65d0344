"""Match and compare (MAC): the cheapest edges that reach every row of both answers.

The rows are the nodes of a complete bipartite graph whose edges weigh what the distance says. A
cover is a set of edges with one at least at every node. The cheapest comes from an assignment: left
alone, each node would take its cheapest edge; an edge that serves both its ends saves what these
cost, less what it costs itself. So disjoint edges that save the most are taken, and the nodes that
they do not reach take their cheapest edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from penstock.errors import InputError
from penstock.extras import extra
from penstock.lab.measures.answers import paired
from penstock.lab.measures.distances import (
    MOST_PAIRS,
    Distance,
    Floats,
    check_pairs,
    distances_of,
    weights,
)

__all__ = ["mac"]

_FEWEST: Final = 1e-9  # of the most that an edge saves: what all edges together may be favoured by

Value = Callable[[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]], float]


def mac(
    exact: Any,
    approximate: Any,
    distance: Distance,
    *,
    value: Value | None = None,
    columns: Sequence[str] | None = None,
    most_pairs: int = MOST_PAIRS,
) -> float:
    """Match and compare: each row is matched with one of the other answer at least, so that the
    distances have the least sum, and that is the more the more matches the same row has.

    0 and more, in units of the distance. 0 when, by the distance, both have the same rows, however
    often: so for equal bags, empty ones included. Infinite when one is empty and the other is not,
    for then there is nothing to match. A missing row costs its distance from the
    nearest one that came out, so unlike `earth_movers` it separates good subsets from bad ones.

    The paper only says that it is a function of the weights of the edges in the cheapest cover, and
    of how many edges there are at each row. Here it is the sum over the edges of weight * edges at
    that end which has more; `value` is another function, of the weights of the edges of the cover,
    of the edges at their exact row, and at their approximate row, as arrays. Of covers that cost
    the same (to a part in 10^9), one with the fewest edges counts. Often there are some: by names
    it is always the same one, by a function it may be another one when the rows come in another
    order. The sum of weights does not depend on it:
    value=lambda weight, at_exact, at_approximate: weight.sum().

    exact, approximate, distance, columns, most_pairs: as in `earth_movers`.
    n and m >= n rows: O(n² m) in time, O(n m) in memory.
    """
    answers = paired(exact, approximate, columns)
    rows = len(answers.exact), len(answers.approximate)
    if not min(rows):
        weights(distance, answers)  # is checked all the same
        return inf if max(rows) else 0.0
    check_pairs(*rows, most_pairs)
    distances = distances_of(answers, distance)
    at = _cover(distances)
    ends = [np.bincount(nodes)[nodes] for nodes in at]
    if value is None:
        return float((distances[at] * np.maximum(*ends)).sum())
    told = float(value(distances[at], *ends))
    if np.isnan(told):
        raise InputError("the function given as value= gave NaN; it must give a number")
    return told


def _cover(distances: Floats) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The edges of the cheapest cover, as the rows at their ends."""
    with extra("lab", "mac"):
        from scipy.optimize import linear_sum_assignment

    nearest = distances.argmin(axis=1), distances.argmin(axis=0)
    alone = distances.min(axis=1), distances.min(axis=0)
    # What an edge costs more than the two that it would replace; in place, for it is large.
    excess = distances - alone[0][:, None]
    excess -= alone[1]
    serves = excess <= 0
    # A little less for each edge: among covers of one cost it makes that with the fewest edges, in
    # which none could be left out.
    favour = -float(excess.min()) * _FEWEST / min(excess.shape)
    excess -= favour or 1.0
    excess[~serves] = 0.0
    left, right = linear_sum_assignment(excess)
    kept = serves[left, right]
    left, right = left[kept], right[kept]
    free_left = np.setdiff1d(np.arange(excess.shape[0]), left)
    free_right = np.setdiff1d(np.arange(excess.shape[1]), right)
    return (
        np.concatenate([left, free_left, nearest[1][free_right]]),
        np.concatenate([right, nearest[0][free_left], free_right]),
    )
