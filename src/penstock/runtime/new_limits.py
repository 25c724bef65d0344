"""Other limits for a running join."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import PlanError
from penstock.model.limits import Limits, Memory, parse_memory
from penstock.model.plan import check_limits
from penstock.model.query import Query

__all__ = ["changed_limits"]


def changed_limits(
    query: Query, limits: Limits | None, memory: str | Memory | None, service_rate: float | None
) -> Limits:
    """Limits with another memory, service rate, or both; refused if there were none of that kind.

    A join that was started without them has no order in which tuples could go.
    """
    if limits is None:
        raise PlanError(
            "the join was started without limits, and has no order in which tuples could go; "
            "start it with limits=, as large as you like"
        )
    if service_rate is None or memory is not None:
        if not limits.memory.is_limited:
            raise PlanError(
                "the join was started without a limit of memory, and has no order in which "
                "tuples could go; start it with memory=, as large as you like"
            )
        limits = replace(limits, memory=parse_memory(memory, "memory"))
    if service_rate is not None:
        limits = replace(limits, service_rate=service_rate)
        check_limits(query, limits)
    return limits
