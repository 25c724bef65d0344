"""What is measured of an index: the calls of the loop, with all else left out."""

from __future__ import annotations

from typing import Final

from penstock.kernels import ring
from penstock.kernels.arena import State, Words, word_at
from penstock.kernels.index import indexes
from penstock.kernels.jit import kernel
from penstock.kernels.links import NOWHERE

__all__ = ["OWN", "fill", "locate_all", "probe_all", "update_all"]

OWN: Final = 1  # the window that is measured; window 0 stays empty
_AHEAD: Final = 6  # as in the loop of the join
_NEAR: Final = 2


@kernel
def probe_all(state: State, keys: Words, found: Words) -> int:
    """Look for all tuples of each key, and write down those that are in the window; how many."""
    step = state.steps[0, 0]
    path, window = step.path, state.windows[step.window]
    now = state.join[0].watermark
    most = len(found) - 1
    count = 0
    for arrival in range(len(keys)):
        ahead = min(arrival + _AHEAD, len(keys) - 1)
        indexes.prepare(state, path, keys[ahead])
        near = min(arrival + _NEAR, len(keys) - 1)
        indexes.prepare_chains(state, path, keys[near])
        key = keys[arrival]
        asked = (key, key, indexes.locate(state, path, key))
        met, cursor = indexes.first(state, path, step.kind, asked)
        while met != NOWHERE:
            if now <= ring.ends(window, word_at(state, path, met).ts):
                found[count & most] = met
                count += 1
            met, cursor = indexes.following(state, path, step.kind, asked, (met, cursor))
    return count


@kernel
def locate_all(state: State, keys: Words, entries: Words) -> None:
    """Where all keys are in the directory."""
    path = state.windows[OWN].paths
    for arrival in range(len(keys)):
        entries[arrival] = indexes.locate(state, path, keys[arrival])


@kernel
def update_all(state: State, ts: Words, words: Words, entries: Words) -> None:
    """Let tuples in, each of which lets out what it ends. They have been located."""
    for arrival in range(len(ts)):
        ring.expire(state, OWN, ts[arrival])
        ring.place(state, OWN, ts[arrival], words, arrival)
        ring.append(state, OWN, entries[arrival])


@kernel
def fill(state: State, ts: Words, words: Words, begin: int) -> int:
    """Let tuples in that may have new keys; return where it had to stop."""
    for arrival in range(begin, len(ts)):
        if not indexes.has_room(state, OWN):
            return arrival
        ring.expire(state, OWN, ts[arrival])
        ring.place(state, OWN, ts[arrival], words, arrival)
        entry = indexes.locate(state, state.windows[OWN].paths, words[0, arrival])
        ring.append(state, OWN, entry)
    return len(ts)
