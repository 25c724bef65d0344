"""Combinations that are lost: candidates with a ghost in them.

They are verified as all candidates are, on the columns that ghosts have kept, and then counted
instead of given out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.engine.candidates import Candidates
from penstock.model.binding import Binding
from penstock.shedding import ghosts
from penstock.state.arena import Flags, Words
from penstock.state.column import TooLong
from penstock.state.windows import Windows

__all__ = ["are_lost", "count_lost"]


def are_lost(rows: Words) -> Flags:
    """Which candidates have a ghost, in the place of a stream's sequence number."""
    return np.any(rows[:-1] < 0, axis=0)


def count_lost(windows: Windows, binding: Binding, rows: Words) -> None:
    """Verify candidates that have ghosts, and count those that hold."""
    streams = np.arange(len(rows) - 1)
    which = (rows[:-1] < 0).T @ (1 << streams)  # one bit for each stream that has a ghost
    for bits in np.flatnonzero(np.bincount(which)):
        chosen = np.ascontiguousarray(rows[:, which == bits])
        pattern = bits >> streams & 1 == 1
        for held in _held(windows, binding, chosen, pattern):
            # As they were found: what is a ghost is told by its sign.
            signed = np.ascontiguousarray(np.where(pattern[:, None], ~held[:-1], held[:-1]))
            if binding.query.how == "semi":
                ghosts.meet_all(windows.state, signed)
            else:
                ghosts.charge_all(windows.state, signed)


def _held(windows: Windows, binding: Binding, rows: Words, pattern: Flags) -> Iterator[Words]:
    """The rows whose candidates hold, with plain sequence numbers, in pieces."""
    rows = rows.copy()
    rows[:-1][pattern] = ~rows[:-1][pattern]
    of = [
        number + windows.streams if is_ghost else number for number, is_ghost in enumerate(pattern)
    ]
    pieces = [Candidates(windows, binding, rows, of)]
    while pieces:
        candidates = pieces.pop()
        try:
            yield candidates.verified().rows
        except (TooLong, pa.ArrowInvalid):
            if len(candidates) == 1:
                raise
            pieces += candidates.halves()
