"""The queue of a window: its tuples by level of worth, those of a level in order.

A level is a list, linked both ways through an entry for each position of the ring, so a tuple
leaves from anywhere. A tuple's record has its level in its marks, where ranks are in windows that
count. What a level means is not said here. Worked example, tuples 7 and 9 of
level 2, 8 of level 5:

    entries   7: nothing before, 9 behind     8: alone     9: 7 before, nothing behind
    levels    first[2] = 7, last[2] = 9, first[5] = last[5] = 8; bits 2 and 5 are set

    enter, leave: O(1).  lowest: O(LEVELS / 64)
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.kernels.arena import RANK_SHIFT, RECORD, State, has_budget, record_at
from penstock.kernels.budget.records import ENTRY_WORDS, LEVELS, QUEUE_WORDS
from penstock.kernels.intrinsics.prefetch import prefetch
from penstock.kernels.jit import kernel
from penstock.kernels.links import LINK_MASK, NOWHERE

__all__ = [
    "check", "clear", "enter", "first", "following_level", "leave", "level_of", "lowest", "prepare",
    "stay", "unlink", "value_of",
]  # fmt: skip

_BEFORE: Final = 0
_BEHIND: Final = 1
_FLAGS: Final = (1 << RANK_SHIFT) - 1
_NOBODY: Final = -1
_RECORD_WORDS: Final = RECORD.itemsize // 8
_GAIN: Final = 0.05  # of a stay that is learned
_FAR: Final = 16


@kernel
def _entry(state: State, number: int, sequence: int) -> int:
    """The half where an entry starts."""
    place = sequence & state.windows[number].mask
    return 2 * (state.quotas[number].entries + ENTRY_WORDS * place)


@kernel
def prepare(state: State, number: int, sequence: int) -> None:
    """Prefetch the entry and the record of a tuple that may soon leave."""
    window = state.windows[number]
    prefetch(state.words, _entry(state, number, sequence) >> 1)
    prefetch(state.words, _RECORD_WORDS * (window.ring + (sequence & window.mask)))


@kernel
def _linked(state: State, number: int, link: int) -> int:
    """The tuple that a link of an entry leads to: always one that is in the ring."""
    if link == _NOBODY:
        return NOWHERE
    newest = state.windows[number].head - 1
    return newest - ((newest - link) & LINK_MASK)


@kernel
def _bits(quota: Any) -> int:
    return quota.levels + 2 * LEVELS


@kernel
def clear(state: State, number: int) -> None:
    """Empty all levels. What is known of stays is kept."""
    quota = state.quotas[number]
    for level in range(2 * LEVELS):
        state.words[quota.levels + level] = NOWHERE
    for each in range(_bits(quota), _bits(quota) + LEVELS // 64):
        state.words[each] = 0


@kernel
def first(state: State, number: int, level: int) -> int:
    """The tuple of a level that entered first, or NOWHERE."""
    return state.words[state.quotas[number].levels + level]


@kernel
def level_of(state: State, number: int, sequence: int) -> int:
    """The level of a tuple that is in the queue."""
    return record_at(state, number, sequence).marks >> RANK_SHIFT


@kernel
def value_of(state: State, number: int, sequence: int) -> float:
    """What results with a tuple are worth to the user."""
    return state.floats[state.quotas[number].values + (sequence & state.windows[number].mask)]


@kernel
def stay(state: State, number: int, level: int) -> float:
    """How long tuples of a level have been kept of late; 0 when none has left."""
    return state.floats[state.quotas[number].levels + QUEUE_WORDS + level]


@kernel
def lowest(state: State, number: int) -> int:
    """The lowest level with a tuple in it; LEVELS if there is none."""
    quota = state.quotas[number]
    quota.lowest = following_level(state, number, quota.lowest)
    return quota.lowest


@kernel
def following_level(state: State, number: int, level: int) -> int:
    """The lowest level from `level` on with a tuple in it; LEVELS if there is none."""
    bits = _bits(state.quotas[number])
    word = level >> 6
    if level >= LEVELS:
        return LEVELS
    there = np.uint64(state.words[bits + word]) >> np.uint64(level & 63)
    if there == np.uint64(0):
        word += 1
        while word < LEVELS // 64 and state.words[bits + word] == 0:
            word += 1
        if word == LEVELS // 64:
            return LEVELS
        there = np.uint64(state.words[bits + word])
        level = word << 6
    # A float's exponent is the place of the only bit.
    lowest = there & (~there + np.uint64(1))
    exponent: Any = np.int64(np.float64(lowest).view(np.int64)) >> 52
    return level + exponent - 1023


@kernel
def enter(state: State, number: int, sequence: int, level: int) -> None:
    """Put a tuple in its place by age among those of a level: the newest behind all others. One
    that moves up is among the oldest, and is not looked for far."""
    quota = state.quotas[number]
    entry = _entry(state, number, sequence)
    quota.lowest = min(quota.lowest, level)
    record = record_at(state, number, sequence)
    record.marks = (record.marks & _FLAGS) | (level << RANK_SHIFT)
    before = state.words[quota.levels + LEVELS + level]
    behind = NOWHERE
    if before != NOWHERE and sequence < before:
        before, behind = NOWHERE, state.words[quota.levels + level]
        for _ in range(_FAR):
            if sequence < behind:
                break
            before = behind
            behind = _linked(state, number, state.halves[_entry(state, number, behind) + _BEHIND])
    state.halves[entry + _BEFORE] = _NOBODY if before == NOWHERE else before & LINK_MASK
    state.halves[entry + _BEHIND] = _NOBODY if behind == NOWHERE else behind & LINK_MASK
    if before != NOWHERE:
        state.halves[_entry(state, number, before) + _BEHIND] = sequence & LINK_MASK
    else:
        state.words[quota.levels + level] = sequence
        state.words[_bits(quota) + (level >> 6)] |= np.int64(1) << (level & 63)
    if behind != NOWHERE:
        state.halves[_entry(state, number, behind) + _BEFORE] = sequence & LINK_MASK
    else:
        state.words[quota.levels + LEVELS + level] = sequence


@kernel
def leave(state: State, number: int, sequence: int) -> None:
    """Take out a tuple that leaves its window, if there is a queue."""
    if not has_budget(state) or number >= state.join[0].streams:
        return
    if state.quotas[number].levels == 0:
        return
    if state.budget[0].stays:
        _learn_stay(state, number, sequence)
    unlink(state, number, sequence)


@kernel
def unlink(state: State, number: int, sequence: int) -> None:
    """Take a tuple out of its level."""
    quota = state.quotas[number]
    entry = _entry(state, number, sequence)
    level = level_of(state, number, sequence)
    before = _linked(state, number, state.halves[entry + _BEFORE])
    behind = _linked(state, number, state.halves[entry + _BEHIND])
    if before == NOWHERE and behind != NOWHERE:
        quota.next = behind
        prepare(state, number, behind)
    if before == NOWHERE:
        state.words[quota.levels + level] = behind
    else:
        state.halves[_entry(state, number, before) + _BEHIND] = state.halves[entry + _BEHIND]
    if behind == NOWHERE:
        state.words[quota.levels + LEVELS + level] = before
        if before == NOWHERE:
            state.words[_bits(quota) + (level >> 6)] &= ~(np.int64(1) << (level & 63))
    else:
        state.halves[_entry(state, number, behind) + _BEFORE] = state.halves[entry + _BEFORE]


@kernel
def _learn_stay(state: State, number: int, sequence: int) -> None:
    """Learn how long tuples of a level are kept, from one that leaves now."""
    quota = state.quotas[number]
    level = level_of(state, number, sequence)
    kept = float(state.budget[0].instant - record_at(state, number, sequence).ts)
    at = quota.levels + QUEUE_WORDS + level
    known = state.floats[at]
    state.floats[at] = kept if known == 0.0 else known + _GAIN * (kept - known)


def check(state: State, number: int, live: set[int]) -> None:
    """Raise AssertionError unless each live tuple is in one level, and nothing else is."""
    if state.quotas[number].levels == 0:
        return
    found: list[int] = []
    level = following_level(state, number, 0)
    while level < LEVELS:
        before, sequence = NOWHERE, int(first(state, number, level))
        while sequence != NOWHERE:
            entry = _entry(state, number, sequence)
            assert level_of(state, number, sequence) == level
            assert _linked(state, number, state.halves[entry + _BEFORE]) == before
            found.append(sequence)
            before = sequence
            sequence = int(_linked(state, number, state.halves[entry + _BEHIND]))
        assert state.words[state.quotas[number].levels + LEVELS + level] == before
        level = following_level(state, number, level + 1)
    assert len(found) == len(set(found))
    assert set(found) == live
