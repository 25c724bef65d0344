"""What a budget does in the arrival loop: the hooks around a probe.

    before_instant   what is too much goes, before arrivals of another instant are worked on
    prefetch_for     what an arrival to come will ask for
    on_probe         whether an arrival looks for partners
    takes_back       whether it must look again, to take back what it has counted as lost
    after_probe      what is learned from it
    is_dropped       whether it goes instead of entering its window

A probe itself knows of ghosts (kernels.loop). The hooks around a window, on_enter and on_leave, are
in presence.py. Without a budget all of them compile to nothing.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.kernels.arena import State, Words, has_budget
from penstock.kernels.budget import serving
from penstock.kernels.budget.shed import learn, pass_instant, prepare
from penstock.kernels.jit import kernel

__all__ = [
    "GO_ON", "LOOKS", "NO_ROOM", "PASSES", "VERIFY", "after_probe", "before_instant", "is_dropped",
    "on_probe", "prefetch_for", "takes_back",
]  # fmt: skip

# What `before_instant` and `on_probe` return.
GO_ON: Final = 0
LOOKS: Final = 1  # for partners
PASSES: Final = 2  # without looking
NO_ROOM: Final = 3  # for ghosts: make some, then call again
VERIFY: Final = 4  # the candidates of the instant, then call again


@kernel
def before_instant(state: State, number: int, ts: Words, found: int) -> int:
    """End the instant that was, if the next arrival, of stream `number`, is of another one or
    there is none (-1)."""
    if not has_budget(state):
        return GO_ON
    budget = state.budget[0]
    now = budget.instant if number < 0 else ts[state.windows[number].cursor]
    if number >= 0 and now == budget.instant:
        return GO_ON
    if budget.stops and found > 0:
        return VERIFY
    return GO_ON if pass_instant(state, now) else NO_ROOM


@kernel
def prefetch_for(state: State, number: int, word: int) -> None:
    """Prefetch what will be asked of an arrival to come, by its first word."""
    if has_budget(state):
        prepare(state, number, word)


@kernel
def on_probe(state: State, number: int, is_mute: bool) -> int:
    """Whether an arrival, at the head, looks for partners. One that is not dealt with looks if what
    it loses is counted; then all that it finds is lost."""
    if not has_budget(state):
        return PASSES if is_mute else LOOKS
    budget = state.budget[0]
    budget.skips = not is_mute and not serving.is_served(state, number)
    if is_mute:
        return PASSES
    if budget.skips and not serving.has_place(state, number):
        return NO_ROOM
    return LOOKS if not budget.skips or serving.is_counted(state, number) else PASSES


@kernel
def takes_back(state: State) -> bool:
    """After a probe that found no room for its results: whether it has to be made again with the
    sign turned round, for lost results have been counted; else the sign is right again."""
    if not has_budget(state):
        return False
    budget = state.budget[0]
    budget.sign = -budget.sign
    return budget.sign < 0.0


@kernel
def after_probe(state: State, number: int, is_mute: bool, words: Any, at: int) -> None:
    """Learn from an arrival, which is at the head. words[w, at]: its word for path w."""
    if not has_budget(state):
        return
    if not is_mute:
        serving.serve(state, number, not state.budget[0].skips)
    learn(state, number, words, at)


@kernel
def is_dropped(state: State, number: int) -> bool:
    """Drop an arrival that is not dealt with, if that is what is asked for; whether it is gone."""
    if not has_budget(state) or not state.budget[0].skips or not state.budget[0].drops:
        return False
    serving.drop(state, number)
    return True
