"""The ledger: what shedding cost the answer, as a frozen picture of one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt
from typing import Final

from penstock.shedding.shedder import Shedder
from penstock.shedding.unlimited import Unlimited

__all__ = ["EARLIER_SHED", "NOT_PROBED", "Loss", "interval_of", "loss_of"]

EARLIER_SHED: Final = "earlier tuple shed"
NOT_PROBED: Final = "latest not probed"
# Standard deviations: more than 1.96, for the variance is estimated too, by as few ghosts.
_WITHIN_95: Final = 2.2
# Rule of three: losses that no kept ghost has seen are at most 3/p with 95 % confidence.
_NONE_SEEN: Final = 3.0


@dataclass(frozen=True)
class Loss:
    """lost: results; None if they are not counted. by_stream: whose tuples were shed. interval: if
    a sample estimates them, where they are with a chance of 95 %."""

    lost: int | None = 0
    interval: tuple[int, int] | None = None
    by_stream: tuple[int, ...] = ()
    by_reason: Mapping[str, int] = field(default_factory=dict)


def loss_of(shedder: Shedder | Unlimited, produced: int) -> Loss:
    """What has been lost so far. produced: how many results came out."""
    if shedder.limits is None:
        return Loss()
    if shedder.limits.loss == "off":
        return Loss(None)
    losses = shedder.losses
    # Rounded so that the parts add up to the whole.
    sums = [0.0]
    for each in losses.lost.tolist():
        sums.append(sums[-1] + each)
    whole = [round(each) for each in sums]
    by_stream = tuple(after - before for before, after in pairwise(whole))
    lost = whole[-1]
    interval = None
    if losses.variance is not None:
        low, high = interval_of(sums[-1] - losses.seen, losses.variance)
        unseen = _NONE_SEEN / min(losses.threshold, losses.looks)
        high = max(high, sums[-1] - losses.seen + unseen)
        interval = (min(round(losses.seen + low), lost), max(round(losses.seen + high), lost))
        most = losses.most_lost(produced)
        if most is not None:
            lost = min(lost, most)
            interval = (round(losses.seen), most)
    return Loss(lost, interval, by_stream, _by_reason(shedder, lost))


def interval_of(estimate: float, variance: float) -> tuple[float, float]:
    """Wilson's interval for an estimate: the numbers from which it is a few standard deviations
    away at most, if the variance is in proportion to the number. An estimate too low has too
    low a variance beside it: the plain interval around it then misses the truth."""
    if estimate <= 0.0:
        return 0.0, 0.0
    each = variance / estimate
    middle = estimate + _WITHIN_95**2 * each / 2
    off = _WITHIN_95 * sqrt(each * estimate + (_WITHIN_95 * each / 2) ** 2)
    return middle - off, middle + off


def _by_reason(shedder: Shedder, lost: int) -> dict[str, int]:
    """Those that are lost for the first of the reasons there are."""
    limits = shedder.limits
    if limits.service_rate is None:
        return {EARLIER_SHED: lost}
    unprobed = min(round(shedder.losses.unprobed_lost), lost)
    sheds = limits.memory.is_limited or limits.drop == "tuple"
    return {NOT_PROBED: unprobed} | ({EARLIER_SHED: lost - unprobed} if sheds else {})
