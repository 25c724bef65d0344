"""The ring of a window: append at the head, expire from the tail, bury in between.

Invariant: sequences tail..head-1 have a record; `live` of them are not DEAD, and exactly
those are in the index. The record at the tail is never dead (unless the ring is empty), so
a window that loses its tuples in order of arrival has no holes.
"""

from __future__ import annotations

from penstock.state import indexes
from penstock.state.arena import DEAD, State, Words
from penstock.state.jit import kernel

__all__ = ["append", "bury", "expire", "live_sequences", "sweep"]


@kernel
def append(state: State, number: int, ts: int, key: int, entry: int) -> None:
    """Keep a tuple at the head and index it. The caller has made room."""
    window = state.windows[number]
    position = window.head & window.mask
    record = state.records[window.ring + position]
    record.ts = ts
    record.key = key
    record.flags = 0
    indexes.insert(state, number, position, entry)
    window.head += 1
    window.live += 1


@kernel
def bury(state: State, number: int, position: int) -> None:
    """Take a live tuple out of the index and leave a hole. O(1)."""
    window = state.windows[number]
    indexes.remove(state, number, position)
    state.records[window.ring + position].flags |= DEAD
    window.live -= 1


@kernel
def _skip_holes(state: State, number: int) -> None:
    window = state.windows[number]
    while window.tail < window.head:
        if not state.records[window.ring + (window.tail & window.mask)].flags & DEAD:
            return
        window.tail += 1


@kernel
def expire(state: State, number: int, watermark: int) -> None:
    """Drop from the tail what a watermark has passed. O(dropped).

    It stops at the first tuple that stays: one that came early holds back those behind it.
    They can match nothing that is not late, so the answer does not change.
    """
    window = state.windows[number]
    while window.tail < window.head:
        position = window.tail & window.mask
        if state.records[window.ring + position].ts + window.length_us >= watermark:
            return
        bury(state, number, position)
        window.expired += 1
        window.tail += 1
        _skip_holes(state, number)


@kernel
def sweep(state: State, number: int, watermark: int) -> None:
    """Bury everything a watermark has passed, wherever it stands. O(ring)."""
    window = state.windows[number]
    for sequence in range(window.tail, window.head):
        position = sequence & window.mask
        record = state.records[window.ring + position]
        if record.ts + window.length_us < watermark and not record.flags & DEAD:
            bury(state, number, position)
            window.expired += 1
    _skip_holes(state, number)


@kernel
def live_sequences(state: State, number: int, out: Words) -> None:
    """Write the sequence numbers of the live tuples, oldest first."""
    window = state.windows[number]
    count = 0
    for sequence in range(window.tail, window.head):
        if not state.records[window.ring + (sequence & window.mask)].flags & DEAD:
            out[count] = sequence
            count += 1
