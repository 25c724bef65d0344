"""What tuples meet, whatever it is that matches: each its own partners, one after the other."""

from __future__ import annotations

import numpy as np

from penstock.kernels.arena import Words
from penstock.lab.optimum.holding import Meetings
from penstock.lab.optimum.matched_pairs import Matches
from penstock.lab.optimum.met import Met
from penstock.lab.optimum.timeline import Timeline

__all__ = ["met_by_match"]


def met_by_match(timeline: Timeline, matches: Matches, worth: Words, counted_from: int) -> Met:
    """Meetings of both streams, each worth what is given for the pair; only those at this instant
    and later count."""
    instants = [timeline.instant_of[places] for places in matches.places]
    worth = np.where(np.maximum(*instants) >= counted_from, worth, 0)
    parts, rows = [], []
    for own, other in ((0, 1), (1, 0)):
        earlier = instants[own] < instants[other]
        meetings, of_rows = _met(
            matches.rows[own][earlier],
            instants[own][earlier],
            instants[other][earlier],
            worth[earlier],
        )
        parts.append(meetings)
        rows.append(of_rows)
    at_once = int(worth[instants[0] == instants[1]].sum())
    return Met((parts[0], parts[1]), (rows[0], rows[1]), at_once)


def _met(row: Words, at: Words, meets: Words, worth: Words) -> tuple[Meetings, Words]:
    """Of pairs whose own tuple is the earlier one; partners of one instant are one meeting."""
    order = np.lexsort((meets, row))
    row, at, meets, worth = (each[order] for each in (row, at, meets, worth))
    is_new = np.ones(len(row), np.bool_)
    is_new[1:] = (row[1:] != row[:-1]) | (meets[1:] != meets[:-1])
    begins = np.flatnonzero(is_new)
    if not len(begins):
        nothing = np.empty(0, np.int64)
        return Meetings(*(nothing,) * 5), nothing
    summed = np.add.reduceat(worth, begins)
    row, at, meets = row[begins], at[begins], meets[begins]
    first = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
    end = np.append(first[1:], len(row))
    return Meetings(at[first], first, end, meets, summed), row[first]
