"""What the streams of a query bring: the numbers that a plan's cost is worked out from.

A probe comes to a window with tuples of some streams chosen. How many combinations of these there
are, and what it finds next, follows from shares: the part of all pairs of two streams' tuples that
one link lets through. They do not depend on the order in which streams were chosen.

Columns that are equal in several streams are one link of all of them: what equals one tuple of a
combination equals all. So of k streams k - 1 pairs count, those with the largest shares that
connect them. With 1 / max(v_i, v_j) for numbers of keys v this is Golab and Özsu's model, which
divides by max(d, v_j), d being the least number of keys so far: either way by all numbers of keys
but the least. Links by order multiply.

A selectivity that is given of two streams is of all that links them: each of their links has an
equal part of it. It may also be of what no index can serve; then a path finds what its number of
keys says, and the selectivity says how much is left.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations, permutations

from penstock.errors import PlanError
from penstock.model.access import Equal
from penstock.model.query import Query
from penstock.model.steps import Step
from penstock.model.workload.workload import Workload, path_columns
from penstock.planning.assumed import ROW_BYTES, SILENT

__all__ = ["Load", "Shares", "load_of"]

Pair = tuple[int, int]


@dataclass(frozen=True)
class Shares:
    """Parts of pairs, in both directions. found: by a group's columns. left: by a group, when all
    that is known of the pair is put to account. relations: by each link of order. others: of
    streams that nothing links, by predicates that no index can serve."""

    found: dict[tuple[int, int, int], float]
    left: dict[tuple[int, int, int], float]
    relations: tuple[float, ...]
    others: dict[Pair, float]


@dataclass(frozen=True)
class Load:
    """Of each stream. rates: tuples a second that enter its window. probe_rates: those that also
    probe the others. tuples: in its window. counts_rows: whether that is so at any rate.
    row_bytes: kept of one of them."""

    query: Query
    rates: tuple[float, ...]
    probe_rates: tuple[float, ...]
    tuples: tuple[float, ...]
    counts_rows: tuple[bool, ...]
    row_bytes: tuple[float, ...]
    shares: Shares = field(repr=False)

    def keys(self, stream: int, word: int) -> float:
        """How many different values a path of a window has, at most; where it is not known, each
        tuple has its own."""
        path, most = self.query.access.words[stream][word], max(self.tuples[stream], 1.0)
        if not isinstance(path, Equal):
            return most
        others = self.query.access.groups[path.group].keys() - {stream}
        shares = [self.shares.found[path.group, other, stream] for other in others]
        return min([1 / share for share in shares if share > 0] + [most])

    def share(self, chosen: frozenset[int]) -> float:
        """The part of all combinations of these streams' tuples that match."""
        share = 1.0
        for number, group in enumerate(self.query.access.groups):
            share *= self._spanned(number, sorted(chosen & group.keys()))
        for number, relation in enumerate(self.query.access.relations):
            if {relation.left[0], relation.right[0]} <= chosen:
                share *= self.shares.relations[number]
        for pair in combinations(sorted(chosen), 2):
            share *= self.shares.others.get(pair, 1.0)
        return share

    def _spanned(self, group: int, streams: list[int]) -> float:
        """The shares that connect streams of a group: always the next one with the largest."""
        share, reached, left = 1.0, streams[:1], streams[1:]
        while left:
            largest, new = max(
                (self.shares.left[group, old, each], each) for old in reached for each in left
            )
            share *= largest
            reached.append(new)
            left.remove(new)
        return share

    def found(self, step: Step, chosen: Collection[int]) -> float:
        """The tuples that a step's path gives for a combination of these streams."""
        window = step.window
        if step.word is None:
            return self.tuples[window]
        word = self.query.access.words[window][step.word]
        if isinstance(word, Equal):
            group = self.query.access.groups[word.group]
            linked = [each for each in chosen if each in group]
            share = max(self.shares.found[word.group, each, window] for each in linked)
        else:
            share = 1.0
            for number, relation in enumerate(self.query.access.relations):
                ends = {relation.left, relation.right}
                if (window, step.word) in ends and any(end[0] in chosen for end in ends):
                    share *= self.shares.relations[number]
        return self.tuples[window] * share


def load_of(query: Query, workload: Workload) -> Load:
    """The numbers of a query under a workload, when nothing is dropped."""
    workload.check(query)
    rates = tuple(workload.rate(name) for name in query.names)
    # A plan lasts, and a silent stream may come back: then a scan chosen for it would cost much.
    silent = SILENT * max(rates)
    return Load(
        query,
        rates,
        tuple(rate or silent for rate in rates),
        tuple(workload.window_tuples(query, name) for name in query.names),
        tuple(workload.window(query, name).rows > 0 for name in query.names),
        tuple(_row_bytes(workload, name) for name in query.names),
        _shares(query, workload),
    )


def _row_bytes(workload: Workload, name: str) -> float:
    with suppress(PlanError):
        return workload.bytes_of_row(name)
    return ROW_BYTES


def _shares(query: Query, workload: Workload) -> Shares:
    found, left, others = {}, {}, {}
    access = query.access
    relations = [1.0] * len(access.relations)
    for own, window in permutations(range(len(query.names)), 2):
        groups = [at for at, group in enumerate(access.groups) if own in group and window in group]
        linking = [
            at
            for at, relation in enumerate(access.relations)
            if {relation.left[0], relation.right[0]} == {own, window}
        ]
        given = _given(query, workload, own, window)
        links = len(groups) + len(linking)
        if not links and given is not None and isinstance(workload.selectivities, dict):
            others[own, window] = given
        for group in groups:
            keys = _most_keys(query, workload, group, (own, window))
            if given is None and keys is None:
                workload.selectivity(query, own, window)  # which says what is missing
            part = 1.0 if given is None else given ** (1 / links)
            found[group, own, window] = part if keys is None else 1 / keys
            left[group, own, window] = part if given is not None else 1 / (keys or 1.0)
        if linking:
            share = workload.selectivity(query, own, window)
            for at in linking:
                relations[at] = share ** (1 / len(linking))
    return Shares(found, left, tuple(relations), others)


def _given(query: Query, workload: Workload, own: int, window: int) -> float | None:
    told = workload.selectivities
    if not isinstance(told, dict):
        return None if told is None else float(told)
    first, second = sorted((query.names[own], query.names[window]))
    return told.get((first, second))


def _most_keys(query: Query, workload: Workload, group: int, pair: Pair) -> float | None:
    """The larger number of keys of two streams; None where neither is known."""
    known = []
    for stream in pair:
        columns = path_columns(query.access.words[stream][query.access.groups[group][stream]])
        if workload.knows_distinct(query.names[stream], columns):
            known.append(workload.distinct_keys(query.names[stream], columns))
    return max(known, default=None)
