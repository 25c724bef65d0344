"""The arrival loop: every tuple of a chunk probes the other windows, then enters its own.

Arrivals of all streams are merged in the order (ts, stream, arrival). An arrival probes the
other windows one inside the other, in the probe order of its stream, and never materialises
an intermediate result (Golab and Özsu's eager multi-join; for two streams it is Kang et
al.'s loop). Since a tuple enters its window only after it has probed, every combination is
found exactly once: by its last tuple to be worked on.

A combination t1..tn is in its windows when `t.ts <= ends of u` for any two of its tuples t
and u. Of those chosen so far a probe remembers

    latest = the greatest ts,    ends = the least end

which the next one has to meet. Adding a tuple never lowers `latest` nor raises `ends`, so a
partial combination that fails is cut off with everything below it. (A tuple is not compared
with itself: where one stream has to come first by some time, the other's ends lie before it.)

What comes out are candidates: equal 64-bit keys. Whether the keys are equal is verified
afterwards, outside the loop.

Where tuples are divided over several loops, all of which they probe, each stays in one and is a
guest in the others. Of two tuples of one chunk only the later finds the other, and only where that
one stays: so here too every pair is found once.

With each arrival its own window expires, up to the earlier of the arrival and the watermark
that holds after the batch: of what is still to come, nothing can meet what is dropped.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.state import indexes, ring
from penstock.state.arena import State, Words, record_at
from penstock.state.jit import kernel
from penstock.state.links import NOWHERE

__all__ = ["DIRECTORY_FULL", "DONE", "OUTPUT_FULL", "arrive", "refill"]

# What `arrive` returns beside the number of candidates.
DONE: Final = 0  # the chunk is worked through
OUTPUT_FULL: Final = 1  # take the candidates, then call again
DIRECTORY_FULL: Final = 2  # make room in the directory, then call again

_AHEAD: Final = 6  # arrivals between the fetching of a directory entry and its use

# A frame: the tuple chosen at a depth, latest and ends of the combination above it, and the
# newest tuple of the key.
_MET: Final = 0
_LATEST: Final = 1
_ENDS: Final = 2
_NEWEST: Final = 3


@kernel
def _next_stream(state: State, ts: Words) -> int:
    """The stream whose next arrival is the earliest; the first of several; -1 at the end."""
    chosen = -1
    earliest = 0
    for number in range(state.join[0].streams):
        window = state.windows[number]
        if window.cursor < window.end and (chosen < 0 or ts[window.cursor] < earliest):
            chosen = number
            earliest = ts[window.cursor]
    return chosen


@kernel
def _probe(state: State, arrival: Any, entry: int, found: int, rows: Words) -> int:
    """Write all combinations of an arrival (stream, ts, key) after the first `found`.

    rows[j] takes sequence numbers of stream j, the last row of it the latest ts. Returns the
    new number of combinations, or -1 when the rows do not suffice.
    """
    number, ts, key = arrival
    streams = state.join[0].streams
    own = state.windows[number]
    depth = 0
    latest, ends = ts, ring.ends(own, ts)
    other = state.orders[number, 0]
    window = state.windows[other]
    met = newest = indexes.first(state, other, key, entry)
    while True:
        if met == NOWHERE:
            if depth == 0:
                return found
            depth -= 1
            met = state.frames[depth, _MET]
            latest, ends = state.frames[depth, _LATEST], state.frames[depth, _ENDS]
            newest = state.frames[depth, _NEWEST]
            other = state.orders[number, depth]
            window = state.windows[other]
        elif window.per_key > 0 and ring.is_outranked(state, other, newest, met):
            met = NOWHERE  # and so are all that are older
            continue
        else:
            met_ts = record_at(state, other, met).ts
            met_ends = ring.ends(window, met_ts)
            if met_ts <= ends and latest <= met_ends:
                if depth < streams - 2:
                    state.frames[depth, _MET] = met
                    state.frames[depth, _LATEST] = latest
                    state.frames[depth, _ENDS] = ends
                    state.frames[depth, _NEWEST] = newest
                    latest, ends = max(latest, met_ts), min(ends, met_ends)
                    depth += 1
                    other = state.orders[number, depth]
                    window = state.windows[other]
                    met = newest = indexes.first(state, other, key, entry)
                    continue
                if found == rows.shape[1]:
                    return -1
                rows[number, found] = own.head
                rows[other, found] = met
                for above in range(depth):
                    rows[state.orders[number, above], found] = state.frames[above, _MET]
                rows[streams, found] = max(latest, met_ts)
                found += 1
        met = indexes.following(state, other, key, met)


@kernel
def arrive(
    state: State, ts: Words, keys: Words, mute: Any, guests: Any, rows: Words
) -> tuple[int, int]:
    """Work through the arrivals between cursor and end of each stream.

    mute: which of them have no key; empty when all have. guests: which do not stay; empty when
    all do. Returns the number of candidates in `rows` and a status. An arrival is worked on whole
    or not at all, so the loop goes on where it stopped when it is called again.
    """
    found = 0
    while True:
        number = _next_stream(state, ts)
        if number < 0:
            return found, DONE
        if not indexes.has_room(state, number):
            return found, DIRECTORY_FULL
        window = state.windows[number]
        indexes.prepare(state, keys[min(window.cursor + _AHEAD, window.end - 1)])
        now, key = ts[window.cursor], keys[window.cursor]
        ring.expire(state, number, min(now, state.join[0].watermark))
        entry = ring.MUTED
        if len(mute) == 0 or not mute[window.cursor]:
            entry = indexes.locate(state, key)
            now_found = _probe(state, (number, now, key), entry, found, rows)
            if now_found < 0:
                return found, OUTPUT_FULL
            found = now_found
        if len(guests) > 0 and guests[window.cursor]:
            ring.pass_by(state, number, now, key)
        else:
            ring.append(state, number, now, key, entry)
        window.cursor += 1


@kernel
def refill(state: State, number: int, ts: Words, keys: Words, mute: Any, begin: int) -> int:
    """Append tuples to a window without probing, from `begin` on; where it had to stop."""
    for arrival in range(begin, len(ts)):
        if not indexes.has_room(state, number):
            return arrival
        key = keys[arrival]
        entry = ring.MUTED
        if len(mute) == 0 or not mute[arrival]:
            entry = indexes.locate(state, key)
        ring.append(state, number, ts[arrival], key, entry)
    return len(ts)
