"""Chains: tuples in an order in which those of one key and stream follow each other.

What a chain is: lab/optimum/chains.py, which makes them.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.kernels.arena import Words
from penstock.kernels.jit import kernel

__all__ = ["Chains", "cut", "number"]


class Chains(NamedTuple):
    """A holding in order, for kernels. Worths and prices are counted in units of `2 ** -bits`."""

    at: Words
    first: Words
    end: Words
    chain: Words  # of each tuple, numbered in order
    arrivals: Words  # the tuples in order of time
    meets: Words
    before: Words  # what all meetings before each one earn together
    room: Words  # no more than there are tuples
    rows: Words  # which tuple of the holding each one is
    bits: int


@kernel
def cut(tuples: tuple[Words, Words, Words], meets: Words, shut: Words, until: Words) -> None:
    """For each tuple its meetings up to the next instant without room, by bisection."""
    at, first, end = tuples
    for row in range(len(end)):
        low, high = first[row], end[row]
        while low < high:
            middle = (low + high) >> 1
            if meets[middle] <= shut[at[row]]:
                low = middle + 1
            else:
                high = middle
        until[row] = low


@kernel
def number(tuples: tuple[Words, Words, Words], meets: Words, chain: Words) -> None:
    """The chain of each tuple. One joins that of the tuple before it if it comes and ends no
    earlier, and if no meeting of the chain between its arrival and its own first is left out."""
    at, first, end = tuples
    latest = -1
    for row in range(len(at)):
        joins = (
            row > 0
            and at[row] >= at[row - 1]
            and end[row] >= end[row - 1]
            and first[row] <= end[row - 1]
            and (first[row] == first[row - 1] or meets[first[row] - 1] <= at[row])
        )
        if not joins:
            latest += 1
        chain[row] = latest
