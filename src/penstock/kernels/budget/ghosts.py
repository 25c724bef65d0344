"""Ghosts: what is left of tuples that were shed, to count the results that are lost with them.

A ghost has its tuple's time and words, and of its columns those that predicates need. A result
with a ghost in it is lost; it is counted once, when the last of its tuples comes, and charged to
the first stream whose tuple is a ghost.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from penstock.kernels import ring
from penstock.kernels.arena import (
    DEAD,
    MATCHED,
    MET,
    RANK_SHIFT,
    UNPROBED,
    State,
    Words,
    is_plain,
    record_at,
    word_at,
)
from penstock.kernels.budget import queue
from penstock.kernels.budget.losses import (
    CODES_AN_OCTAVE,
    chance_of,
    code_now,
    count,
    count_met,
    lot,
    spread,
)
from penstock.kernels.budget.records import ENTRY_WORDS, NOTE_WORDS
from penstock.kernels.budget.worth import level_now
from penstock.kernels.index import indexes
from penstock.kernels.jit import kernel
from penstock.kernels.sentinels import BEGINNING, SKIPPED

__all__ = [
    "chances",
    "charge",
    "charge_all",
    "has_room",
    "lay",
    "levels",
    "meet_all",
    "raise_all",
    "sources",
    "thin",
]  # fmt: skip


# Where tuples have a rank, a ghost has its level and, above it, the code of its chance.
LEVEL_BITS: Final = 10
_CODE_SHIFT: Final = RANK_SHIFT + LEVEL_BITS
_LEVEL_MASK: Final = (1 << LEVEL_BITS) - 1


@kernel
def _level(record: Any) -> int:
    return record.marks >> RANK_SHIFT & _LEVEL_MASK


@kernel
def _chance(record: Any) -> float:
    """The chance of being kept that a ghost had up to now."""
    return chance_of(record.marks >> _CODE_SHIFT)


def levels(marks: Words) -> Words:
    """The levels of ghosts."""
    found: Words = marks >> RANK_SHIFT & _LEVEL_MASK
    return found


def chances(marks: Words) -> npt.NDArray[np.float64]:
    """The chances of being kept that ghosts had up to now."""
    codes = marks >> _CODE_SHIFT
    return np.exp2(-codes / CODES_AN_OCTAVE)


@kernel
def _lot(state: State, number: int, key: int, tuple_number: int) -> float:
    """The lot of what is left of a tuple of stream `number`. In semi joins all of one key have the
    same: whether a tuple has met ghosts is known for all it could meet or for none."""
    if state.budget[0].stops:
        return lot(state, key, 0)
    return lot(state, tuple_number, number)


@kernel
def _lot_of(state: State, number: int, ghost: int) -> float:
    streams = state.join[0].streams
    mask = state.windows[streams + number].mask
    note = state.quotas[number].notes + NOTE_WORDS * (ghost & mask)
    key = record_at(state, streams + number, ghost).key
    return _lot(state, number, key, state.words[note + 2])


@kernel
def has_room(state: State, number: int) -> bool:
    """Whether there is room for another ghost of a stream."""
    streams = state.join[0].streams
    window = state.windows[streams + number]
    if window.head - state.quotas[number].floor > window.mask:
        return False
    held = 0
    for ghosts in range(streams, len(state.windows)):
        held += state.windows[ghosts].live
    return held < state.budget[0].most_ghosts and indexes.has_room(state, streams + number)


@kernel
def lay(state: State, number: int, sequence: int) -> bool:
    """Leave a ghost of a tuple, which may be at the head still, if one is to be kept; return False
    if there was no room for it."""
    if state.budget[0].ghost_paths == 0:
        return True
    quota = state.quotas[number]
    ghosts = state.join[0].streams + number
    window = state.windows[ghosts]
    record = record_at(state, number, sequence)
    level = 0
    if state.budget[0].stops:
        pass  # the chance of a ghost must not depend on the level
    elif quota.levels > 0 and quota.ages == 0 and sequence != state.windows[number].head:
        level = queue.level_of(state, number, sequence)
    elif state.budget[0].uniform < 1.0:
        level = level_now(state, number, sequence)
    place = sequence & state.windows[number].mask
    tuple_number = state.words[quota.entries + ENTRY_WORDS * place + 1]
    code = 0
    if state.budget[0].uniform < 1.0:
        code = code_now(state, level)
        if _lot(state, number, record.key, tuple_number) >= chance_of(code):
            return True
    if not has_room(state, number):
        return False
    own = state.windows[number]
    last = own.paths if is_plain(state) else own.paths + own.words - 1
    for path in range(own.paths, last + 1):
        was = word_at(state, path, sequence)
        of_ghosts = path + state.budget[0].ghost_paths
        now = word_at(state, of_ghosts, window.head)
        now.ts, now.key = was.ts, was.key
        now.marks = code << _CODE_SHIFT | level << RANK_SHIFT | was.marks & UNPROBED
        entry = indexes.locate(state, of_ghosts, was.key)
        indexes.insert(state, of_ghosts, window.head, entry)
    note = quota.notes + NOTE_WORDS * (window.head & window.mask)
    # With disorder a later arrival may be of an earlier time: what is after this came afterwards.
    state.words[note], state.words[note + 1] = sequence, state.budget[0].newest
    state.words[note + 2] = tuple_number
    window.head += 1
    window.live += 1
    return True


@kernel
def raise_all(state: State, number: int, saved: Any, begin: int) -> int:
    """Restore ghosts of a stream, from `begin` on; return where it had to stop for want of room.

    saved: times, words[w] for path w, marks, and in notes[0] and notes[1] when they were shed and
    their numbers.
    """
    ts, words, marks, notes = saved
    ghosts = state.join[0].streams + number
    window = state.windows[ghosts]
    for each in range(begin, len(ts)):
        if not indexes.has_room(state, ghosts):
            return each
        ring.place(state, ghosts, ts[each], words, each)
        for word in range(window.words):
            word_at(state, window.paths + word, window.head).marks = marks[each]
        note = state.quotas[number].notes + NOTE_WORDS * (window.head & window.mask)
        state.words[note + 1], state.words[note + 2] = notes[0, each], notes[1, each]
        entry = indexes.locate(state, window.paths, words[0, each])
        ring.append(state, ghosts, entry)
    return len(ts)


@kernel
def sources(state: State, number: int, out: Words) -> None:
    """The tuples that the ghosts of a stream were, from the first that was not noted yet."""
    quota = state.quotas[number]
    window = state.windows[state.join[0].streams + number]
    for each in range(len(out)):
        out[each] = state.words[quota.notes + NOTE_WORDS * ((quota.noted + each) & window.mask)]


@kernel
def charge(state: State, rows: Words, at: int) -> None:
    """Count a result that is lost. rows[j, at]: ~sequence number if stream j has a ghost, and
    sequence number + SKIPPED if it has the arrival that found it and should not have looked."""
    streams = state.join[0].streams
    skipped, charged, had = -1, -1, 1.0
    for number in range(streams):
        if rows[number, at] < 0:
            charged = number if charged < 0 else charged
            had *= _chance(record_at(state, streams + number, ~rows[number, at]))
        elif rows[number, at] >= SKIPPED:
            skipped = number
    if skipped >= 0:
        charged = skipped
        had *= state.budget[0].looks
        state.quotas[skipped].unprobed_lost += state.budget[0].sign / had
    count(state, charged, had)
    if had < 1.0:  # the sample estimates it
        for number in range(streams):
            if rows[number, at] < 0:
                own = _chance(record_at(state, streams + number, ~rows[number, at]))
                spread(state, _lot_of(state, number, ~rows[number, at]), own, had)
        if skipped >= 0:
            of = lot(state, rows[skipped, at], streams + skipped)
            spread(state, of, state.budget[0].looks, had)


@kernel
def charge_all(state: State, rows: Words) -> None:
    """Count results that are lost."""
    for at in range(rows.shape[1]):
        charge(state, rows, at)


@kernel
def meet_all(state: State, rows: Words) -> None:
    """Count left tuples of a semi join that are lost: ghosts that meet something, and note which
    tuples have met ghosts, in case they meet nothing else."""
    streams = state.join[0].streams
    for at in range(rows.shape[1]):
        sequence = rows[0, at]
        if sequence >= 0:
            record = record_at(state, 0, sequence)
            if record.marks & (MATCHED | MET) == 0:
                record.marks |= MET
                if sequence < state.windows[0].tail:  # it has left before this was known
                    count_met(state, record.key)
        else:
            record = record_at(state, streams, ~sequence)
            if record.marks & MATCHED == 0:
                record.marks |= MATCHED
                charge(state, rows, at)


@kernel
def thin(state: State) -> None:
    """Lower the chances of ghosts to those that new ones have, and bury what that leaves out."""
    for ghosts in range(state.join[0].streams, len(state.windows)):
        window = state.windows[ghosts]
        for sequence in range(window.tail, window.head):
            record = record_at(state, ghosts, sequence)
            if record.marks & DEAD:
                continue
            lower = code_now(state, _level(record))
            if lower > record.marks >> _CODE_SHIFT:
                record.marks = lower << _CODE_SHIFT | record.marks & (1 << _CODE_SHIFT) - 1
                of = _lot_of(state, ghosts - state.join[0].streams, sequence)
                if of >= chance_of(lower):
                    ring.bury(state, ghosts, sequence)
        ring.expire(state, ghosts, BEGINNING)  # holes at the tail
