"""A table for each path of a stream: how many arrivals with fitting words are to be expected.

Keys are counted (stats.frequencies), values in order are sampled (stats.sample). A table returns a
rate: arrivals in about a window's time, of which those long ago count less.

A key that has not come may be one that never does, or one that still will: of orders that are each
paid once, the unpaid ones are those worth keeping. So a table learns what such keys turn out to
meet, beside keys that are known. For arrivals with a new key, and for those with a known key, it
adds up how many tuples of the other stream have come of late with that key; and for the tuples that
wait for such arrivals, how many have a key that is not known here, and the counts of the others.
Then a key that is not known is as good as one that has come

    (met by new / waiting for new)  /  (met by known / counts of those waiting for known)

times. All of it comes from the tables, so it does not depend on what was kept or remembered.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.kernels.arena import State, Words
from penstock.kernels.budget.records import BY_KEY, BY_ORDER
from penstock.kernels.jit import kernel
from penstock.kernels.sentinels import BEGINNING
from penstock.kernels.stats import frequencies, sample

__all__ = ["BY_KEY", "BY_ORDER", "draw", "give", "learn", "pass_time", "prepare", "rate", "wait"]

_STEPS: Final = 256  # of growth in a half-life
_LARGEST: Final = 1e25  # growth, before all counts are made less: they have single precision
# The rate of what has never come, until more is known: the rest of a tuple's worth decides then.
_UNSEEN: Final = 2.0**-20
_MOST_UNSEEN: Final = 2.0**20
_ENOUGH: Final = 64.0  # of either, to learn from


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
    if budget.grown_at > BEGINNING:  # there was something before
        budget.growth *= 2.0 ** min(passed / budget.half_life, 100.0)
    budget.grown_at = now
    if budget.growth > _LARGEST:
        factor = 1.0 / budget.growth
        for number in range(len(state.tables)):
            table = state.tables[number]
            table.total *= factor
            table.met_new, table.met_known = table.met_new * factor, table.met_known * factor
            table.waiting_new, table.waiting_known = (
                table.waiting_new * factor,
                table.waiting_known * factor,
            )
            if table.kind == BY_KEY and not table.given:
                frequencies.scale(state.singles, table, factor)
        for number in range(len(state.quotas)):
            state.quotas[number].came *= factor
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
    state.budget[0].is_new = 0
    if table.given:
        return
    if table.kind == BY_KEY:
        is_known = frequencies.add(state.halves, state.singles, table, word, weight)
        state.budget[0].is_new = not is_known
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
    frequencies.add_all(state.halves, state.singles, table, words, weights)


@kernel
def rate(state: State, path: int, low: int, high: int) -> float:
    """How many arrivals with words from low to high are to be expected; for keys, low is high."""
    table: Any = state.tables[path]
    shrink = state.budget[0].shrink
    if table.kind == BY_ORDER:
        return max(sample.share(state.words, table, low, high) * table.total * shrink, _UNSEEN)
    counted = frequencies.count(state.halves, state.singles, table, low)
    return _rate_of(table, counted, shrink)


@kernel
def _rate_of(table: Any, counted: float, shrink: float) -> float:
    """The rate of a key that counts so much."""
    if table.given:  # as parts of all arrivals; before any of them, as if one had come
        return counted * max(table.total * shrink, 1.0)
    if counted > 0.0:
        return max(counted * shrink, _UNSEEN)
    return _unseen(table, shrink)


@kernel
def _unseen(table: Any, shrink: float) -> float:
    """As how many arrivals one is worth that has not been seen."""
    met = (table.met_new + table.met_known) * shrink
    if met < _ENOUGH or table.waiting_new * shrink < _ENOUGH or table.met_new <= 0.0:
        return _UNSEEN
    by_new = table.met_new / table.waiting_new
    by_known = table.met_known / max(table.waiting_known, table.waiting_new)
    return min(max(by_new / max(by_known, by_new / _MOST_UNSEEN), _UNSEEN), _MOST_UNSEEN)


@kernel
def wait(state: State, own_path: int, path: int, key: int) -> float:
    """Note an arrival on a path, which finds what has come on another with its key, and then waits
    for what will; how many of these are expected."""
    own: Any = state.tables[own_path]
    table: Any = state.tables[path]
    budget = state.budget[0]
    counted = frequencies.count(state.halves, state.singles, table, key)
    if counted > 0.0:
        table.waiting_known += counted  # counts have grown already
        if budget.is_new:
            own.met_new += counted
        else:
            own.met_known += counted
    else:
        table.waiting_new += budget.growth
    return _rate_of(table, counted, budget.shrink)
