"""What a kept tuple of each side is worth: the prices of the fractional optimum for two sides.

If a component could be kept to a share z of both sides for z * m * n pairs, the best choice would
be a linear program with two constraints, one for each side. Its optimum has at most two shares
that are neither 0 nor 1, and the prices of its constraints bound what any choice gives: for prices
a, b >= 0

    joined <= a * keep_left + b * keep_right + sum of max(0, m * n - a * m - b * n)

since of a component the best at prices is one of its corners. That holds for all prices, so
rounding in the program cannot make the bound wrong."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.extras import extra
from penstock.lab.static.components import Ints

__all__ = ["Prices"]


class Prices(NamedTuple):
    """`whole` and `parts` are components; at most two are kept in part."""

    left: float
    right: float
    whole: Ints
    parts: tuple[int, ...]

    @classmethod
    def of(cls, left: Ints, right: Ints, keep: tuple[int, int]) -> Prices:
        """By a simplex method, so that the optimum is a corner. No component is wider than what
        is kept of its side."""
        with extra("lab", "a bound for two sides of a static join"):
            from scipy.optimize import linprog

        m, n = np.minimum(left, keep[0]), np.minimum(right, keep[1])
        useful = np.flatnonzero((m > 0) & (n > 0))
        if not len(useful):
            return cls(0.0, 0.0, useful, ())
        sizes = np.stack([m[useful], n[useful]]).astype(np.float64)
        # Sizes and values as parts of one: the program's tolerances are absolute.
        scale = np.maximum(np.array(keep, np.float64), 1)
        values = sizes[0] * sizes[1]
        found = linprog(
            -values / values.max(),
            A_ub=sizes / scale[:, None],
            b_ub=np.array(keep) / scale,
            bounds=(0, 1),
            method="highs-ds",
        )
        prices = np.maximum(-found.ineqlin.marginals, 0) * values.max() / scale
        order = np.argsort(-found.x, kind="stable")
        fits = np.flatnonzero(
            (found.x[order] > 1 - 1e-6)
            & (np.cumsum(m[useful[order]]) <= keep[0])
            & (np.cumsum(n[useful[order]]) <= keep[1])
        )
        whole, rest = order[: len(fits)], order[len(fits) :]
        parts = [int(useful[one]) for one in rest[:2] if found.x[one] > 0]
        return cls(float(prices[0]), float(prices[1]), useful[whole], tuple(parts))
