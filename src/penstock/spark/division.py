"""Into how many buckets a join is divided, each of them joined on its own."""

from __future__ import annotations

import warnings

from penstock.errors import PlanError, PlanWarning
from penstock.model.query import Query
from penstock.spark.bucket_count import MOST_BUCKETS, BucketCount
from penstock.spark.partitioning import buckets_per_partition, undivided

__all__ = ["divided"]


def divided(
    query: Query, given: int | None, partitions: int, *, pooled: bool = False
) -> BucketCount:
    """The buckets of a query; given: by the user. partitions: of the session. pooled: whether
    memory is shared out among them."""
    if given is not None and (not isinstance(given, int) or not 1 <= given <= MOST_BUCKETS):
        raise PlanError(f"buckets must be 1 to {MOST_BUCKETS:,}, got {given!r}")
    whole = undivided(query)
    if whole is not None:
        reason, advice = whole
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
    return BucketCount(given, partitions, buckets_per_partition(query, pooled=pooled))
