"""What a budget notes when a tuple enters its window, and when it leaves: the hooks of the ring.

`on_leave` is called wherever a live tuple goes: it has expired, was shed, or has matched in a semi
join. (Tuples that newer ones of their key outrank are counted as gone when those come; windows that
count have no budget.)
"""

from __future__ import annotations

from penstock.kernels.arena import MATCHED, MET, State, has_budget, record_at
from penstock.kernels.budget import ages, losses, queue
from penstock.kernels.budget.kinds import AGE
from penstock.kernels.budget.records import ENTRY_WORDS
from penstock.kernels.budget.worth import first_level
from penstock.kernels.jit import kernel

__all__ = ["on_enter", "on_leave"]


@kernel
def on_enter(state: State, number: int) -> None:
    """Give the newest tuple of a window its number, and its place among the others."""
    if not has_budget(state) or number >= state.join[0].streams:
        return  # ghosts have a number already
    quota, window = state.quotas[number], state.windows[number]
    sequence = window.head - 1
    state.words[quota.entries + ENTRY_WORDS * (sequence & window.mask) + 1] = quota.numbered
    quota.numbered += 1
    if quota.levels == 0:
        return
    level = 0
    if state.budget[0].policy == AGE:
        ts = record_at(state, number, sequence).ts
        level = ages.stretch(state, number, ts, state.budget[0].instant)
    else:
        level = first_level(state, number, sequence)
    queue.enter(state, number, sequence, level)


@kernel
def on_leave(state: State, number: int, sequence: int) -> None:
    """Take a live tuple out of the queue; one of a semi join that has met ghosts only is lost."""
    if not has_budget(state):
        return
    queue.leave(state, number, sequence)
    record = record_at(state, number, sequence)
    if record.marks & (MET | MATCHED) == MET and number < state.join[0].streams:
        losses.count_met(state, record.key)
