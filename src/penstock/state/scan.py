"""The scan: no index at all, the window is read from the newest tuple to the oldest.

Nothing to keep on insert and remove; a probe is O(live). It is what nested loops join with,
and in tiny windows nothing beats it.
"""

from __future__ import annotations

from penstock.state.arena import DEAD, NONE, State, sequence_of
from penstock.state.jit import kernel

__all__ = ["first", "following"]


@kernel
def _matching(state: State, number: int, key: int, sequence: int) -> int:
    window = state.windows[number]
    while sequence >= window.tail:
        position = sequence & window.mask
        record = state.records[window.ring + position]
        if record.key == key and not record.flags & DEAD:
            return position
        sequence -= 1
    return NONE


@kernel
def first(state: State, number: int, key: int) -> int:
    """The newest tuple of a key, or NONE."""
    return _matching(state, number, key, state.windows[number].head - 1)


@kernel
def following(state: State, number: int, key: int, position: int) -> int:
    """The next older tuple of a key, or NONE."""
    return _matching(state, number, key, sequence_of(state.windows[number], position) - 1)
