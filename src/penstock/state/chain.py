"""Chains: the tuples of one key or bucket, linked both ways in order of arrival.

The owner of a chain keeps its ends, two halves of a word: the newest position at
`halves[ends]`, the oldest right behind it, both NONE when the chain is empty. The links
between are in the records. Both verbs are O(1), wherever in the chain the tuple stands.
"""

from __future__ import annotations

from penstock.state.arena import NONE, State
from penstock.state.jit import kernel

__all__ = ["append", "unlink"]


@kernel
def append(state: State, ring: int, position: int, ends: int) -> None:
    """Link the record at `position` as the newest of the chain."""
    record = state.records[ring + position]
    newest = state.halves[ends]
    record.older = newest
    record.newer = NONE
    if newest == NONE:
        state.halves[ends + 1] = position
    else:
        state.records[ring + newest].newer = position
    state.halves[ends] = position


@kernel
def unlink(state: State, ring: int, position: int, ends: int) -> None:
    """Take the record at `position` out of the chain."""
    record = state.records[ring + position]
    older, newer = record.older, record.newer
    if older == NONE:
        state.halves[ends + 1] = newer
    else:
        state.records[ring + older].newer = newer
    if newer == NONE:
        state.halves[ends] = older
    else:
        state.records[ring + newer].older = older
