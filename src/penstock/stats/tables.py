"""A table for each path of a stream: how many arrivals with fitting words are to be expected.

Keys are counted (stats.frequencies), values in order are sampled (stats.sample). What is told is a
rate: arrivals in about a window's time, of which those long ago count less.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.state.arena import State, Words
from penstock.state.budget import BY_KEY, BY_ORDER
from penstock.state.jit import kernel
from penstock.stats import frequencies, sample

__all__ = ["BY_KEY", "BY_ORDER", "draw", "give", "learn", "pass_time", "prepare", "rate"]

_STEPS: Final = 256  # of growth in a half-life
_LARGEST: Final = 1e60  # growth, before all counts are made less
_UNSEEN: Final = 2.0**-20  # the rate of what has never come: what else a tuple is worth then tells


@kernel
def _drawn(word: Any) -> Any:
    """The next of a run of random words: Marsaglia's xorshift."""
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    return word ^ (word << np.uint64(17))


@kernel
def draw(state: State) -> float:
    """A number from [0, 1), for victims."""
    word = state.budget[0].random = _drawn(state.budget[0].random)
    return float(word >> np.uint64(11)) * 2.0**-53


@kernel
def pass_time(state: State, now: int) -> None:
    """Let what has come before count less, if some time has passed."""
    budget = state.budget[0]
    passed = now - budget.grown_at
    if passed < max(budget.half_life // _STEPS, 1):
        return
    if budget.grown_at > -(1 << 61):  # there was something before
        budget.growth *= 2.0 ** min(passed / budget.half_life, 100.0)
    budget.grown_at = now
    if budget.growth > _LARGEST:
        factor = 1.0 / budget.growth
        for number in range(len(state.tables)):
            table = state.tables[number]
            table.total *= factor
            if table.kind == BY_KEY and not table.given:
                frequencies.scale(state.floats, table, factor)
        for number in range(len(state.shares)):
            state.shares[number].came *= factor
        budget.growth = 1.0
    budget.shrink = 1.0 / budget.growth


@kernel
def prepare(state: State, path: int, word: int) -> None:
    """Have what is known of a word fetched."""
    if state.tables[path].kind == BY_KEY:
        frequencies.prepare(state.words, state.tables[path], word)


@kernel
def learn(state: State, path: int, word: int) -> None:
    """Count an arrival with a word."""
    table = state.tables[path]
    weight = state.budget[0].growth
    table.total += weight
    if table.given:
        return
    if table.kind == BY_KEY:
        frequencies.add(state.words, state.floats, table, word, weight)
    elif table.kind == BY_ORDER:
        # Numbers of its own: what is counted must not change what is shed.
        drawn = state.budget[0].sampling = _drawn(state.budget[0].sampling)
        fraction = float(drawn >> np.uint64(11)) * 2.0**-53
        sample.add(state.words, table, word, weight, fraction)


@kernel
def give(state: State, path: int, words: Words, weights: Any) -> None:
    """Take frequencies as they are given, the least first, and learn none."""
    table = state.tables[path]
    table.given = 1
    frequencies.add_all(state.words, state.floats, table, words, weights)


@kernel
def rate(state: State, path: int, low: int, high: int) -> float:
    """How many arrivals with words from low to high are to be expected; for keys, low is high."""
    table: Any = state.tables[path]
    shrink = state.budget[0].shrink
    if table.kind == BY_ORDER:
        return max(sample.share(state.words, table, low, high) * table.total * shrink, _UNSEEN)
    counted = frequencies.count(state.words, state.floats, table, low)
    if table.given:  # as parts of all arrivals; before any of them, as if one had come
        return counted * max(table.total * shrink, 1.0)
    return max(counted * shrink, _UNSEEN)
