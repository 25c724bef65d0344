"""What age shows: which tuples match, by how long they have been in their window.

For joins whose partners come after a typical time: a payment some minutes after its order. A
window's length is divided into stretches of age. For each the policy learns how many partners a
tuple meets in it: matches over the tuples that were there to be met (Srivastava and Widom's
age-based model). A tuple is worth the best mean of that which it can still reach: so one whose
time has passed goes first, and one whose time is near is kept.

A tuple's level in the queue is its stretch; it is moved on when the time has come.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.kernels.arena import DEAD, State, record_at
from penstock.kernels.budget import queue
from penstock.kernels.budget.records import AGES
from penstock.kernels.jit import kernel
from penstock.kernels.links import NOWHERE

__all__ = ["cheapest", "learn", "match", "stretch"]

# Three numbers of each stretch, in runs of AGES.
_MATCHES: Final = 0
_THERE: Final = 1
_WORTHS: Final = 2
_FADING: Final = 0.5  # of what was known, each time it is learned from anew


@kernel
def _length(window: Any) -> int:
    return window.slot_us if window.slot_us > 0 else max(window.length_us, 1)


@kernel
def stretch(state: State, number: int, ts: int, now: int) -> int:
    """The stretch of age that a tuple of a stream is in."""
    # In floats: AGES times an age of millennia would not fit in an integer.
    age = float(max(now - ts, 0)) / float(_length(state.windows[number]) + 1)
    return min(int(age * AGES), AGES - 1) if age < 1.0 else AGES - 1


@kernel
def match(state: State, number: int, ts: int, now: int) -> None:
    """A tuple of a stream has met something, or would have."""
    at = state.quotas[number].ages + _MATCHES * AGES + stretch(state, number, ts, now)
    state.floats[at] += state.budget[0].sign


@kernel
def learn(state: State) -> None:
    """Learn from the matches since the last time, and the tuples and ghosts that are there."""
    budget = state.budget[0]
    arrivals = float(budget.arrivals)
    budget.arrivals = 0
    streams = state.join[0].streams
    for number in range(streams):
        ages = state.quotas[number].ages
        for each in range(number, len(state.windows), streams):
            window = state.windows[each]
            for sequence in range(window.tail, window.head):
                record = record_at(state, each, sequence)
                if record.marks & DEAD == 0:
                    at = stretch(state, number, record.ts, budget.instant)
                    state.floats[ages + _THERE * AGES + at] += arrivals
        # The best mean from each stretch on, over the stretches that follow it.
        for begin in range(AGES):
            best, matches, there = 0.0, 0.0, 0.0
            for each in range(begin, AGES):
                matches += state.floats[ages + _MATCHES * AGES + each]
                # If nothing was there, nothing is known: as if one had been, and had met half one.
                there += state.floats[ages + _THERE * AGES + each] + 1.0
                best = max(best, (matches + 0.5) / there)
            state.floats[ages + _WORTHS * AGES + begin] = best
        for each in range(AGES):
            state.floats[ages + _MATCHES * AGES + each] *= _FADING
            state.floats[ages + _THERE * AGES + each] *= _FADING


@kernel
def cheapest(state: State, number: int) -> tuple[int, float]:
    """The tuple of a stream at an age that is worth least, and what it is worth."""
    now = state.budget[0].instant
    ages = state.quotas[number].ages
    chosen, least = NOWHERE, 0.0
    for level in range(AGES):
        sequence = queue.first(state, number, level)
        while sequence != NOWHERE:
            due = stretch(state, number, record_at(state, number, sequence).ts, now)
            if due <= level:
                break
            queue.unlink(state, number, sequence)
            queue.enter(state, number, sequence, due)
            sequence = queue.first(state, number, level)
        worth = state.floats[ages + _WORTHS * AGES + level]
        if sequence != NOWHERE and (chosen == NOWHERE or worth <= least):
            chosen, least = sequence, worth
    return chosen, least
