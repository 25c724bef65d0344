"""The components of one kind that are neither whole nor empty: what they can be, and what it costs.

At most one component has its left side in part, (x, n), and at most one its right, (m, y); or one
has both in part, (x, y). An option is one of these, two of them, or none, as the difference to the
corner that is best at the prices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.lab.static.components import Ints

__all__ = ["Kind", "PartOptions", "inside", "options_of"]

_LEFT, _RIGHT = 1, 2


class Kind(NamedTuple):
    """Components K(m, n), `copies` of them, all whole at the prices or all empty."""

    m: int
    n: int
    copies: int
    whole: bool


class PartOptions(NamedTuple):
    """One row each, in order of their losses; the first is none. `used`: how many copies are in
    part; the first keeps (x, y), a second one (m, second)."""

    flag: Ints
    used: Ints
    left: Ints
    right: Ints
    joined: Ints
    loss: npt.NDArray[np.float64]
    x: Ints
    y: Ints
    second: Ints

    def special(self, option: int, m: int) -> list[tuple[int, int]]:
        """What is kept of the copies that are in part, of components of m left tuples."""
        used = int(self.used[option])
        copies = [(int(self.x[option]), int(self.y[option])), (m, int(self.second[option]))]
        return copies[:used]


def options_of(
    kind: Kind, prices: tuple[float, float], gap: float, limit: int
) -> tuple[PartOptions, bool]:
    """All options with a loss up to `gap`; and whether some were left out for the limit."""
    m, n = kind.m, kind.n
    corner = max(0.0, m * n - prices[0] * m - prices[1] * n)
    none = np.zeros(1, np.int64)
    inner_left, inner_right = np.arange(1, m), np.arange(1, n)
    x, y, cut = inside((m, n), prices, corner - gap, limit * 16)
    groups = [
        (0, 0, none, none, none),
        (_LEFT, 1, inner_left, np.full(m - 1, n), np.zeros(m - 1, np.int64)),
        (_RIGHT, 1, np.full(n - 1, m), inner_right, np.zeros(n - 1, np.int64)),
        (_LEFT | _RIGHT, 1, x, y, np.zeros_like(x)),
    ]
    if kind.copies > 1:
        left_loss = corner - (inner_left * n - prices[0] * inner_left - prices[1] * n)
        right_loss = corner - (inner_right * m - prices[0] * m - prices[1] * inner_right)
        lefts, rights = inner_left[left_loss <= gap], inner_right[right_loss <= gap]
        cut |= len(lefts) * len(rights) > limit
        # Those with the least loss are at an end of each.
        lefts, rights = _ends(lefts, limit), _ends(rights, limit)
        x, second = np.repeat(lefts, len(rights)), np.tile(rights, len(lefts))
        groups.append((_LEFT | _RIGHT, 2, x, np.full(len(x), n), second))

    columns = []
    for flag, used, xs, ys, seconds in groups:
        one = 1 if kind.whole else 0
        joined = xs * ys + seconds * m - used * one * m * n
        left = xs + (used == 2) * m - used * one * m
        right = ys + seconds - used * one * n
        loss = np.maximum(prices[0] * left + prices[1] * right - joined, 0.0)
        near = loss <= gap
        rows = [np.full(len(xs), flag), np.full(len(xs), used), left, right, joined, loss]
        columns.append([column[near] for column in (*rows, xs, ys, seconds)])
    joint = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
    order = np.argsort(joint[5], kind="stable")
    cut |= len(order) > limit
    first = [column[order[:limit]] for column in joint]
    return PartOptions(*first), cut


def inside(
    sides: tuple[int, int], prices: tuple[float, float], least: float, limit: int
) -> tuple[Ints, Ints, bool]:
    """All (x, y) inside the component whose worth at the prices is at least so much, row by row:
    in a row it is linear, so they are at one end of it, or all of it."""
    x = np.arange(1, sides[0])
    most = sides[1] - 1
    slope = x - prices[1]
    # slope * y >= least + prices[0] * x
    wanted = least + prices[0] * x
    with np.errstate(divide="ignore", invalid="ignore"):
        edge = wanted / slope
    flat = np.where(wanted <= 0, most, 0)
    up = np.where(slope > 0, np.clip(most - np.ceil(edge - 1e-6) + 1, 0, most), flat)
    number = np.where(slope < 0, np.clip(np.floor(edge + 1e-6), 0, most), up)
    number = np.nan_to_num(number).astype(np.int64)
    ends = np.cumsum(number)
    cut = len(ends) > 0 and bool(ends[-1] > limit)
    if cut:
        number = np.where(ends > limit, 0, number)
    xs = np.repeat(x, number)
    place = np.arange(len(xs)) - np.repeat(np.cumsum(number) - number, number)
    ys = np.where(np.repeat(slope, number) < 0, place + 1, most - place)
    return xs, ys, cut


def _ends(values: Ints, limit: int) -> Ints:
    half = max(int(limit**0.5) // 2, 1)
    return values if len(values) <= 2 * half else np.concatenate([values[:half], values[-half:]])
