"""Intervals for what is estimated from a sample in groups: the jackknife.

An estimate that leaves a group out differs from the others by what this group alone has to say. How
much these estimates differ gives the variance of the one that is made of all; Student's
distribution allows for its coming from few groups. A sample that is a large part of the whole
leaves less to chance. Memory is compared by its logarithm: what is too little is so by a factor.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.lab.recording.key_sample import Floats
from penstock.lab.sizing.student import student_quantile

__all__ = ["Interval", "jackknife", "memory_at", "recall_at"]

_CONFIDENCE: Final = 0.95

Interval = tuple[float, float]


def jackknife(
    estimates: Floats, share: float, *, by_factor: bool = False, known_to: float = 0.0
) -> Interval:
    """Where the truth is, with a chance of about 95 %.

    estimates: the first of all groups, each other one without one of them. share: how large a part
    of the whole the sample is. by_factor: what differs is a factor. known_to: how well they would
    be known if there were no chance in it.
    """
    values = np.log(np.maximum(estimates, 1e-9)) if by_factor else estimates
    groups = len(values) - 1
    deviation = np.sqrt((groups - 1) * np.mean((values[1:] - values[1:].mean()) ** 2))
    half = student_quantile(groups - 1, _CONFIDENCE) * deviation * np.sqrt(1 - share)
    half = np.hypot(half, known_to)
    low, high = values[0] - half, values[0] + half
    return (float(np.exp(low)), float(np.exp(high))) if by_factor else (float(low), float(high))


def memory_at(memories: Floats, recalls: Floats, recall: float) -> float:
    """The memory that a recall takes, between those that are known, or the nearest of them."""
    order = np.argsort(memories, kind="stable")
    grown = np.maximum.accumulate(recalls[order])
    return float(np.exp(np.interp(recall, grown, np.log(np.maximum(memories[order], 1e-9)))))


def recall_at(memories: Floats, recalls: Floats, memory: float) -> float:
    """The recall that a memory gives, between those that are known, or the nearest of them."""
    order = np.argsort(memories, kind="stable")
    return float(np.interp(memory, memories[order], np.maximum.accumulate(recalls[order])))
