"""What a tuple is worth: the results that are to be expected with it in a unit of time.

Of two streams that is how often a partner comes (the probability that PROB goes by). Of n streams
a result needs a tuple of each: one completes it, and those before it must be in their windows. So
a tuple of stream j is worth

    scale_j * product over the others l of rate_l(fitting words)

where scale_j counts, for each other stream that may come last, the windows of those in between.
A stream whose tuples are not found by one of stream j counts as if all were alike.

Worths are kept as levels (kernels.budget.levels).
"""

from __future__ import annotations

from typing import Any

from penstock.kernels.arena import State, is_plain, word_at
from penstock.kernels.budget import queue
from penstock.kernels.budget.levels import level_for
from penstock.kernels.index.bounds import LEAST, MISSING, bounds
from penstock.kernels.jit import kernel
from penstock.kernels.stats import tables

__all__ = ["first_level", "level_now"]


@kernel
def _rate(state: State, number: int, step: Any, sequence: int) -> float:
    """How many arrivals of a step's stream are to be expected that a tuple finds by itself."""
    if is_plain(state):
        key = word_at(state, number, sequence).key
        return tables.rate(state, step.path, key, key)
    low, high = LEAST, MISSING - 1
    asks = False
    for each in range(step.bounds, step.filters):
        check = state.checks[each]
        if state.paths[check.source].window == number:
            word = word_at(state, check.source, sequence).key
            least, greatest = bounds(word, check.op, check.epsilon, check.shift)
            low, high = max(low, least), min(high, greatest)
            asks = True
    return tables.rate(state, step.path, low, high) if asks else 1.0


@kernel
def first_level(state: State, number: int, sequence: int) -> int:
    """The level of a tuple that enters. With two streams and one key, the tables also learn from
    it what keys are worth that have not come."""
    if not is_plain(state) or state.join[0].streams > 2:
        return level_now(state, number, sequence)
    worth = state.quotas[number].scale
    if state.quotas[number].values > 0:
        worth *= queue.value_of(state, number, sequence)
    key = word_at(state, number, sequence).key
    path = state.windows[number].paths
    return level_for(worth * tables.wait(state, path, state.steps[number, 0].path, key))


@kernel
def level_now(state: State, number: int, sequence: int) -> int:
    """The level of a tuple of a stream, by what is known now."""
    others = state.join[0].streams - 1
    worth = state.quotas[number].scale
    if state.quotas[number].values > 0:
        worth *= queue.value_of(state, number, sequence)
    for depth in range(others):
        worth *= _rate(state, number, state.steps[number, depth], sequence)
    # The mean factor, so that products of many streams have levels too.
    return level_for(worth if others == 1 or worth <= 0.0 else worth ** (1.0 / others))
