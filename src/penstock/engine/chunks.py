"""A batch in chunks: runs of time that are small enough to be taken at once.

A chunk holds, of every stream, the arrivals of the same stretch of time; an instant is never
split over two. Between chunks candidates are verified and taken and windows expire, so that
a long batch needs no more memory for its windows than a short one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from penstock.engine.arrivals import Arrivals

__all__ = ["CHUNK_ROWS", "chunks"]

CHUNK_ROWS: Final = 1 << 16


def chunks(batch: Sequence[Arrivals], limit: int = CHUNK_ROWS) -> Iterator[list[Arrivals]]:
    """Cut a batch in time order; about `limit` rows of a stream at most in each piece."""
    if all(len(arrivals) <= limit for arrivals in batch):
        if batch:
            yield list(batch)
        return
    begins = [0] * len(batch)
    while any(begin < len(arrivals) for begin, arrivals in zip(begins, batch, strict=True)):
        ends = _ends(batch, begins, limit)
        yield [
            arrivals.slice(begin, end)
            for arrivals, begin, end in zip(batch, begins, ends, strict=True)
        ]
        begins = ends


def _ends(batch: Sequence[Arrivals], begins: list[int], limit: int) -> list[int]:
    cuts = [
        int(arrivals.ts[begin + limit])
        for arrivals, begin in zip(batch, begins, strict=True)
        if begin + limit < len(arrivals)
    ]
    if not cuts:
        return [len(arrivals) for arrivals in batch]
    for side in ("left", "right"):
        # Up to the cut; if one instant fills the whole chunk, through it.
        ends = [int(np.searchsorted(arrivals.ts, min(cuts), side)) for arrivals in batch]
        if ends != begins:
            break
    return ends
