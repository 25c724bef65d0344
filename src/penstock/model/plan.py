"""A plan: how a join is evaluated. Any plan gives the same answer; only the cost differs.

Kang, Naughton and Viglas choose an index for each window; Golab and Özsu choose for each
stream the order in which its arrivals probe the other windows. Planner and engine meet
only here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.errors import PlanError
from penstock.model.query import Query

__all__ = ["DEFAULT_BUCKETS", "INDEX_NAMES", "Index", "Plan", "parse_index"]

INDEX_NAMES: Final = ("hash", "buckets", "scan")
DEFAULT_BUCKETS: Final = 1024
_MAX_BUCKETS: Final = 1 << 28
_INDEX_TEXT: Final = re.compile(r"(\w+)(?:\((\d+)\))?")


@dataclass(frozen=True)
class Index:
    """How a window finds the tuples of a key.

    hash: a directory of the distinct keys, each with the chain of its tuples.
    buckets: a fixed number of chains that keys share.
    scan: no index; the whole window is read (nested loops).
    """

    name: str = "hash"
    buckets: int = 0

    def __post_init__(self) -> None:
        if self.name not in INDEX_NAMES:
            raise PlanError(f"no index is called {self.name!r}; choose from {INDEX_NAMES}")
        if self.name == "buckets" and not 1 <= self.buckets <= _MAX_BUCKETS:
            raise PlanError(
                f"an index of buckets needs 1 to {_MAX_BUCKETS:,} of them, got {self.buckets}"
            )
        if self.name != "buckets" and self.buckets:
            raise PlanError(f"index {self.name!r} takes no number of buckets, got {self.buckets}")

    def __str__(self) -> str:
        return f"{self.name}({self.buckets})" if self.buckets else self.name


def parse_index(value: str | Index) -> Index:
    """An index from its text: 'hash', 'scan', 'buckets' or 'buckets(4096)'."""
    if isinstance(value, Index):
        return value
    match = _INDEX_TEXT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise PlanError(
            f"cannot read an index from {value!r}; write one of {INDEX_NAMES}, or 'buckets(4096)'"
        )
    name, count = match.groups()
    return Index(name, int(count) if count else DEFAULT_BUCKETS if name == "buckets" else 0)


@dataclass(frozen=True)
class Plan:
    """indexes: one for each window. probe_orders: for each stream, the other streams in
    the order its arrivals probe them."""

    indexes: tuple[Index, ...]
    probe_orders: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls,
        query: Query,
        indexes: str | Index | Mapping[str, str | Index] | None = None,
        probe_orders: Mapping[str, Sequence[str]] | None = None,
    ) -> Plan:
        """The plan a user asked for; what is not given is `hash`, in the streams' order."""
        chosen: Mapping[str, str | Index]
        if indexes is None:
            chosen = {}
        elif isinstance(indexes, Mapping):
            chosen = indexes
        else:
            chosen = dict.fromkeys(query.names, indexes)
        orders = probe_orders or {}
        for what, given in (("indexes", chosen), ("probe_orders", orders)):
            for name in given:
                if name not in query.names:
                    raise PlanError(
                        f"{what} names {name!r}, which is no stream; the streams are {query.names}"
                    )
        everyone = range(len(query.names))
        probes = []
        for own, name in enumerate(query.names):
            others = tuple(other for other in everyone if other != own)
            order = orders.get(name)
            if order is not None:
                if sorted(order) != sorted(query.names[other] for other in others):
                    raise PlanError(
                        f"the probe order of {name!r} must name every other stream once, "
                        f"got {tuple(order)}"
                    )
                others = tuple(query.position(other) for other in order)
            probes.append(others)
        return cls(
            tuple(parse_index(chosen.get(name, "hash")) for name in query.names), tuple(probes)
        )
