"""Into how many buckets a join is divided, each of them joined on its own.

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

import warnings
from typing import Final

from penstock.errors import PlanError, PlanWarning
from penstock.model.query import Query
from penstock.spark.bucket_count import MOST_BUCKETS, BucketCount

__all__ = ["divided"]

_BY_KEY: Final = 4  # a bucket is the least that can move: several allow for other partitions
_BY_TUPLE: Final = 1
_POOLED: Final = 1


def divided(
    query: Query, given: int | None, partitions: int, *, pooled: bool = False
) -> BucketCount:
    """The buckets of a query; given: by the user. partitions: of the session. pooled: whether
    memory is shared out among them."""
    if given is not None and (not isinstance(given, int) or not 1 <= given <= MOST_BUCKETS):
        raise PlanError(f"buckets must be 1 to {MOST_BUCKETS:,}, got {given!r}")
    undivided = _undivided(query)
    if undivided is not None:
        reason, advice = undivided
        if given not in (None, 1):
            raise PlanError(
                f"buckets={given} cannot be: {reason}, which takes one bucket; "
                f"leave buckets= out, or {advice}"
            )
        warnings.warn(
            f"{reason}: the whole join runs in one bucket, on one core; {advice} to spread it",
            PlanWarning,
            stacklevel=4,
        )
        given = 1
    per_partition = _POOLED if pooled else _BY_KEY if query.keys[0] else _BY_TUPLE
    return BucketCount(given, partitions, per_partition)


def _undivided(query: Query) -> tuple[str, str] | None:
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
