"""Combinations that are lost: candidates with a ghost in them, or found by an arrival that should
not have looked.

They are verified as all candidates are, on the columns that ghosts have kept, and then counted
instead of given out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.engine.candidates import Candidates
from penstock.kernels.arena import Flags, Words
from penstock.kernels.budget import ghosts
from penstock.kernels.sentinels import SKIPPED
from penstock.model.binding import Binding
from penstock.windows.payload.column import TooLong
from penstock.windows.windows import Windows

__all__ = ["are_lost", "count_lost"]


def are_lost(rows: Words) -> Flags:
    """Which candidates have a ghost, in the place of a stream's sequence number, or an arrival
    that should not have looked for them."""
    return np.any((rows[:-1] < 0) | (rows[:-1] >= SKIPPED), axis=0)


def count_lost(windows: Windows, binding: Binding, rows: Words) -> None:
    """Verify candidates that are lost, and count those that hold."""
    streams = np.arange(len(rows) - 1)
    # Bits for the streams that have a ghost, and for those whose arrival should not have looked.
    which = (rows[:-1] < 0).T @ (1 << streams)
    which += (rows[:-1] >= SKIPPED).T @ (1 << streams + len(streams))
    for bits in np.flatnonzero(np.bincount(which)):
        chosen = np.ascontiguousarray(rows[:, which == bits])
        pattern = bits >> streams & 1 == 1
        skipped = SKIPPED * (bits >> streams + len(streams) & 1)
        chosen[:-1] -= skipped[:, None]
        for held in _held(windows, binding, chosen, pattern):
            # As they were found: a ghost has a negative sign.
            signed = np.where(pattern[:, None], ~held[:-1], held[:-1]) + skipped[:, None]
            signed = np.ascontiguousarray(signed)
            if binding.query.is_semi:
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
