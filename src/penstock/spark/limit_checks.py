"""Limits on Spark: those that cannot be kept are refused when the query is built."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import InputError, PlanError
from penstock.model.binding import Binding
from penstock.model.limits import LEAST_STATISTICS, Memory
from penstock.model.plan import Plan
from penstock.spark.state.bucket_engine import BucketEngine

__all__ = ["check_limits", "least_bytes"]


def check_limits(
    binding: Binding, plan: Plan, buckets: int, *, streaming: bool, history: bool
) -> None:
    """Refuse limits that this many buckets cannot keep, or whose losses nothing would show."""
    assert plan.limits is not None, "asked for under limits only"
    if not streaming:
        raise InputError(
            "limits= is for streaming DataFrames: a batch one has no progress that could tell what "
            "is lost; leave limits= out"
        )
    if history and binding.query.is_semi:
        raise InputError(
            "a semi join under limits cannot begin with a history: which rows of it have matched "
            "is not known once others are dropped; leave initial= or limits= out"
        )
    if plan.limits.service_rate is not None and not binding.query.keys[0] and buckets > 1:
        raise PlanError(
            f"service_rate= counts each tuple once, and without a key each goes to all {buckets} "
            "buckets; give buckets=1, columns that are equal, or a limit of memory alone"
        )
    given = plan.limits.memory.bytes
    if given is None:
        return
    least = least_bytes(binding, plan)
    if given // buckets < least:
        raise PlanError(
            f"memory={given:,} bytes is too little for {buckets} buckets, each of which takes "
            f"{least:,} before the first tuple; {buckets * least:,} is the least: give it more, a "
            "limit in rows, or fewer buckets="
        )


def least_bytes(binding: Binding, plan: Plan) -> int:
    """What a bucket takes when nothing is left in it."""
    assert plan.limits is not None, "asked for under limits only"
    small = replace(plan.limits, memory=Memory(rows=0), statistics=Memory(bytes=LEAST_STATISTICS))
    windows = BucketEngine(binding, replace(plan, limits=small)).driver.windows
    windows.close_ranks()
    nulls = sum(  # a byte for each row of a column that has had one
        windows.size(number) * len(payload.columns)
        for number, payload in enumerate(windows.payloads)
        if payload is not None
    )
    return windows.state_bytes + windows.payload_bytes + nulls
