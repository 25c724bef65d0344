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
with itself: if one stream has to come first by some time, the other's ends lie before it.)

Each step of a probe asks one path of the next window for a range of words, given by the arrival
or by tuples chosen before (model.steps); words of other paths narrow down what it gives. What
comes out are candidates: words that fit. Whether the values do is verified afterwards, outside
the loop.

Under a budget a step looks into a window, and then into that of its ghosts. A combination with a
ghost in it is lost: it is counted at once if words decide, and else comes out as a candidate
with ~sequence number for each ghost. Before arrivals of another instant are worked on, what is too
much is shed (kernels.budget.shed).

An arrival that is not dealt with (kernels.budget.serving) does not probe; if lost results are
counted it does, and what it finds is lost.

If tuples are divided over several loops, all of which they probe, each stays in one and is a
guest in the others. Of two tuples of one chunk only the later finds the other, and only in the loop
where that one stays: so here too every pair is found once.

With each arrival its own window expires, up to the earlier of the arrival and the watermark
that holds after the batch: of what is still to come, nothing can meet what is dropped.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.kernels import ring
from penstock.kernels.arena import State, Words, has_budget, is_plain, record_at, word_at
from penstock.kernels.budget import ages, hooks
from penstock.kernels.budget.ghosts import charge
from penstock.kernels.budget.kinds import AGE
from penstock.kernels.index import indexes
from penstock.kernels.index.bounds import LEAST, MISSING, bounds
from penstock.kernels.jit import kernel
from penstock.kernels.links import NOWHERE
from penstock.kernels.sentinels import SKIPPED

__all__ = [
    "DIRECTORY_FULL",
    "DONE",
    "GHOSTS_FULL",
    "INSTANT_OVER",
    "OUTPUT_FULL",
    "arrive",
    "refill",
]

# What `arrive` returns beside the number of candidates.
DONE: Final = 0  # the chunk is worked through
OUTPUT_FULL: Final = 1  # take the candidates, then call again
DIRECTORY_FULL: Final = 2  # make room in the directory, then call again
GHOSTS_FULL: Final = 3  # make room for ghosts, then call again
INSTANT_OVER: Final = 4  # verify the candidates, then call again

_AHEAD: Final = 6  # arrivals between the fetching of a directory entry and its use
_NEAR: Final = 2  # between the fetching of the tuples that it leads to and theirs


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
def _chosen(state: State, number: int, depth: int, path: int) -> Any:
    """The record for a path of the tuple that its window has in the combination of an arrival of
    stream `number`."""
    window = state.paths[path].window
    sequence = state.windows[number].head
    for above in range(depth):
        if state.steps[number, above].window == window:
            sequence = state.frames[above].met
            if has_budget(state) and state.frames[above].ghost:
                path += state.budget[0].ghost_paths
    return word_at(state, path, sequence)


@kernel
def _bounds(state: State, number: int, depth: int, check: Any) -> tuple[int, int]:
    """Between what a word must be by one check."""
    source = _chosen(state, number, depth, check.source)
    return bounds(source.key, check.op, check.epsilon, check.shift)


@kernel
def _asked(state: State, number: int, depth: int, located: tuple[int, int]) -> tuple[int, int, int]:
    """What a step asks its path for. located: the arrival's first word, and its entry."""
    if is_plain(state):
        return located[0], located[0], located[1]
    step = state.steps[number, depth]
    if step.keyed:
        return located[0], located[0], located[1]
    low, high = LEAST, MISSING
    for number_of_check in range(step.bounds, step.filters):
        least, greatest = _bounds(state, number, depth, state.checks[number_of_check])
        low, high = max(low, least), min(high, greatest)
    entry = indexes.locate(state, step.path, low) if step.kind == indexes.HASH else 0
    return low, high, entry


