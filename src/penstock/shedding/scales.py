"""What follows from the lengths of windows: how fast what was learned fades, and what it is worth
to a tuple that its partners come.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.kernels.sentinels import NO_LIMIT
from penstock.model.query import Query
from penstock.model.window import FOREVER

__all__ = ["half_life_of", "scales_of"]

_LN_2: Final = float(np.log(2.0))


def _lengths(query: Query) -> list[int]:
    """Of the windows that end, in microseconds."""
    lengths = [window.slot_us or window.length_us for window in query.windows]
    return [length for length in lengths if 0 < length < FOREVER]


def half_life_of(query: Query) -> int:
    """What came a window ago counts half; if no window ends, all counts alike."""
    return max(_lengths(query), default=NO_LIMIT)


def scales_of(query: Query, half_life: int) -> list[float]:
    """What a tuple of each stream is worth if its partners come once each: see
    kernels.budget.worth."""
    lengths = [window.slot_us or window.length_us for window in query.windows]
    spans = [_LN_2 * length / half_life if 0 < length < FOREVER else 1.0 for length in lengths]
    streams = range(len(lengths))
    return [
        sum(
            float(np.prod([spans[other] for other in streams if other not in (own, last)]))
            for last in streams
            if last != own
        )
        for own in streams
    ]
