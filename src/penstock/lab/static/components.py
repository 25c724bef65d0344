"""What components K(m, n) of a join graph give when only some of their nodes are kept.

All functions are over whole arrays of components. Where p nodes of one component are kept, as many
of each side as possible is best (Lemma 1 of the paper): that is min(p // 2, m, n) of the smaller
side, and pairs(p) = small * (p - small). From one p to the next it grows by min(p // 2, m, n),
which never falls: pairs(p) is convex in p."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Ints", "Kinds", "bundles", "fill", "grouped", "pairs", "split"]

Ints = npt.NDArray[np.int64]


class Kinds(NamedTuple):
    """Components that are alike, counted: `first` and `second` describe one, `copies` says how many
    there are, and `of` which kind each component is."""

    first: Ints
    second: Ints
    copies: Ints
    of: Ints


def pairs(smaller: Ints | int, nodes: Ints | int) -> Ints:
    """The most pairs of `nodes` nodes, of components whose smaller side is `smaller`.

    There must be as many nodes.
    """
    fewer = np.minimum(smaller, np.asarray(nodes, np.int64) // 2)
    return fewer * (nodes - fewer)


def split(left: int, right: int, nodes: int) -> tuple[int, int]:
    """How many of each side to keep of one component, `nodes` together."""
    fewer = min(left, right, nodes // 2)
    return (fewer, nodes - fewer) if left <= right else (nodes - fewer, fewer)


def grouped(first: Ints, second: Ints) -> Kinds:
    """Kinds of components, in O(c log c)."""
    order = np.lexsort((second, first))
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    of = np.empty(len(order), np.int64)
    of[order] = np.cumsum(new) - 1
    heads = order[new]
    return Kinds(first[heads], second[heads], np.bincount(of, minlength=len(heads)), of)


def bundles(copies: int) -> list[int]:
    """Powers of two and a rest, of which every number from 0 to copies is the sum of some."""
    parts = []
    size = 1
    while copies > 0:
        parts.append(min(size, copies))
        copies -= size
        size *= 2
    return parts


def fill(kept: Ints, there: Ints, number: int) -> Ints:
    """Add tuples, whichever, until `number` are kept. Those that have no partner do no harm."""
    free = there - kept
    before = np.cumsum(free) - free
    return kept + np.clip(number - int(kept.sum()) - before, 0, free)
