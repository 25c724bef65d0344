"""Which limits to set: the policy that reaches a recall with the least memory, as in a job file.

One recording does not separate policies that need nearly the same; `prob` is then taken, which
does well in most cases. Of a sample the memory is the upper end of its interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from penstock.lab.sizing.curve import TOLERANCE
from penstock.lab.sizing.policy_curve import Curve
from penstock.model.limits import Limits

__all__ = ["Recommendation", "recommended"]

_PREFERRED: Final = "prob"
_ALIKE: Final = 1 + 2 * TOLERANCE


@dataclass(frozen=True)
class Recommendation:
    """recall: that it is for. measured: that it had."""

    recall: float
    measured: float
    memory: int
    shed: str
    pool: Any = "shared"

    @property
    def limits(self) -> Limits:
        """To start a join with."""
        return Limits(f"{self.memory} rows", shed=self.shed, pool=self.pool)

    def to_yaml(self) -> str:
        """The block of a job file."""
        lines = ["limits:", f"  memory: {self.memory} rows", f"  shed: {self.shed}"]
        if self.pool != "shared":
            lines.append(f"  pool: {self.pool}")
        return "\n".join(lines)


def recommended(curves: Sequence[Curve], recall: float, pool: Any) -> Recommendation | None:
    """The limits for a recall that was asked for; None where no policy has it."""
    found = {
        curve.policy: enough
        for curve in curves
        for enough in curve.enough
        if enough is not None and enough.recall == recall
    }
    if not found:
        return None
    policy = min(found, key=lambda each: found[each].memory)
    preferred = found.get(_PREFERRED)
    if preferred is not None and preferred.memory <= _ALIKE * found[policy].memory:
        policy = _PREFERRED
    chosen = found[policy]
    memory = chosen.memory if chosen.interval is None else ceil(chosen.interval[1])
    return Recommendation(recall, chosen.measured, memory, policy, pool)
