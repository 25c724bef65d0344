"""The scan: no index at all, the window is read from the newest tuple to the oldest.

Nothing to keep on insert; a probe is O(live). It is what nested loops join with, and in
tiny windows nothing beats it.
"""

from __future__ import annotations

from penstock.state.arena import DEAD, MUTE, State, record_at
from penstock.state.jit import kernel
from penstock.state.links import NOWHERE

__all__ = ["first", "following"]


@kernel
def first(state: State, number: int, key: int) -> int:
    """The newest tuple of a key, or NOWHERE."""
    return following(state, number, key, state.windows[number].head)


@kernel
def following(state: State, number: int, key: int, sequence: int) -> int:
    """The next older tuple of a key, or NOWHERE."""
    sequence -= 1
    while sequence >= state.windows[number].tail:
        record = record_at(state, number, sequence)
        if record.key == key and not record.marks & (DEAD | MUTE):
            return sequence
        sequence -= 1
    return NOWHERE
