"""The ring of a window: append at the head, expire from the tail, bury in between.

Invariant: sequences tail..head-1 have a record, and `live` of them are not DEAD. The record
at the tail is never dead (unless the ring is empty), so a window that loses its tuples in
order of arrival has no holes.

A window of N rows drops its oldest tuple when one comes that is too many. One of N rows per key
does not look for that tuple: every tuple has a rank, which says how many of its key came before
it, so a probe sees which are outranked by newer ones. They are not counted as live, and
`bury_outranked` takes them out when the ring is gone through anyway.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.kernels.arena import (
    DEAD,
    MUTE,
    RANK_SHIFT,
    RANKS,
    State,
    Words,
    is_plain,
    record_at,
    word_at,
)
from penstock.kernels.budget.presence import on_enter, on_leave
from penstock.kernels.index import indexes
from penstock.kernels.jit import kernel
from penstock.kernels.links import NOWHERE

__all__ = [
    "MUTED", "append", "bury", "bury_outranked", "ends", "expire", "expire_all", "is_outranked",
    "live_sequences", "pass_by", "place", "sweep", "trim",
]  # fmt: skip


MUTED: Final = -1


@kernel
def ends(window: Any, ts: int) -> int:
    """The last time at which a tuple is in a window: `Window.ends` of the model."""
    if window.slot_us > 0:
        return (ts // window.slot_us + 1) * window.slot_us - 1
    return int(ts + window.length_us)


@kernel
def _rank(state: State, number: int, sequence: int) -> int:
    return int(record_at(state, number, sequence).marks >> RANK_SHIFT)


@kernel
def is_outranked(state: State, number: int, newest: int, sequence: int) -> bool:
    """Whether newer tuples of its key have pushed a tuple out of the window."""
    distance = (_rank(state, number, newest) - _rank(state, number, sequence)) & (RANKS - 1)
    return distance >= state.windows[number].rows


@kernel
def place(state: State, number: int, ts: int, words: Any, at: int) -> None:
    """Write an arrival to the head of the ring, where it is found by nothing but its place.

    words[w, at] is its word for path w. The caller has made room.
    """
    window = state.windows[number]
    record = record_at(state, number, window.head)
    record.ts = ts
    record.key = words[0, at]
    record.marks = 0
    if is_plain(state):
        return
    for word in range(1, window.words):
        record = word_at(state, window.paths + word, window.head)
        record.ts = ts
        record.key = words[word, at]
        record.marks = 0


@kernel
def append(state: State, number: int, entry: int) -> None:
    """Keep the tuple that was placed at the head, and index it.

    entry: where its first word was located, or MUTED for a tuple that meets nothing.
    """
    window = state.windows[number]
    record = record_at(state, number, window.head)
    is_one_more = True
    if window.per_key > 0 and entry != MUTED:
        newest, _ = indexes.newest(state, number, record.key, entry)
        if newest != NOWHERE:
            rank = _rank(state, number, newest) + 1
            # Once ranks have come round to where they began, all that were counted are gone.
            is_one_more = rank < window.rows and rank < RANKS
            record.marks = (rank & (RANKS - 1)) << RANK_SHIFT
    if entry == MUTED:
        _mark(state, number, window.head, MUTE)
    else:
        indexes.insert(state, window.paths, window.head, entry)
        last = window.paths if is_plain(state) else window.paths + window.words - 1
        for path in range(window.paths + 1, last + 1):
            key = word_at(state, path, window.head).key
            indexes.insert(state, path, window.head, indexes.locate(state, path, key))
    window.head += 1
    if is_one_more:
        window.live += 1
    else:
        window.expired += 1  # an older one of its key, wherever it is
    on_enter(state, number)
    trim(state, number)


@kernel
def pass_by(state: State, number: int) -> None:
    """Leave a guest that was placed at the head there as a hole: no index has it, no chain goes on
    behind it."""
    _mark(state, number, state.windows[number].head, DEAD | MUTE)
    state.windows[number].head += 1


@kernel
def _mark(state: State, number: int, sequence: int, mark: int) -> None:
    window = state.windows[number]
    record_at(state, number, sequence).marks |= mark
    if is_plain(state):
        return
    for path in range(window.paths + 1, window.paths + window.words):
        word_at(state, path, sequence).marks |= mark


@kernel
def _count_out(state: State, number: int) -> None:
    """The oldest tuple, which is live, leaves."""
    window = state.windows[number]
    indexes.remove(state, number, window.tail)
    on_leave(state, number, window.tail)
    window.live -= 1
    window.expired += 1


@kernel
def trim(state: State, number: int) -> None:
    """Drop from the tail what is more than a window of N rows holds."""
    window = state.windows[number]
    if window.rows == 0 or window.per_key > 0:
        return
    while window.live > window.rows:
        if not _is_dead(state, number, window.tail):
            _count_out(state, number)
        window.tail += 1


@kernel
def bury(state: State, number: int, sequence: int) -> None:
    """Leave a hole where a live tuple was. O(1), and what its indexes need."""
    indexes.remove(state, number, sequence)
    on_leave(state, number, sequence)
    _mark(state, number, sequence, DEAD)
    state.windows[number].live -= 1


@kernel
def _is_dead(state: State, number: int, sequence: int) -> bool:
    return record_at(state, number, sequence).marks & DEAD != 0


@kernel
def _has_passed(state: State, number: int, sequence: int, watermark: int) -> bool:
    return ends(state.windows[number], record_at(state, number, sequence).ts) < watermark


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
            _count_out(state, number)
        window.tail += 1


@kernel
def expire_all(state: State, watermark: int) -> None:
    """Let every window drop what a watermark has passed."""
    for number in range(len(state.windows)):
        window = state.windows[number]
        # By key only the end of all streams does; those outranked have been counted before.
        by_key = window.per_key > 0 and window.tail < window.head
        if by_key and _has_passed(state, number, window.tail, watermark):
            bury_outranked(state, number)
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
def bury_outranked(state: State, number: int) -> None:
    """Mark what newer tuples of the same key have outranked. O(ring), times a probe."""
    window = state.windows[number]
    if window.per_key == 0:
        return
    for sequence in range(window.tail, window.head):
        if not _is_dead(state, number, sequence):
            key = record_at(state, number, sequence).key
            entry = indexes.locate(state, window.paths, key)
            newest, _ = indexes.newest(state, number, key, entry)
            if is_outranked(state, number, newest, sequence):
                indexes.remove(state, number, sequence)
                _mark(state, number, sequence, DEAD)  # counted as expired already


@kernel
def live_sequences(state: State, number: int, out: Words) -> None:
    """Write the sequence numbers of the live tuples, oldest first."""
    window = state.windows[number]
    count = 0
    for sequence in range(window.tail, window.head):
        if not _is_dead(state, number, sequence):
            out[count] = sequence
            count += 1
