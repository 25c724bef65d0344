"""What tuples meet if only keys and order count: the arrivals of the key in the other stream.

Each result counts the same, and a tuple is in its window from its arrival to a last place. All
tuples of a key then see a part of one run of arrivals, and nothing has to be joined: places in
order show where each part begins and ends.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.arena import Words
from penstock.lab.optimum.holding import Meetings
from penstock.lab.optimum.met import Met
from penstock.lab.optimum.timeline import Timeline, Tuples

__all__ = ["is_by_arrival", "met_by_arrival"]


def is_by_arrival(timeline: Timeline) -> bool:
    """Whether of each key the newest tuples are always the best to hold."""
    query = timeline.query
    if not query.keys[0] or query.residuals or any(w.length_us < 0 for w in query.windows):
        return False
    for tuples in timeline.streams:
        order = np.lexsort((tuples.place, tuples.key))
        key, last = tuples.key[order], tuples.last[order]
        if ((key[1:] == key[:-1]) & (key[1:] >= 0) & (last[1:] < last[:-1])).any():
            return False
    return True


def met_by_arrival(timeline: Timeline, counted_from: int) -> Met:
    """Meetings of both streams; only those at this instant and later count."""
    left, right = timeline.streams
    parts, rows, at_once = [], [], 0
    for own, other in ((left, right), (right, left)):
        meetings, of_rows, same = _met(own, other, timeline, counted_from)
        parts.append(meetings)
        rows.append(of_rows)
        at_once += same
    return Met((parts[0], parts[1]), (rows[0], rows[1]), at_once)


def _met(
    own: Tuples, other: Tuples, timeline: Timeline, counted_from: int
) -> tuple[Meetings, Words, int]:
    """Meetings, the row of each tuple in them, and how many pairs of one instant there are of which
    the own tuple has the earlier place."""
    own, other = (each.take(_by_key(each)) for each in (own, other))
    # One number for key and place, so that one search finds a place among those of its key.
    stride = len(timeline.instant_of) + 1
    line = other.key * stride + other.place
    base = own.key * stride
    of_instant = timeline.last_place[own.instant]
    ending = np.searchsorted(line, base + own.last, "right")
    first = np.searchsorted(line, base + of_instant, "right")
    counts = own.instant >= counted_from
    before = np.searchsorted(line, base + own.place, "right")
    same = np.maximum(np.minimum(first, ending) - before, 0)
    meets = (ending > first).nonzero()[0]
    first, ending = first[meets], ending[meets]
    used, number = _numbered(first, ending, len(line))
    instants = other.instant[used]
    meetings = Meetings(
        own.instant[meets],
        number[first],
        number[first] + ending - first,
        instants,
        (instants >= counted_from).astype(np.int64),
    )
    return meetings, own.row[meets], int(same[counts].sum())


def _by_key(tuples: Tuples) -> Words:
    """Those that have a key, by key and then in order."""
    order = np.lexsort((tuples.place, tuples.key))
    return order[np.searchsorted(tuples.key[order], 0) :]


def _numbered(first: Words, ending: Words, length: int) -> tuple[Words, Words]:
    """Which arrivals are met at all, and the number of each among them."""
    change = np.bincount(first, minlength=length + 1) - np.bincount(ending, minlength=length + 1)
    is_met = np.cumsum(change)[:length] > 0
    return np.flatnonzero(is_met), np.cumsum(is_met) - is_met
