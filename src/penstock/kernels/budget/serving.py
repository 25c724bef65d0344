"""Serving: which arrivals are dealt with, if there is a service rate (Kang et al., 5.2.1).

An arrival is drawn by a lot, against the chance that its stream has (shedding.service). And there
is a credit: it begins with what a second brings, event time adds to it, and each that is dealt
with takes one. So from the beginning on at most

    service_rate * (time that has passed + 1 second)

are dealt with, whatever the chances are. What is not taken is kept up to what a second brings, and
up to a few tuples if that is less, or chance would leave much of a low rate unused.

Lots are computed from numbers, not drawn one after the other: an arrival that is begun again has
the same.
"""

from __future__ import annotations

from typing import Final

from penstock.kernels import ring
from penstock.kernels.arena import UNPROBED, State, record_at
from penstock.kernels.budget.ghosts import has_room, lay
from penstock.kernels.budget.losses import lot
from penstock.kernels.budget.records import ENTRY_WORDS
from penstock.kernels.jit import kernel
from penstock.kernels.sentinels import BEGINNING, SKIPPED

__all__ = ["drop", "earn", "has_place", "is_counted", "is_served", "serve"]

_SECOND_US: Final = 1_000_000
_FEW: Final = 64.0


@kernel
def earn(state: State) -> None:
    """Add to the credit what event time has brought."""
    budget = state.budget[0]
    if budget.service_rate == 0.0:
        return
    second = budget.service_rate * _SECOND_US
    passed = float(budget.newest - budget.credited_at)
    if budget.credited_at == BEGINNING:
        budget.credit = max(1.0, second)
    else:
        budget.credit = min(max(_FEW, second), budget.credit + passed * budget.service_rate)
    budget.credited_at = budget.newest


@kernel
def is_served(state: State, number: int) -> bool:
    """Whether the next arrival of a stream is dealt with."""
    budget, quota = state.budget[0], state.quotas[number]
    if budget.service_rate == 0.0:
        return True
    of = lot(state, quota.arrived, 2 * state.join[0].streams + number)
    return budget.credit >= 1.0 and of < quota.chance


@kernel
def is_counted(state: State, number: int) -> bool:
    """Whether the results that an arrival loses are counted, if it is not dealt with."""
    looks = state.budget[0].looks
    if looks == 0.0 or looks >= 1.0:
        return looks >= 1.0
    of = lot(state, state.windows[number].head + SKIPPED, state.join[0].streams + number)
    return of < looks


@kernel
def has_place(state: State, number: int) -> bool:
    """Whether an arrival that is not dealt with can be dropped, if it must, and leave a ghost."""
    budget = state.budget[0]
    return budget.drops == 0 or budget.ghost_paths == 0 or has_room(state, number)


@kernel
def serve(state: State, number: int, served: bool) -> None:
    """Note whether an arrival, at the head, was dealt with."""
    budget, quota = state.budget[0], state.quotas[number]
    quota.arrived += 1
    if budget.service_rate == 0.0:
        return
    if served:
        budget.credit -= 1.0
        return
    record_at(state, number, state.windows[number].head).marks |= UNPROBED
    quota.unprobed += 1


@kernel
def drop(state: State, number: int) -> None:
    """Drop an arrival, which is at the head, and leave its ghost, for which there is room."""
    quota, window = state.quotas[number], state.windows[number]
    state.words[quota.entries + ENTRY_WORDS * (window.head & window.mask) + 1] = quota.numbered
    quota.numbered += 1
    quota.shed += 1
    lay(state, number, window.head)
    ring.pass_by(state, number)
