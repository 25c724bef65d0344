"""A plan: how a join is evaluated. Any plan gives the same answer; only the cost differs.

Kang, Naughton and Viglas choose an index for each window; Golab and Özsu choose for each
stream the order in which its arrivals probe the other windows. A window that is found by
several things has an index for each (model.access). Planner and engine meet only here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from penstock.errors import PlanError
from penstock.model.access import Equal, Word
from penstock.model.limits import POLICIES, Limits
from penstock.model.predicates.where import parse_expression
from penstock.model.punctuation import DROP, Promising
from penstock.model.query import Query
from penstock.model.steps import Step, linked_order, steps_of

__all__ = [
    "INDEXES", "Index", "IndexKind", "Indexes", "Plan", "check_limits", "parse_index",
]  # fmt: skip


class IndexKind(NamedTuple):
    """What an index can do. ranges: whether it finds ranges of values as well as keys. tree:
    whether it has nodes. buckets: how many it has if none are given; 0 for one without."""

    ranges: bool = False
    tree: bool = False
    buckets: int = 0


INDEXES: Final[dict[str, IndexKind]] = {
    "hash": IndexKind(),
    "buckets": IndexKind(buckets=1024),
    "bplus_tree": IndexKind(ranges=True, tree=True),
    "t_tree": IndexKind(ranges=True, tree=True),
    "scan": IndexKind(ranges=True),
}
_NAMES: Final = tuple(INDEXES)
_RANGES: Final = tuple(name for name, kind in INDEXES.items() if kind.ranges)
_MAX_BUCKETS: Final = 1 << 28
_INDEX_TEXT: Final = re.compile(r"(\w+)(?:\((\d+)\))?")


@dataclass(frozen=True)
class Index:
    """How a window finds tuples.

    hash: a directory of the distinct keys, each with the chain of its tuples.
    buckets: a fixed number of chains that keys share.
    bplus_tree, t_tree: in order, so that ranges are found as well as keys.
    scan: no index; the whole window is read (nested loops).
    """

    name: str = "hash"
    buckets: int = 0

    def __post_init__(self) -> None:
        if self.name not in INDEXES:
            raise PlanError(f"no index is called {self.name!r}; choose from {_NAMES}")
        if self.kind.buckets and not 1 <= self.buckets <= _MAX_BUCKETS:
            raise PlanError(
                f"an index of buckets needs 1 to {_MAX_BUCKETS:,} of them, got {self.buckets}"
            )
        if not self.kind.buckets and self.buckets:
            raise PlanError(f"index {self.name!r} takes no number of buckets, got {self.buckets}")

    def __str__(self) -> str:
        return f"{self.name}({self.buckets})" if self.buckets else self.name

    @property
    def kind(self) -> IndexKind:
        """What it can do."""
        return INDEXES[self.name]

    def serves(self, word: Word) -> bool:
        """Whether what is asked of a word can be found by it."""
        return isinstance(word, Equal) or self.kind.ranges


def parse_index(value: str | Index) -> Index:
    """An index from its text: one of INDEXES, or 'buckets(4096)'."""
    if isinstance(value, Index):
        return value
    match = _INDEX_TEXT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise PlanError(
            f"cannot read an index from {value!r}; write one of {_NAMES}, or 'buckets(4096)'"
        )
    name, count = match.groups()
    usual = INDEXES[name].buckets if name in INDEXES else 0
    return Index(name, int(count) if count else usual)


Indexes = str | Index | Mapping[str, str | Index | Sequence[str | Index]]

_NO_INDEX: Final = Index("scan")


@dataclass(frozen=True)
class Plan:
    """indexes: of each window, one for each of its paths. probe_orders: for each stream, the
    other streams in the order its arrivals probe them. steps: what follows from these.
    limits: of memory, the one thing here that changes the answer; None without. promising: what is
    done with promises."""

    indexes: tuple[tuple[Index, ...], ...]
    probe_orders: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[Step, ...], ...]
    limits: Limits | None = None
    promising: Promising = DROP

    @property
    def is_plain(self) -> bool:
        """Whether each window has one path, without a tree, and is probed by the key alone."""
        return all(len(paths) == 1 and not paths[0].kind.tree for paths in self.indexes) and all(
            step.asks_for_key_of(origin)
            for origin, steps in enumerate(self.steps)
            for step in steps
        )

    @classmethod
    def of(
        cls,
        query: Query,
        indexes: Indexes | None = None,
        probe_orders: Mapping[str, Sequence[str]] | None = None,
        limits: Limits | None = None,
    ) -> Plan:
        """The plan that was asked for, checked. What is not given, by a user or a planner: `hash`
        for what must be equal, `bplus_tree` for what has an order, and next always a stream that
        is linked."""
        chosen: Mapping[str, Any] = {}
        if isinstance(indexes, Mapping):
            chosen = indexes
        elif indexes is not None:
            chosen = dict.fromkeys(query.names, indexes)
        if limits is not None:
            check_limits(query, limits)
        given = probe_orders or {}
        if not isinstance(given, Mapping):
            raise PlanError(
                f"probe_orders must give the orders by stream, got {given!r}; "
                "write for example {'a': ['b', 'c']}"
            )
        for what, names in (("indexes", chosen), ("probe_orders", given)):
            for name in names:
                if name not in query.names:
                    raise PlanError(
                        f"{what} names {name!r}, which is no stream; the streams are {query.names}"
                    )
        access = query.access
        orders = [_probe_order(query, own, given.get(name)) for own, name in enumerate(query.names)]
        steps = tuple(steps_of(access, own, order) for own, order in enumerate(orders))
        asked = {(step.window, step.word) for of_origin in steps for step in of_origin}
        return cls(
            tuple(
                tuple(
                    index if (window, word) in asked else _NO_INDEX
                    for word, index in enumerate(_indexes(query, window, chosen.get(name)))
                )
                for window, name in enumerate(query.names)
            ),
            tuple(orders),
            steps,
            limits,
        )


def check_limits(query: Query, limits: Any) -> None:
    """Refuse limits that a join of this query cannot keep."""
    if not isinstance(limits, Limits):
        raise PlanError(f"limits must be Limits, got {limits!r}; write Limits(memory='1 GiB')")
    if query.preserved:
        raise PlanError(
            f"with how={query.how!r} no tuples can be dropped: what is gone would be taken for "
            "what is not there, and come out alone; use how='inner' or 'semi', or set no limit"
        )
    if query.counts:
        counted = sorted({str(each) for each in query.windows if each.rows or each.arrivals})
        raise PlanError(
            f"windows of {counted} count tuples, and limits would drop some of them; "
            "use windows of time, or set no limit"
        )
    endless = [
        name for name, window in zip(query.names, query.windows, strict=True) if window.is_endless
    ]
    if POLICIES[limits.shed].needs_end and endless:
        raise PlanError(
            f"shed={limits.shed!r} goes by the time that is left to tuples, and those of {endless} "
            "never leave their windows; use shed='prob', or windows that end"
        )
    if limits.service_rate is not None and query.how != "inner":
        raise PlanError(
            f"service_rate= is for how='inner', got how={query.how!r}: whether a tuple has matched "
            "is not known when some do not look; use how='inner', or a limit of memory"
        )
    parts = limits.pool if isinstance(limits.pool, Mapping) else dict.fromkeys(query.names)
    missing = [name for name in query.names if name not in parts]
    if missing:
        raise PlanError(
            f"pool= has no part for {missing}; give one for each of {query.names}, 0 for none"
        )
    for what, names in (("floors", limits.floors), ("pool", parts)):
        for name in names:
            if name not in query.names:
                raise PlanError(
                    f"{what}= names {name!r}, which is no stream; the streams are {query.names}"
                )
    if limits.value is not None:
        parse_expression(limits.value, query.names, "value")
    unknown = [name for name in limits.frequencies if name not in query.names]
    if unknown:
        raise PlanError(
            f"frequencies= names {unknown}, which are no streams; the streams are {query.names}"
        )
    for name in limits.frequencies:
        words = query.access.words[query.position(name)]
        if not all(isinstance(word, Equal) for word in words) or len(words) > 1:
            raise PlanError(
                f"frequencies= has keys of stream {name!r}, which is not found by one key; "
                "leave them out, and they are learned"
            )


def _probe_order(query: Query, own: int, given: Sequence[str] | None) -> tuple[int, ...]:
    if given is None:
        return linked_order(query.access, own, len(query.names))
    others = [name for name in query.names if name != query.names[own]]
    if sorted(given) != sorted(others):
        raise PlanError(
            f"the probe order of {query.names[own]!r} must name every other stream once, "
            f"got {tuple(given)}"
        )
    return tuple(query.position(name) for name in given)


def _indexes(query: Query, window: int, given: Any) -> list[Index]:
    """An index for each path of a window; one that is given for all is for those it serves."""
    words, name = query.access.words[window], query.names[window]
    usual = [Index("hash" if isinstance(word, Equal) else "bplus_tree") for word in words]
    if given is None:
        return usual
    if isinstance(given, str | Index) or not isinstance(given, Sequence):
        one = parse_index(given)
        served = [one.serves(word) for word in words]
        if any(served):
            return [one if serves else each for serves, each in zip(served, usual, strict=True)]
        given = [one] * len(words)
    if len(given) != len(words):
        raise PlanError(
            f"window {name!r} has {len(words)} access paths, got {len(given)} indexes for them; "
            "give one for each, in the order of where=, or one for all"
        )
    listed = [parse_index(each) for each in given]
    for index, word in zip(listed, words, strict=True):
        if not index.serves(word):
            raise PlanError(
                f"an index of {index.name!r} finds columns that are equal, and window {name!r} is "
                f"found by the order of values; use one of {_RANGES}"
            )
    return listed
