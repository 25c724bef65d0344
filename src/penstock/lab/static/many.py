"""`truncate_many`: three relations and more, each cut by itself.

The best choice is NP-hard for three relations and more. What the paper offers is a bound: drop
from each relation the tuples that are in the fewest results, whatever is dropped from the others.
If that alone loses p_i results for relation i, then any choice loses at least max(p_i), and this
one at most sum(p_i): no more than m times the fewest."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError, PlanError
from penstock.lab.static.components import fill
from penstock.lab.static.counts import Counts, checked_counts, checked_keep, checked_total
from penstock.lab.static.greedy import most_partners

__all__ = ["ManyTruncation", "truncate_many"]


@dataclass(frozen=True)
class ManyTruncation:
    """What is kept of several relations.

    joined: results of the kept tuples, one of each relation. total: results of the whole relations.
    most: no choice joins more than this. kept: by key, how many tuples of each relation.
    """

    joined: int
    total: int
    most: int
    kept: Mapping[Hashable, tuple[int, ...]]

    @property
    def lost(self) -> int:
        """Results of the whole relations that the kept tuples have not: at most as many times
        `total - most` as there are relations."""
        return self.total - self.joined


def truncate_many(
    counts: Sequence[Counts],
    *,
    keep: Sequence[int] | None = None,
    drop: Sequence[int] | None = None,
) -> ManyTruncation:
    """Which tuples to keep of two relations or more that are joined by one key.

    counts: of each relation, how many tuples each key has. keep: how many tuples of each relation
    are kept; or drop: how many are dropped. O(m * c log c) for m relations and c keys.
    """
    relations = list(counts) if isinstance(counts, Sequence) else []
    if len(relations) < 2:
        raise InputError(
            f"counts must be those of two relations or more, got {counts!r}; give a sequence with "
            f"a mapping from keys to numbers of tuples for each"
        )
    names = [f"counts of relation {place}" for place in range(len(relations))]
    keys, columns = checked_counts(relations, names)
    total = checked_total(columns)
    there = [int(column.sum()) for column in columns]
    kept = checked_keep(keep, drop, there, forms=("a number for each relation",))
    if isinstance(kept, int):
        raise PlanError(
            f"several relations are cut each by itself, got {kept:,} tuples to keep of all "
            f"together; give a number for each relation"
        )
    cut, most = [], total
    for place, number in enumerate(kept):
        others = [column for other, column in enumerate(columns) if other != place]
        partners = np.multiply.reduce(others)
        chosen = fill(most_partners(columns[place], partners, number), columns[place], number)
        most = min(most, int((chosen * partners).sum()))
        cut.append(chosen)
    joined = int(np.multiply.reduce(cut).sum())
    by_key = dict(zip(keys, zip(*(each.tolist() for each in cut), strict=True), strict=True))
    return ManyTruncation(joined, total, most, by_key)
