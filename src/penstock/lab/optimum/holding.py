"""What may be held: tuples that arrive, what each would meet, and the room there is.

A tuple is held from its arrival to the last meeting it is to be there for, and earns what all
meetings until then are worth. So a decision is one number for each tuple: how far it goes in its
meetings. Two forms of the same data:

    by match     every tuple has a run of meetings of its own
    by arrival   the tuples of one key share one run, the arrivals of the key in the other stream,
                 and each sees a part of it; later ones begin and end no earlier

Invariants: tuples are sorted by `first`, then by arrival; what a tuple meets comes after it, in
order of time; every meeting is some tuple's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from penstock.kernels.arena import Words

__all__ = ["LARGEST_WORTH", "Holding", "Meetings", "earned", "held", "pooled"]

# Of a meeting: the solver of flows multiplies it by the number of nodes.
LARGEST_WORTH: Final = 1 << 40


class Meetings(NamedTuple):
    """The tuples of one stream. Instants count from 0, in order of time.

    at: the instant at which each arrives. first, end: it meets meetings first to end - 1.
    meets: the instant of each meeting. worth: what being there for it earns, 0 or more.
    """

    at: Words
    first: Words
    end: Words
    meets: Words
    worth: Words


class Holding(NamedTuple):
    """The tuples of one pool of memory, as `Meetings` has them.

    room: how many of them may be held after each instant, until the next.
    """

    at: Words
    first: Words
    end: Words
    meets: Words
    worth: Words
    room: Words


def pooled(streams: Sequence[Meetings], room: Words) -> Holding:
    """The tuples of these streams in one pool, those of the first before those of the next."""
    shifts = np.cumsum([0, *(len(each.meets) for each in streams)])[: len(streams)]
    return Holding(
        np.concatenate([each.at for each in streams]),
        np.concatenate([each.first + by for each, by in zip(streams, shifts, strict=True)]),
        np.concatenate([each.end + by for each, by in zip(streams, shifts, strict=True)]),
        np.concatenate([each.meets for each in streams]),
        np.concatenate([each.worth for each in streams]),
        room,
    )


def earned(tuples: Meetings | Holding, until: Words) -> int:
    """What tuples earn that go as far as `until` says, from `first` (not at all) to `end`."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(tuples.worth)])
    return int((before[until] - before[tuples.first]).sum())


def held(holding: Holding, until: Words) -> Words:
    """How many tuples are held after each instant, when they go as far as `until` says."""
    instants = len(holding.room)
    kept = until > holding.first
    enter = np.bincount(holding.at[kept], minlength=instants)
    leave = np.bincount(holding.meets[until[kept] - 1], minlength=instants)
    return np.cumsum(enter - leave)
