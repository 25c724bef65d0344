"""Weights from measurements: non-negative least squares, by relative error.

A cost is a sum of counts times weights, so weights are found by least squares. Every point is
divided by what was measured there: a window of ten tuples counts as much as one of 100,000. No
weight can be below zero, for none could be explained. A count that is the same at every point
cannot be separated from a fixed part, and the fixed part is left out then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

__all__ = ["Fit", "fitted"]

_Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """weights: of each count. predicted: at each point. error: the relative error of each, below
    zero where too little is predicted. r_squared: of the costs as they are. is_varied: whether any
    count differs from point to point."""

    weights: tuple[float, ...]
    predicted: tuple[float, ...]
    error: tuple[float, ...]
    r_squared: float
    is_varied: bool

    @property
    def worst(self) -> float:
        """The greatest relative error, whichever way."""
        return max(map(abs, self.error))

    @property
    def usual(self) -> float:
        """The relative error that half of the points keep within."""
        return float(np.median(np.abs(self.error)))

    @property
    def loss(self) -> float:
        """The sum of squares that was made as small as can be."""
        return float(np.sum(np.square(self.error)))


def fitted(counts: Sequence[Sequence[float]], measured: Sequence[float]) -> Fit:
    """The weights that explain best what was measured.

    counts: of each point. The first is what is fixed, and the second is kept if it is the same
    everywhere; so no two of the rest may be.
    """
    table: _Numbers = np.array(counts, np.float64)
    costs: _Numbers = np.array(measured, np.float64)
    used = np.ones(table.shape[1], np.bool_)
    used[0] = bool(np.ptp(table[:, 1]) > 0)
    used &= (table > 0).any(axis=0)
    weights = np.zeros(table.shape[1])
    weights[used] = _not_below_zero(table[:, used] / costs[:, None])
    predicted = table @ weights
    spread = float(np.sum(np.square(costs - costs.mean())))
    missed = float(np.sum(np.square(costs - predicted)))
    r_squared = 1 - missed / spread if spread > 0 else float(missed == 0)
    return Fit(
        tuple(weights.tolist()),
        tuple(predicted.tolist()),
        tuple((predicted / costs - 1).tolist()),
        r_squared,
        bool(np.ptp(table[:, used], axis=0).any()),
    )


def _not_below_zero(shares: _Numbers) -> _Numbers:
    """The weights, none below zero, whose sum of shares is the nearest to one at all points.

    Those above zero are what least squares gives for their columns alone. There are three columns
    at most, so all choices of columns are tried.
    """
    points, columns = shares.shape
    best, least = np.zeros(columns), float(points)
    for size in range(1, columns + 1):
        for chosen in map(list, combinations(range(columns), size)):
            found = np.linalg.lstsq(shares[:, chosen], np.ones(points))[0]
            missed = float(np.sum(np.square(shares[:, chosen] @ found - 1)))
            if found.min() >= 0 and missed < least:
                best, least = np.zeros(columns), missed
                best[chosen] = found
    return best
