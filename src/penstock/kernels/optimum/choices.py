"""What each tuple would choose for itself, if holding it had a price at every instant.

`line[t]` is the price of being held from instant 0 to instant t, so to be held from s to t costs
`line[t] - line[s]`. To leave after meeting m is then worth `value[m]`, what was earned until then
less the price; only differences matter. A tuple takes the best of its meetings to leave after, or
is not held if all of them cost more than they earn.

The best of a slice is found by steps from one meeting to the next that is better (`better`). A
tuple starts from the choice of the one before it where it can, so that along a chain every meeting
is looked at about once: O(tuples + meetings). Where slices overlap in disorder it is correct all
the same, in O(tuples + meetings of all tuples).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.kernels.arena import Words
from penstock.kernels.jit import kernel
from penstock.kernels.optimum.chains import Chains

__all__ = ["Peaks", "choose", "peak", "weigh"]


class Peaks(NamedTuple):
    """For each meeting what leaving after it is worth, and the next one after which it is more."""

    value: Words
    better: Words

    @classmethod
    def of(cls, chains: Chains) -> Peaks:
        """Room for the meetings of these chains."""
        return cls(np.empty_like(chains.meets), np.empty_like(chains.meets))


@kernel
def weigh(chains: Chains, line: Words, peaks: Peaks) -> None:
    """Fill `peaks` for these prices."""
    value, better = peaks
    meetings = len(value)
    for meeting in range(meetings):
        value[meeting] = chains.before[meeting + 1] - line[chains.meets[meeting]]
    for meeting in range(meetings - 1, -1, -1):
        following = meeting + 1
        while following < meetings and value[following] <= value[meeting]:
            following = better[following]
        better[meeting] = following


@kernel
def peak(peaks: Peaks, start: int, end: int) -> int:
    """The best meeting of those from `start` to `end`, the first of equals."""
    best = start
    while peaks.better[best] < end:
        best = peaks.better[best]
    return best


@kernel
def choose(chains: Chains, line: Words, peaks: Peaks, load: Words) -> int:
    """What the choices of all tuples are worth together, and how many are then held: `load`."""
    for instant in range(len(load)):
        load[instant] = 0
    total = 0
    best = 0
    for row in range(len(chains.at)):
        first, end, at = chains.first[row], chains.end[row], chains.at[row]
        if best < first or best >= end:
            best = first
        best = peak(peaks, best, end)
        profit = peaks.value[best] - chains.before[first] + line[at]
        if profit > 0:
            total += profit
            load[at] += 1
            load[chains.meets[best]] -= 1
    running = 0
    for instant in range(len(load)):
        running += load[instant]
        load[instant] = running
    return total
