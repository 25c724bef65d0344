"""The victim: the tuple that goes next, by each policy.

    random          any tuple of any window, each with the same chance
    oldest          the tail of a ring
    prob            the first of the lowest level of worth
    life            of the first of each level, the least worth times time left
    expected_life   the same, of at most the time that tuples of the level have been kept of late
    age             the first at the age that is worth least

Tuples of one level stand in the order they came in, so its first is the oldest and has the least
time left: no other of the level has to be looked at. A worth that was too low when a tuple
entered is noticed when it is named, and the tuple moves up, to about its place by age; one that was
too high when all are given their levels anew, from time to time.
"""

from __future__ import annotations

from penstock.kernels import ring
from penstock.kernels.arena import DEAD, State, record_at
from penstock.kernels.budget import ages, queue
from penstock.kernels.budget.kinds import AGE, EXPECTED_LIFE, OLDEST, PROB, RANDOM
from penstock.kernels.budget.levels import worth_of
from penstock.kernels.budget.records import LEVELS
from penstock.kernels.budget.worth import level_now
from penstock.kernels.jit import kernel
from penstock.kernels.links import NOWHERE
from penstock.kernels.sentinels import BEGINNING
from penstock.kernels.stats.tables import draw

__all__ = ["victim"]


@kernel
def _any(state: State, only: int) -> tuple[int, int]:
    """A random tuple of one stream, or of all (-1)."""
    total = 0
    for number in range(state.join[0].streams):
        if only in (-1, number):
            total += state.windows[number].live
    place = int(draw(state) * total)
    for number in range(state.join[0].streams):
        if only in (-1, number):
            window = state.windows[number]
            if place < window.live:
                # At least a part of what is between tail and head is live.
                while True:
                    sequence = window.tail + int(draw(state) * (window.head - window.tail))
                    if not record_at(state, number, sequence).marks & DEAD:
                        return number, sequence
            place -= window.live
    return NOWHERE, NOWHERE


@kernel
def _cheapest(state: State, number: int) -> tuple[int, float]:
    """The tuple of a stream that would go first, and by which score."""
    policy = state.budget[0].policy
    window = state.windows[number]
    if window.live == 0:
        return NOWHERE, 0.0
    if policy == OLDEST:
        ring.expire(state, number, BEGINNING)  # holes at the tail, where matched tuples went
        return window.tail, 0.0
    if policy == AGE:
        return ages.cheapest(state, number)
    level = queue.lowest(state, number)
    if policy == PROB:
        return queue.first(state, number, level), float(level)
    chosen, least = NOWHERE, 0.0
    others = state.join[0].streams - 1
    while level < LEVELS:
        sequence = queue.first(state, number, level)
        ends = ring.ends(window, record_at(state, number, sequence).ts)
        left = max(float(ends - state.budget[0].instant), 0.0)
        if policy == EXPECTED_LIFE:
            stay = queue.stay(state, number, level)
            left = min(left, stay) if stay > 0.0 else left
        score = worth_of(level) ** others * left
        if chosen == NOWHERE or score < least:
            chosen, least = sequence, score
        level = queue.following_level(state, number, level + 1)
    return chosen, least


@kernel
def victim(state: State, only: int) -> tuple[int, int]:
    """The stream and the tuple that go next: of one stream, or of all (-1)."""
    policy = state.budget[0].policy
    if policy == RANDOM:
        return _any(state, only)
    while True:
        stream, chosen, least = NOWHERE, NOWHERE, 0.0
        oldest = 0
        for number in range(state.join[0].streams):
            if only in (-1, number):
                sequence, score = _cheapest(state, number)
                if sequence == NOWHERE:
                    continue
                ts = record_at(state, number, sequence).ts
                if stream == NOWHERE or score < least or (score == least and ts < oldest):
                    stream, chosen, least, oldest = number, sequence, score, ts
        if stream == NOWHERE or policy in (OLDEST, AGE):
            return stream, chosen
        level = level_now(state, stream, chosen)
        if level <= queue.level_of(state, stream, chosen):
            return stream, chosen
        queue.unlink(state, stream, chosen)
        queue.enter(state, stream, chosen, level)
