"""Every index behind the same verbs: clear, has_room, insert, and probe (first, following).

Kernels branch on the integer kind, so one compilation serves every combination of indexes.
A further index is one more kind in `KINDS` and one more branch in each verb. There is no
verb for removal: a tuple that has left its ring, or is marked DEAD, is passed over.

`locate` finds what the verbs of one arrival have in common, the directory entry of its key,
so that it is looked for once however many windows are probed.
"""

from __future__ import annotations

from typing import Final

from penstock.state import buckets, directory, scan
from penstock.state.arena import DEAD, MUTE, State, record_at
from penstock.state.jit import kernel
from penstock.state.links import NOWHERE, follow
from penstock.state.prefetch import prefetch

__all__ = [
    "BUCKETS", "HASH", "KINDS", "SCAN", "clear", "first", "following", "has_room", "insert",
    "locate", "prepare",
]  # fmt: skip

HASH: Final = 0
BUCKETS: Final = 1
SCAN: Final = 2

KINDS: Final = {"hash": HASH, "buckets": BUCKETS, "scan": SCAN}


@kernel
def clear(state: State) -> None:
    """Empty the indexes of all windows."""
    directory.clear(state)
    for number in range(state.join[0].streams):
        buckets.clear(state, number)


@kernel
def has_room(state: State, number: int) -> bool:
    """Whether a tuple of any key can be inserted into a window."""
    return state.windows[number].kind != HASH or directory.has_room(state)


@kernel
def prepare(state: State, key: int) -> None:
    """Have the directory entry of a key fetched, which will soon be located."""
    if state.join[0].directory_size > 0:
        prefetch(state.words, directory.home(state, key))


@kernel
def locate(state: State, key: int) -> int:
    """Where everything hashed under a key is found; anything when nothing is hashed."""
    return directory.find(state, key) if state.join[0].directory_size > 0 else 0


@kernel
def insert(state: State, number: int, sequence: int, entry: int) -> None:
    """Index the tuple whose record is at `sequence`; `entry` is where its key was located."""
    kind = state.windows[number].kind
    record = record_at(state, number, sequence)
    if record.marks & MUTE:
        return
    if kind == HASH:
        record.older = directory.insert(state, number, sequence, entry)
    elif kind == BUCKETS:
        record.older = buckets.insert(state, number, sequence, record.key)


@kernel
def _chained(state: State, number: int, key: int, sequence: int) -> int:
    """The first live tuple of a chain of one key, from `sequence` on."""
    while sequence != NOWHERE:
        record = record_at(state, number, sequence)
        if record.key != key or record.marks & MUTE:  # a link to what was there before
            return NOWHERE
        if not record.marks & DEAD:
            return sequence
        sequence = follow(state.windows[number], sequence, record.older)
    return NOWHERE


@kernel
def first(state: State, number: int, key: int, entry: int) -> int:
    """The newest candidate for a key, or NOWHERE."""
    window = state.windows[number]
    if window.kind == HASH:
        if directory.is_free(state, entry):
            return NOWHERE
        link = directory.newest(state, number, entry)
        return _chained(state, number, key, follow(window, window.head, link))
    if window.kind == BUCKETS:
        return buckets.first(state, number, key)
    return scan.first(state, number, key)


@kernel
def following(state: State, number: int, key: int, sequence: int) -> int:
    """The next older candidate for a key, or NOWHERE."""
    window = state.windows[number]
    if window.kind == HASH:
        link = record_at(state, number, sequence).older
        return _chained(state, number, key, follow(window, sequence, link))
    if window.kind == BUCKETS:
        return buckets.following(state, number, key, sequence)
    return scan.following(state, number, key, sequence)
