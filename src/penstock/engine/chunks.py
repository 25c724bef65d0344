"""A batch in chunks: runs of time that are small enough to be taken at once.

A chunk holds, of every stream, the arrivals of the same stretch of time; an instant is never
split over two. Between chunks candidates are verified and taken and windows expire, so that
a long batch needs no more memory for its windows than a short one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from penstock.engine.arrivals import Arrivals

__all__ = ["chunks"]


def chunks(batch: Mapping[int, Arrivals], limit: int) -> Iterator[Mapping[int, Arrivals]]:
    """Cut a batch in time order; about `limit` rows of a stream at most in each piece."""
    if all(len(arrivals.ts) <= limit for arrivals in batch.values()):
        if batch:
            yield batch
        return
    begins = dict.fromkeys(batch, 0)
    while any(begins[stream] < len(arrivals) for stream, arrivals in batch.items()):
        ends = _ends(batch, begins, limit)
        yield {
            stream: arrivals.slice(begins[stream], ends[stream])
            for stream, arrivals in batch.items()
            if begins[stream] < ends[stream]
        }
        begins = ends


def _ends(batch: Mapping[int, Arrivals], begins: dict[int, int], limit: int) -> dict[int, int]:
    cuts = [
        int(arrivals.ts[begins[stream] + limit])
        for stream, arrivals in batch.items()
        if begins[stream] + limit < len(arrivals)
    ]
    if not cuts:
        return {stream: len(arrivals) for stream, arrivals in batch.items()}
    for side in ("left", "right"):
        # Up to the cut; if one instant fills the whole chunk, through it.
        ends = {
            stream: int(np.searchsorted(arrivals.ts, min(cuts), side))
            for stream, arrivals in batch.items()
        }
        if ends != begins:
            break
    return ends