@kernel
def _passes(state: State, number: int, depth: int, met: int, ghost: int) -> bool:
    """Whether a tuple, or a ghost, fits by the words of other paths than that it was found by."""
    if is_plain(state):
        return True
    step = state.steps[number, depth]
    behind = state.budget[0].ghost_paths if has_budget(state) and ghost else 0
    for number_of_check in range(step.filters, step.stop):
        check = state.checks[number_of_check]
        low, high = _bounds(state, number, depth, check)
        if not low <= word_at(state, check.path + behind, met).key <= high:
            return False
    return True


@kernel
def _probe(state: State, number: int, located: tuple[int, int], found: int, rows: Words) -> int:
    """Write all combinations of an arrival, which is at the head, after the first `found`.

    rows[j] takes sequence numbers of stream j, the last row of it the latest ts. Returns the
    new number of combinations, or -1 when the rows do not suffice.
    """
    streams = state.join[0].streams
    own = state.windows[number]
    ts = word_at(state, own.paths, own.head).ts
    depth = 0
    latest, ends = ts, ring.ends(own, ts)
    step = state.steps[number, 0]
    window, path = state.windows[step.window], step.path
    asked = _asked(state, number, 0, located)
    met, cursor = indexes.first(state, path, step.kind, asked)
    newest = met
    ghost, ghosts = 0, 0  # whether the tuples looked at are, and how many above are
    while True:
        if met == NOWHERE:
            if has_budget(state) and ghost == 0 and state.budget[0].ghost_paths > 0:
                ghost = 1
                window = state.windows[step.window + streams]
                path = step.path + state.budget[0].ghost_paths
                met, cursor = indexes.first(state, path, step.kind, asked)
                newest = met
                continue
            if depth == 0:
                return found
            depth -= 1
            frame = state.frames[depth]
            met, latest, ends, newest = frame.met, frame.latest, frame.ends, frame.newest
            asked, cursor = (frame.low, frame.high, frame.entry), frame.cursor
            step = state.steps[number, depth]
            window, path = state.windows[step.window], step.path
            if has_budget(state):
                ghost = frame.ghost
                ghosts -= ghost
                if ghost:
                    window = state.windows[step.window + streams]
                    path += state.budget[0].ghost_paths
        elif window.per_key > 0 and ring.is_outranked(state, step.window, newest, met):
            met = NOWHERE  # and so are all that are older
            continue
        else:
            met_ts = word_at(state, path, met).ts
            met_ends = ring.ends(window, met_ts)
            fits = met_ts <= ends and latest <= met_ends
            if fits and _passes(state, number, depth, met, ghost):
                if depth < streams - 2:
                    frame = state.frames[depth]
                    frame.met, frame.latest, frame.ends = met, latest, ends
                    frame.newest, frame.cursor = newest, cursor
                    frame.low, frame.high, frame.entry = asked
                    if has_budget(state):
                        frame.ghost = ghost
                        ghosts += ghost
                        ghost = 0
                    latest, ends = max(latest, met_ts), min(ends, met_ends)
                    depth += 1
                    step = state.steps[number, depth]
                    window, path = state.windows[step.window], step.path
                    asked = _asked(state, number, depth, located)
                    met, cursor = indexes.first(state, path, step.kind, asked)
                    newest = met
                    continue
                if found == rows.shape[1]:
                    return -1
                rows[number, found] = own.head
                rows[step.window, found] = met
                for above in range(depth):
                    rows[state.steps[number, above].window, found] = state.frames[above].met
                rows[streams, found] = max(latest, met_ts)
                if has_budget(state):
                    if ghost:
                        rows[step.window, found] = ~met
                    if state.budget[0].skips:
                        rows[number, found] += SKIPPED
                    lacks = ghost + ghosts + state.budget[0].skips
                    found += _counted(state, number, rows, found, lacks)
                else:
                    found += 1
        met, cursor = indexes.following(state, path, step.kind, asked, (met, cursor))


