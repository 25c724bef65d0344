"""The ring of a window: append at the head, expire from the tail, bury in between.

Invariant: sequences tail..head-1 have a record, and `live` of them are not DEAD. The record
at the tail is never dead (unless the ring is empty), so a window that loses its tuples in
order of arrival has no holes.
"""

from __future__ import annotations

from penstock.state import indexes
from penstock.state.arena import DEAD, State, Words, record_at
from penstock.state.jit import kernel

__all__ = ["append", "bury", "expire", "expire_all", "live_sequences", "sweep"]


@kernel
def append(state: State, number: int, ts: int, key: int, entry: int) -> None:
    """Keep a tuple at the head and index it. The caller has made room."""
    window = state.windows[number]
    record = record_at(state, number, window.head)
    record.ts = ts
    record.key = key
    record.marks = 0
    indexes.insert(state, number, window.head, entry)
    window.head += 1
    window.live += 1


@kernel
def bury(state: State, number: int, sequence: int) -> None:
    """Leave a hole where a live tuple was. O(1)."""
    record_at(state, number, sequence).marks |= DEAD
    state.windows[number].live -= 1


@kernel
def _is_dead(state: State, number: int, sequence: int) -> bool:
    return record_at(state, number, sequence).marks & DEAD != 0


@kernel
def _has_passed(state: State, number: int, sequence: int, watermark: int) -> bool:
    ends = record_at(state, number, sequence).ts + state.windows[number].length_us
    return ends < watermark


@kernel
def expire(state: State, number: int, watermark: int) -> None:
    """Drop from the tail what a watermark has passed. O(dropped).

    It stops at the first tuple that stays: one that came early holds back those behind it.
    They can match nothing that is not late, so the answer does not change.
    """
    window = state.windows[number]
    while window.tail < window.head:
        if not _is_dead(state, number, window.tail):
            if not _has_passed(state, number, window.tail, watermark):
                return
            window.live -= 1
            window.expired += 1
        window.tail += 1


@kernel
def expire_all(state: State, watermark: int) -> None:
    """Let every window drop what a watermark has passed."""
    for number in range(state.join[0].streams):
        expire(state, number, watermark)


@kernel
def sweep(state: State, number: int, watermark: int) -> None:
    """Bury everything a watermark has passed, wherever it stands. O(ring)."""
    window = state.windows[number]
    for sequence in range(window.tail, window.head):
        dead = _is_dead(state, number, sequence)
        if not dead and _has_passed(state, number, sequence, watermark):
            bury(state, number, sequence)
            window.expired += 1
    expire(state, number, watermark)


@kernel
def live_sequences(state: State, number: int, out: Words) -> None:
    """Write the sequence numbers of the live tuples, oldest first."""
    window = state.windows[number]
    count = 0
    for sequence in range(window.tail, window.head):
        if not _is_dead(state, number, sequence):
            out[count] = sequence
            count += 1
