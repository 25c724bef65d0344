"""The ledger: what shedding cost the answer, as a frozen picture of one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt
from typing import Final

from penstock.shedding.shedder import Shedder

__all__ = ["EARLIER_SHED", "NOT_PROBED", "Loss", "loss_of"]

EARLIER_SHED: Final = "earlier tuple shed"
NOT_PROBED: Final = "latest not probed"
_WITHIN_95: Final = 1.96  # standard deviations
_NONE_SEEN: Final = 3.0  # so many, times the chance of each, are seen in 95 of 100 cases


@dataclass(frozen=True)
class Loss:
    """lost: results; None if they are not counted. by_stream: whose tuples were shed. interval: if
    they are told by a sample, what they are with a chance of 95 %."""

    lost: int | None = 0
    interval: tuple[int, int] | None = None
    by_stream: tuple[int, ...] = ()
    by_reason: Mapping[str, int] = field(default_factory=dict)


def loss_of(shedder: Shedder, produced: int) -> Loss:
    """What has been lost so far, beside so many results that came out."""
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
        off = _WITHIN_95 * sqrt(losses.variance)
        # What no ghost tells of may be as much as three times a chance of one in so many allows.
        high = sums[-1] + off + _NONE_SEEN / min(losses.threshold, losses.looks)
        interval = (max(round(sums[-1] - off), losses.seen), round(high))
        most = losses.most_lost(produced)
        if most is not None:
            lost = min(lost, most)
            interval = (losses.seen, most)
    return Loss(lost, interval, by_stream, _by_reason(shedder, lost))


def _by_reason(shedder: Shedder, lost: int) -> dict[str, int]:
    """Those that are lost for the first of the reasons there are."""
    limits = shedder.limits
    if limits.service_rate is None:
        return {EARLIER_SHED: lost}
    unprobed = min(round(shedder.losses.unprobed_lost), lost)
    sheds = limits.memory.is_limited or limits.drop == "tuple"
    return {NOT_PROBED: unprobed} | ({EARLIER_SHED: lost - unprobed} if sheds else {})
