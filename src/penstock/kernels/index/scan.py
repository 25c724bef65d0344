"""The scan: no index at all, the window is read from the newest tuple to the oldest.

Nothing to keep on insert; a probe is O(live). It is what nested loops join with, and nothing
beats it where a small window is seldom asked.

Tuples are read by eights: of these it is asked only whether any is as asked, and then which. One
by one, in the loop of the join, which has more in hand than there are registers, each tuple took
two to four times as long.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.kernels.arena import DEAD, MUTE, State
from penstock.kernels.jit import kernel, outlined
from penstock.kernels.links import NOWHERE

__all__ = ["first", "following"]

_EIGHT: Final = 8


@outlined
def _read(
    records: Any, ring: tuple[int, int], tail: int, asked: tuple[int, int], sequence: int
) -> int:
    """The newest tuple before `sequence` whose word is as asked, from least to greatest. ring:
    where it starts, and its mask."""
    begin, mask = ring
    low, high = asked
    while sequence > tail:
        while sequence - _EIGHT >= tail:
            hits = 0
            for back in range(1, _EIGHT + 1):
                key = records[begin + ((sequence - back) & mask)].key
                hits += (low <= key) & (key <= high)
            if hits > 0:
                break
            sequence -= _EIGHT
        stop = max(sequence - _EIGHT, tail)
        while sequence > stop:
            sequence -= 1
            record = records[begin + (sequence & mask)]
            if low <= record.key <= high and not record.marks & (DEAD | MUTE):
                return sequence
    return NOWHERE


@kernel
def first(state: State, number: int, low: int, high: int) -> int:
    """The newest tuple whose word is from low to high, or NOWHERE."""
    head = state.windows[state.paths[number].window].head
    return following(state, number, low, high, head)


@kernel
def following(state: State, number: int, low: int, high: int, sequence: int) -> int:
    """The next older such tuple, or NOWHERE."""
    path = state.paths[number]
    tail = state.windows[path.window].tail
    return _read(state.records, (path.ring, path.mask), tail, (low, high), sequence)