@kernel
def _counted(state: State, number: int, rows: Words, found: int, lacks: int) -> int:
    """How many of a combination that was found are candidates: 0 if it was counted as lost. lacks:
    how many of its tuples are ghosts, or should not have looked."""
    streams = state.join[0].streams
    if lacks > 0:
        for depth in range(streams - 2):
            if state.frames[depth].ghost:
                above = state.steps[number, depth].window
                rows[above, found] = ~rows[above, found]
    if state.budget[0].policy == AGE:
        for other in range(streams):
            sequence = rows[other, found]
            if sequence >= 0:
                met_ts = record_at(state, other, sequence).ts
            else:
                met_ts = record_at(state, streams + other, ~sequence).ts
            if other != number:
                ages.match(state, other, met_ts, rows[streams, found])
    if lacks > 0 and state.budget[0].counts_only:
        charge(state, rows, found)
        return 0
    return 1


@kernel
def _prefetch(state: State, number: int, words: Any) -> None:
    """Prefetch what arrivals to come of a stream will ask for."""
    window = state.windows[number]
    ahead = min(window.cursor + _AHEAD, window.end - 1)
    indexes.prepare(state, window.paths, words[0, ahead])
    near = min(window.cursor + _NEAR, window.end - 1)
    indexes.prepare_chains(state, window.paths, words[0, near])
    hooks.prefetch_for(state, number, words[0, ahead])


@kernel
def _expire(state: State, number: int, now: int) -> None:
    """Drop from a stream's window, and from its ghosts, what has passed."""
    passed = min(now, state.join[0].watermark)
    ring.expire(state, number, passed)
    if has_budget(state) and state.budget[0].ghost_paths > 0:
        ring.expire(state, state.join[0].streams + number, passed)


@kernel
def arrive(
    state: State, ts: Words, words: Any, mute: Any, guests: Any, rows: Words
) -> tuple[int, int]:
    """Work through the arrivals between cursor and end of each stream.

    words[w]: their words for path w of their window. mute: which of them meet nothing; empty
    when all may. guests: which do not stay; empty when all do. Returns the number of candidates in
    `rows` and a status. An arrival is worked on whole or not at all, so the loop goes on where it
    stopped when it is called again.
    """
    found = 0
    while True:
        # next
        number = _next_stream(state, ts)
        status = hooks.before_instant(state, number, ts, found)
        if status != hooks.GO_ON:
            return found, INSTANT_OVER if status == hooks.VERIFY else GHOSTS_FULL
        if number < 0:
            return found, DONE
        if not indexes.has_room(state, number):
            return found, DIRECTORY_FULL
        # place
        _prefetch(state, number, words)
        window = state.windows[number]
        at = window.cursor
        _expire(state, number, ts[at])
        ring.place(state, number, ts[at], words, at)
        # probe
        is_mute = len(mute) > 0 and mute[at]
        status = hooks.on_probe(state, number, is_mute)
        if status == hooks.NO_ROOM:
            return found, GHOSTS_FULL
        key = words[0, at]
        entry = ring.MUTED if is_mute else indexes.locate(state, window.paths, key)
        if status == hooks.LOOKS:
            now_found = _probe(state, number, (key, entry), found, rows)
            if now_found < 0:
                if hooks.takes_back(state):
                    continue  # probe once more, to take back what was counted as lost
                return found, OUTPUT_FULL
            found = now_found
        hooks.after_probe(state, number, is_mute, words, at)
        # enter
        if len(guests) > 0 and guests[at]:
            ring.pass_by(state, number)
        elif not hooks.is_dropped(state, number):
            ring.append(state, number, entry)
        window.cursor += 1


@kernel
def refill(state: State, number: int, ts: Words, words: Any, mute: Any, begin: int) -> int:
    """Append tuples to a window without probing, from `begin` on; return where it had to stop."""
    paths = state.windows[number].paths
    for arrival in range(begin, len(ts)):
        if not indexes.has_room(state, number):
            return arrival
        ring.place(state, number, ts[arrival], words, arrival)
        entry = ring.MUTED
        if len(mute) == 0 or not mute[arrival]:
            entry = indexes.locate(state, paths, words[0, arrival])
        ring.append(state, number, entry)
    return len(ts)
