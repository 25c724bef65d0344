"""Shedding: after each instant, what is too much goes.

An instant is a unit: its tuples have met the windows and each other before any of them, or any
other tuple, is dropped. A tuple that was dropped leaves a ghost if lost results are counted.
"""

from __future__ import annotations

from typing import Any

from penstock.kernels import ring
from penstock.kernels.arena import DEAD, MATCHED, MET, State, is_plain, record_at
from penstock.kernels.budget import ages, queue
from penstock.kernels.budget.ghosts import lay
from penstock.kernels.budget.kinds import AGE
from penstock.kernels.budget.serving import earn
from penstock.kernels.budget.victims import victim
from penstock.kernels.budget.worth import level_now
from penstock.kernels.index import indexes
from penstock.kernels.jit import kernel
from penstock.kernels.sentinels import BEGINNING
from penstock.kernels.stats import tables

__all__ = ["learn", "level_anew", "pass_instant", "prepare", "shed"]


@kernel
def prepare(state: State, number: int, word: int) -> None:
    """Prefetch the statistics of an arrival to come, by its first word, and the statistics and
    index entry of the tuple that is likely to go next."""
    if not state.budget[0].learns:
        return
    path = state.windows[number].paths
    tables.prepare(state, path, word)
    if is_plain(state):
        tables.prepare(state, state.steps[number, 0].path, word)
    if state.quotas[number].levels == 0 or state.windows[number].live == 0:
        return
    quota = state.quotas[number]
    if quota.next >= state.windows[number].tail:
        key = record_at(state, number, quota.next).key
        tables.prepare(state, state.steps[number, 0].path, key)
        indexes.prepare(state, path, key)


@kernel
def learn(state: State, number: int, words: Any, at: int) -> None:
    """Learn from an arrival of a stream. words[w, at]: its word for path w."""
    state.budget[0].arrivals += 1
    state.quotas[number].came += state.budget[0].growth
    if not state.budget[0].learns:
        return
    window = state.windows[number]
    for word in range(window.words):
        tables.learn(state, window.paths + word, words[word, at])


@kernel
def _over(state: State) -> int:
    """The stream that must give up a tuple; -1 for any of them; -2 when none has to."""
    budget = state.budget[0]
    total = 0
    for number in range(state.join[0].streams):
        live = state.windows[number].live
        if budget.fixed and live > state.quotas[number].rows:
            return number
        total += live
    return -1 if total > budget.rows else -2


@kernel
def shed(state: State) -> bool:
    """Drop what is too much; return False if there is no room for a ghost: call again then."""
    while True:
        only = _over(state)
        if only == -2:
            return True
        random = state.budget[0].random
        number, sequence = victim(state, only)
        # What has come out, or is lost already, is not lost again.
        leaves_ghost = record_at(state, number, sequence).marks & (MATCHED | MET) == 0
        if leaves_ghost and not lay(state, number, sequence):
            state.budget[0].random = random  # the same victim the next time
            return False
        ring.bury(state, number, sequence)
        ring.expire(state, number, BEGINNING)  # holes at the tail
        state.quotas[number].shed += 1


@kernel
def pass_instant(state: State, now: int) -> bool:
    """End the instant that was, before arrivals of another or at the end; False as `shed` does."""
    if not shed(state):
        return False
    budget = state.budget[0]
    budget.instant = now
    budget.newest = max(budget.newest, now)
    budget.began = now if budget.began == BEGINNING else budget.began
    earn(state)
    tables.pass_time(state, now)
    if budget.policy == AGE:
        held = 0
        for number in range(len(state.windows)):
            held += state.windows[number].live
        if budget.arrivals > max(held, 256):
            ages.learn(state)
    return True


@kernel
def level_anew(state: State, number: int) -> None:
    """Give all tuples of a window the levels that they have by what is known now."""
    if state.quotas[number].levels == 0 or state.budget[0].policy == AGE:
        return
    window = state.windows[number]
    queue.clear(state, number)
    for sequence in range(window.tail, window.head):  # in order, so that levels are
        if not record_at(state, number, sequence).marks & DEAD:
            queue.enter(state, number, sequence, level_now(state, number, sequence))
