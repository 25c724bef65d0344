"""Matches: which tuples have met a partner, for the joins that must know.

A record is marked MATCHED after its match has been verified, never before: equal hashes are
not yet a match. A tuple that came out without a partner is marked too, so that it comes out
once. A matched tuple that is of no more use is buried at once; not in windows of N rows, where
it still counts as one.
"""

from __future__ import annotations

from penstock.kernels import ring
from penstock.kernels.arena import (
    MATCHED,
    MUTE,
    RANK_SHIFT,
    RANKS,
    Flags,
    State,
    Words,
    record_at,
)
from penstock.kernels.index import indexes
from penstock.kernels.jit import kernel
from penstock.kernels.links import NOWHERE

__all__ = ["are_matched", "first_matches", "mark", "outranked", "passed", "unmatched"]


@kernel
def mark(state: State, number: int, sequences: Words) -> None:
    """Mark tuples of a window as matched."""
    for sequence in sequences:
        record_at(state, number, sequence).marks |= MATCHED


@kernel
def first_matches(
    state: State, number: int, sequences: Words, bury: bool, are_first: Flags
) -> None:
    """Mark tuples, flag those that had no match before, and `bury` these unless rows count."""
    window = state.windows[number]
    for each in range(len(sequences)):
        record = record_at(state, number, sequences[each])
        are_first[each] = record.marks & MATCHED == 0
        record.marks |= MATCHED
        # What the loop has dropped in the meantime is counted already.
        in_ring = sequences[each] >= window.tail
        if are_first[each] and bury and window.rows == 0 and in_ring:
            ring.bury(state, number, sequences[each])
            window.expired += 1


@kernel
def are_matched(state: State, number: int, sequences: Words, flags: Flags) -> None:
    """Which of these tuples are marked."""
    for each in range(len(sequences)):
        flags[each] = record_at(state, number, sequences[each]).marks & MATCHED != 0


@kernel
def passed(state: State, number: int, begin: int, stop: int, watermark: int) -> int:
    """The first tuple of a run in order of time that is still in its window; `stop` if none."""
    window = state.windows[number]
    for sequence in range(begin, stop):
        in_ring = sequence >= window.tail
        if in_ring and ring.ends(window, record_at(state, number, sequence).ts) >= watermark:
            return sequence
    return stop


@kernel
def unmatched(state: State, number: int, begin: int, stop: int, out: Words) -> int:
    """Write the tuples of a run without a match, and mark them; return how many they are."""
    count = 0
    for sequence in range(begin, stop):
        record = record_at(state, number, sequence)
        if record.marks & (MATCHED | MUTE) == 0:  # without a key it came out when it arrived
            record.marks |= MATCHED
            out[count] = sequence
            count += 1
    return count


@kernel
def outranked(state: State, number: int, begin: int, out: Words) -> int:
    """The same for those that tuples from `begin` on have outranked, in a window by key.

    N new tuples of a key outrank N older ones, those right behind the window. O(rows per key and
    new tuples), for each key.
    """
    window = state.windows[number]
    count = 0
    for sequence in range(begin, window.head):
        record = record_at(state, number, sequence)
        key = record.key
        entry = indexes.locate(state, window.paths, key)
        newest, cursor = indexes.newest(state, number, key, entry)
        if newest != sequence:
            continue  # a newer one of its key sees to it
        new, own_rank = 1, record.marks >> RANK_SHIFT
        older, cursor = indexes.older(state, number, key, (sequence, cursor))
        while older != NOWHERE:
            if older >= begin:
                new += 1
            rank = record_at(state, number, older).marks >> RANK_SHIFT
            behind = (own_rank - rank) & (RANKS - 1)
            if behind >= window.rows + new:
                break
            if behind >= window.rows:
                count += unmatched(state, number, older, older + 1, out[count:])
            older, cursor = indexes.older(state, number, key, (older, cursor))
    return count
