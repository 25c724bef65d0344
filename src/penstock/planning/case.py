"""A case to plan for: a query, what is known of its streams, and what is given or fixed.

Everything that is said of a plan is said of one case: what it costs, what comes next to it, and
how both would be at other rates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.errors import PlanError
from penstock.model.limits import Limits
from penstock.model.plan import Indexes, Plan
from penstock.model.punctuation import DROP, Promising
from penstock.model.query import Query
from penstock.model.workload.workload import Workload
from penstock.planning.assumed import assumed_workload
from penstock.planning.budget import within
from penstock.planning.load import Load, load_of
from penstock.planning.plan_costs import PlanCosts, Setting, setting_of
from penstock.planning.planner import Fixed, Planner, fixed_of
from penstock.planning.weights import Weights

__all__ = ["Case", "case_of", "plan_for"]


@dataclass(frozen=True)
class Case:
    """is_assumed: whether the workload is no more than a guess."""

    query: Query
    workload: Workload
    is_assumed: bool
    setting: Setting
    fixed: Fixed
    limits: Limits | None = None

    def whole(self, rates: Mapping[str, float] | None = None) -> Load:
        """What the streams bring, at these rates or their own."""
        workload = self.workload if rates is None else replace(self.workload, rates=dict(rates))
        return load_of(self.query, workload)

    def left(self, rates: Mapping[str, float] | None = None) -> Load:
        """What is left of it under limits."""
        load = self.whole(rates)
        return load if self.limits is None else within(load, self.limits)

    def load(self, rates: Mapping[str, float] | None = None) -> Load:
        """What is planned for: what is left, where it is known what there is. A guess stays on the
        safe side: limits may be raised while a join runs, and its indexes stay."""
        return self.whole(rates) if self.is_assumed else self.left(rates)

    def planner(self, rates: Mapping[str, float] | None = None) -> Planner:
        """Looks for its plan."""
        return Planner(PlanCosts(self.load(rates), self.setting), self.fixed)


def case_of(
    query: Query,
    workload: Workload | None = None,
    *,
    indexes: Indexes | None = None,
    probe_orders: Mapping[str, Sequence[str]] | None = None,
    limits: Limits | None = None,
    weights: str | Weights | None = None,
) -> Case:
    """The case of a query, checked. workload: when it is None, what is usual is assumed."""
    if workload is not None and not isinstance(workload, Workload):
        raise PlanError(
            f"workload must be a Workload, got {workload!r}; write Workload(rates={{...}})"
        )
    return Case(
        query,
        assumed_workload(query) if workload is None else workload,
        workload is None,
        setting_of(weights),
        fixed_of(query, indexes, probe_orders, limits),
        limits,
    )


def plan_for(
    query: Query,
    workload: Workload | None,
    indexes: Indexes | None,
    probe_orders: Mapping[str, Sequence[str]] | None,
    limits: Limits | None,
    promising: Promising = DROP,
) -> Plan:
    """The plan to run: what is given, and for the rest the cheapest."""
    case = case_of(query, workload, indexes=indexes, probe_orders=probe_orders, limits=limits)
    return replace(case.planner().choose().plan(query, limits), promising=promising)
