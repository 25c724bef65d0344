"""`truncate`: of two relations, how many tuples of each key to keep."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.errors import PlanError
from penstock.lab.static.components import Ints, fill
from penstock.lab.static.counts import (
    Counts,
    Number,
    checked_counts,
    checked_keep,
    checked_total,
)
from penstock.lab.static.greedy import by_average_degree, by_node_degree
from penstock.lab.static.sides import best_of_sides
from penstock.lab.static.total import best_of_total

__all__ = ["METHODS", "Truncation", "check_options", "truncate", "truncated"]

_Method = Callable[[Ints, Ints, Any], tuple[Ints, Ints]]

# By method: for a number of tuples of both sides together, and for a number of each.
METHODS: Final[Mapping[str, tuple[_Method | None, _Method | None]]] = {
    "optimal": (best_of_total, best_of_sides),
    "average_degree": (by_average_degree, None),
    "node_degree": (None, by_node_degree),
}
_ANY_NUMBER: Final = 1 << 64
_FORMS: Final = ("k of both sides together", "(k_left, k_right), so many of each side")


@dataclass(frozen=True)
class Truncation:
    """What is kept of two relations.

    joined: pairs that the kept tuples join to. total: pairs of the whole relations. kept: by key,
    how many tuples of the left and of the right side. method: what chose them.
    """

    joined: int
    total: int
    kept: Mapping[Hashable, tuple[int, int]]
    method: str

    @property
    def lost(self) -> int:
        """Pairs that the whole relations have and the kept tuples have not."""
        return self.total - self.joined


def truncate(
    left_counts: Counts,
    right_counts: Counts,
    *,
    keep: Number | None = None,
    drop: Number | None = None,
    method: str = "optimal",
) -> Truncation:
    """Which tuples to keep of two relations, so that the most pairs of equal keys are joined.

    left_counts, right_counts: how many tuples each key has, as mappings from keys, or as sequences
    of one length. keep: how many tuples of both together, or (left, right), how many of each; or
    drop: how many to drop. As many as asked for are kept, even if some of them join nothing.

    method: 'optimal', the most pairs there can be. 'average_degree', for a number of both together:
    at least half as many, and at most twice as many lost; it takes O(c log c) for c keys.
    'node_degree', the same for a number of each.
    """
    keys, (left, right) = checked_counts(
        (left_counts, right_counts), ("left_counts", "right_counts")
    )
    return truncated(keys, (left, right), keep=keep, drop=drop, method=method)


def truncated(
    keys: Sequence[Hashable],
    sides: tuple[Ints, Ints],
    *,
    keep: Number | None,
    drop: Number | None,
    method: str,
) -> Truncation:
    """The same for counts that have been checked, or made."""
    left, right = sides
    total = checked_total(sides)
    kept = checked_keep(keep, drop, (int(left.sum()), int(right.sum())), forms=_FORMS)
    chosen = _chosen(method, kept, keep if drop is None else drop)
    kept_left, kept_right = chosen(left, right, kept)
    if isinstance(kept, int):
        kept_left = fill(kept_left, left, min(kept - int(kept_right.sum()), int(left.sum())))
        kept_right = fill(kept_right, right, kept - int(kept_left.sum()))
    else:
        kept_left, kept_right = fill(kept_left, left, kept[0]), fill(kept_right, right, kept[1])
    by_key = dict(zip(keys, zip(kept_left.tolist(), kept_right.tolist(), strict=True), strict=True))
    return Truncation(int((kept_left * kept_right).sum()), total, by_key, method)


def check_options(keep: Number | None, drop: Number | None, method: str) -> None:
    """Refuses what no relations could be truncated by, before they are counted."""
    kept = checked_keep(keep, drop, (_ANY_NUMBER, _ANY_NUMBER), forms=_FORMS)
    _chosen(method, kept, keep if drop is None else drop)


def _chosen(method: str, kept: int | tuple[int, ...], given: Number | None) -> _Method:
    if not isinstance(method, str) or method not in METHODS:
        raise PlanError(
            f"method must be one of {tuple(METHODS)}, got {method!r}; choose one of them"
        )
    form = 0 if isinstance(kept, int) else 1
    chosen = METHODS[method][form]
    if chosen is None:
        fitting = tuple(name for name, forms in METHODS.items() if forms[form] is not None)
        raise PlanError(
            f"method {method!r} is for {_FORMS[1 - form]}, got {given!r}; "
            f"choose one of {fitting}, or give {_FORMS[1 - form]}"
        )
    return chosen
