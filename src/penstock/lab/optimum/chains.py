"""Tuples in an order in which those of one key and stream follow each other, as chains.

In a chain a tuple that comes later also meets later: while two of it are held, the next meeting of
both is the same, and the one that came first has no more of them ahead. So whichever of a chain
goes, it is the first, and all that has to be known of a chain at an instant is its next meeting,
its first tuple and its last. Tuples that fit no chain are chains of one.

Left out is what cannot earn: meetings beyond an instant without room, last ones that earn nothing,
and tuples without any.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.errors import InputError
from penstock.kernels.arena import Words
from penstock.kernels.optimum.chains import Chains, cut, number
from penstock.lab.optimum.holding import Holding

__all__ = ["chained", "trimmed"]

_FINEST: Final = 24  # bits of a price behind the point
_LARGEST: Final = 61  # bits of all worths together, so that sums of two have room


def chained(holding: Holding) -> Chains:
    """The chains of a holding, in O(n log n)."""
    end = trimmed(holding, holding.end)
    if not holding.room.all():
        end = trimmed(holding, _shut(holding, end))
    rows = np.flatnonzero(end > holding.first)
    rows = rows[np.lexsort((holding.at[rows], end[rows], holding.first[rows]))]
    at, first, end = holding.at[rows], holding.first[rows], end[rows]
    bits = _bits(holding, first, end)
    before = np.zeros(len(holding.worth) + 1, np.int64)
    np.cumsum(holding.worth, out=before[1:])
    chain = np.empty(len(rows), np.int64)
    number((at, first, end), holding.meets, chain)
    return Chains(
        at=at,
        first=first,
        end=end,
        chain=chain,
        arrivals=np.argsort(at, kind="stable"),
        meets=holding.meets,
        before=before << bits,
        room=np.minimum(holding.room, len(rows)),
        rows=rows,
        bits=bits,
    )


def trimmed(holding: Holding, until: Words) -> Words:
    """A decision without the last meetings that earn nothing."""
    meetings = np.arange(1, len(holding.worth) + 1)
    earning = np.zeros(len(meetings) + 1, np.int64)
    np.maximum.accumulate(np.where(holding.worth > 0, meetings, 0), out=earning[1:])
    return np.maximum(holding.first, earning[until])


def _shut(holding: Holding, end: Words) -> Words:
    """Ends that leave out the meetings beyond an instant without room."""
    instants = np.arange(len(holding.room))
    shut = np.where(holding.room > 0, len(instants), instants)
    shut = np.minimum.accumulate(shut[::-1])[::-1]
    until = np.empty_like(end)
    cut((holding.at, holding.first, end), holding.meets, shut, until)
    return until


def _bits(holding: Holding, first: Words, end: Words) -> int:
    """How fine prices may be, in bits, so that no sum of worths or of prices overflows."""
    # Floats first, for sums of whole numbers would overflow unseen.
    everything = np.concatenate([np.zeros(1), np.cumsum(holding.worth, dtype=np.float64)])
    together = max(float((everything[end] - everything[first]).sum()), float(everything[-1]))
    spare = _LARGEST - int(np.frexp(together)[1])
    if spare < 0:
        raise InputError(
            f"the worths of all meetings of all tuples must be less than 2 ** {_LARGEST} together, "
            f"got about {together:.3g}; divide all of them by the same number"
        )
    return min(spare, _FINEST)
