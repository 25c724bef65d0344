"""Every index behind the same verbs: clear, has_room, insert, probe (first, following), remove.

Kernels branch on the integer kind, so one compilation serves every combination of indexes.
A further index is one more kind in `KINDS` and one more branch in each verb.

`locate` finds what the verbs of one arrival have in common, the directory entry of its key,
so that it is looked for once however many windows are probed.
"""

from __future__ import annotations

from typing import Final

from penstock.state import buckets, directory, scan
from penstock.state.arena import State
from penstock.state.jit import kernel

__all__ = [
    "BUCKETS", "HASH", "KINDS", "SCAN", "clear", "first", "following", "has_room", "insert",
    "locate", "remove",
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
def locate(state: State, key: int) -> int:
    """Where everything hashed under a key is found; anything when nothing is hashed."""
    return directory.find(state, key) if state.join[0].directory_size > 0 else 0


@kernel
def insert(state: State, number: int, position: int, entry: int) -> None:
    """Index the record at `position`; `entry` is where its key was located."""
    kind = state.windows[number].kind
    if kind == HASH:
        directory.insert(state, number, position, entry)
    elif kind == BUCKETS:
        buckets.insert(state, number, position)


@kernel
def remove(state: State, number: int, position: int) -> None:
    """Forget the record at `position`."""
    kind = state.windows[number].kind
    if kind == HASH:
        directory.remove(state, number, position)
    elif kind == BUCKETS:
        buckets.remove(state, number, position)


@kernel
def first(state: State, number: int, key: int, entry: int) -> int:
    """The newest candidate for a key, or NONE."""
    kind = state.windows[number].kind
    if kind == HASH:
        return directory.newest(state, number, entry)
    if kind == BUCKETS:
        return buckets.first(state, number, key)
    return scan.first(state, number, key)


@kernel
def following(state: State, number: int, key: int, position: int) -> int:
    """The next older candidate for a key, or NONE."""
    window = state.windows[number]
    if window.kind == HASH:
        return state.records[window.ring + position].older
    if window.kind == BUCKETS:
        return buckets.following(state, number, key, position)
    return scan.following(state, number, key, position)
