"""The scan: no index at all, the window is read from the newest tuple to the oldest.

Nothing to keep on insert; a probe is O(live). It is what nested loops join with, and in
tiny windows nothing beats it.
"""

from __future__ import annotations

from penstock.state.arena import DEAD, MUTE, State, word_at
from penstock.state.jit import kernel
from penstock.state.links import NOWHERE

__all__ = ["first", "following"]


@kernel
def first(state: State, number: int, low: int, high: int) -> int:
    """The newest tuple whose word is from low to high, or NOWHERE."""
    head = state.windows[state.paths[number].window].head
    return following(state, number, low, high, head)


@kernel
def following(state: State, number: int, low: int, high: int, sequence: int) -> int:
    """The next older such tuple, or NOWHERE."""
    tail = state.windows[state.paths[number].window].tail
    sequence -= 1
    while sequence >= tail:
        record = word_at(state, number, sequence)
        if low <= record.key <= high and not record.marks & (DEAD | MUTE):
            return sequence
        sequence -= 1
    return NOWHERE
