"""How a join is divided on Spark, and what cannot be. Needs no Spark to say so.

By key, a tuple and all its partners are in one bucket. Two streams without a key are divided by
tuples: each stays in one bucket, and goes to all others as a guest, so more buckets than there
are partitions would only be more copies. Under limits each bucket has its share of the memory, so
there is one for each partition, which then has its memory in one piece. What no bucket can know by
itself is not divided:

    rows or arrivals of all keys    one order of all tuples says which are in a window
    outer, semi, anti without key   a tuple's partners are in all buckets, and none of them knows
                                    whether another has met one
    three streams without a key     the partners of a tuple would have to be in one bucket
"""

from __future__ import annotations

from typing import Final

from penstock.model.query import Query
from penstock.planning.explain.explanation import Partitioning

__all__ = ["buckets_per_partition", "partitioning", "undivided"]

_BY_KEY: Final = 4  # a bucket is the least that can move: several allow for other partitions
_BY_TUPLE: Final = 1
_POOLED: Final = 1


def buckets_per_partition(query: Query, *, pooled: bool) -> int:
    """How many there are of a query that is divided. pooled: whether memory is shared out."""
    return _POOLED if pooled else _BY_KEY if query.keys[0] else _BY_TUPLE


def partitioning(query: Query, *, pooled: bool) -> Partitioning:
    """How a query is divided, in words."""
    whole = undivided(query)
    if whole is not None:
        reason, advice = whole
        return Partitioning("one bucket", 0, f"{reason}; {advice} to spread it")
    count = buckets_per_partition(query, pooled=pooled)
    if query.keys[0]:
        return Partitioning("by key", count, "a tuple and all its partners are in one bucket")
    return Partitioning(
        "everywhere", count, "there is no key: a tuple stays in one bucket and probes all of them"
    )


def undivided(query: Query) -> tuple[str, str] | None:
    """Why a query takes one bucket, and what to do about it; None when it does not."""
    has_key = bool(query.keys[0])
    whole = {
        str(window)
        for window in query.windows
        if window.arrivals or (window.rows and not (window.per_key and has_key))
    }
    if whole:
        counted = f"windows of {sorted(whole)} count tuples of all keys in one order"
        if has_key:
            return counted, "use 'rows per key' or windows of time"
        return counted, "use windows of time"
    if has_key:
        return None
    equal = "give columns that are equal in all streams (on=, or = in where=)"
    if len(query.streams) > 2:
        return f"the {len(query.streams)} streams have no key in common", equal
    if query.how != "inner":
        told = f"how={query.how!r} without a key looks for the partners of a tuple everywhere"
        return told, f"{equal}, or use how='inner',"
    return None
