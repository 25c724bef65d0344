"""Lost results: their sums, and the sample of ghosts that estimates them.

While there is room, a tuple that was shed leaves a ghost (ghosts.py), and each result that is
lost with it counts one. When there are too many ghosts, a sample of them is kept. Each has a
lot, a random number that stays with it, and is kept while

    lot  <  chance,    at first    chance = uniform + slope * worth

A result that is lost with kept ghosts counts 1 over the chance that these have (Horvitz and
Thompson), so the sum is right on average whatever the chances are. A quarter of the places go by
worth, so that ghosts with many partners to come are all kept; the others to all alike, because
worths are learned and may be wrong: no chance is less than three quarters of what a plain random
sample would give, and so the variance is at most a third above that of one. When there are too many
ghosts again, chances are lowered, of those that are there and of those to come; when there is room
again, those to come get better chances (shedding.ghost_room). So each ghost carries its own chance,
in its marks: a code on a scale of logarithms, 0 for a chance of 1.

GROUPS sums show how far off the total may be: what each ghost brings, times the root of the
chance that it had of not being kept, is added to the group of its lot. The squares of the groups'
differences from their mean add up to the variance (Poisson sampling; of results that several
ghosts were lost with, each bears the whole, which is more than enough).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.kernels.arena import State
from penstock.kernels.budget.levels import worth_of
from penstock.kernels.budget.records import GROUPS
from penstock.kernels.jit import kernel

__all__ = [
    "CODES_AN_OCTAVE", "chance", "chance_of", "code_now", "count", "count_met", "lot",
    "spread",
]  # fmt: skip

_CODES: Final = 1 << 16  # of chances, down to 2 to the power of -32
CODES_AN_OCTAVE: Final = 2048.0

_FIRST: Final = np.uint64(0xFF51_AFD7_ED55_8CCD)  # of MurmurHash3's finaliser
_SECOND: Final = np.uint64(0xC4CE_B9FE_1A85_EC53)
_HALF: Final = np.uint64(33)


@kernel
def _hashed(word: int, seed: Any) -> Any:
    mixed = np.uint64(word) ^ seed
    mixed = (mixed ^ (mixed >> _HALF)) * _FIRST
    mixed = (mixed ^ (mixed >> _HALF)) * _SECOND
    return mixed ^ (mixed >> _HALF)


@kernel
def _code_for(wanted: float) -> int:
    """The code of a chance: that of the next lower one there is a code for."""
    if wanted >= 1.0:
        return 0
    return min(int(np.ceil(-np.log2(max(wanted, 2.0**-40)) * CODES_AN_OCTAVE)), _CODES - 1)


@kernel
def chance_of(code: int) -> float:
    """The chance that a code stands for."""
    if code == 0:
        return 1.0
    return 2.0 ** (-float(code) / CODES_AN_OCTAVE)


@kernel
def code_now(state: State, level: int) -> int:
    """The code of the chance that a ghost of a level is kept which is laid now."""
    budget = state.budget[0]
    return _code_for(budget.uniform + budget.slope * worth_of(level))


@kernel
def chance(state: State, level: int) -> float:
    """The chance that this code stands for."""
    return chance_of(code_now(state, level))


@kernel
def lot(state: State, first: int, second: int) -> float:
    """A number from [0, 1), always the same for the same two numbers."""
    mixed = _hashed(second, _hashed(first, state.budget[0].seed))
    return float(mixed >> np.uint64(11)) * 2.0**-53


@kernel
def count(state: State, stream: int, had: float) -> None:
    """Charge a lost result to a stream. had: the chance of being seen that it had."""
    budget = state.budget[0]
    if had < 1.0:
        state.quotas[stream].lost += budget.sign / had
    else:
        state.quotas[stream].lost += budget.sign
        budget.certain += budget.sign


@kernel
def count_met(state: State, key: int) -> None:
    """Count a left tuple of a semi join that has met nothing but ghosts of the other stream, of
    which all of a key are kept or none."""
    of, had = lot(state, key, 0), chance(state, 0)
    if had >= 1.0 or of < had:
        count(state, 1, had)
        spread(state, of, had, had)


@kernel
def spread(state: State, of: float, own: float, had: float) -> None:
    """Note, for the variance, what a ghost has brought. of: its lot. own: the chance it had."""
    if own < 1.0:
        budget = state.budget[0]
        # Another digit of the lot than what decides whether a ghost is kept.
        group = np.int64(of * 2.0**40) & (GROUPS - 1)
        state.floats[budget.groups + group] += budget.sign * np.sqrt(1.0 - own) / had
