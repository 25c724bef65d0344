"""The bucket index: a fixed number of chains that keys share (Kang et al., Golab and Özsu).

A bucket is one word, the ends of its chain. With b buckets and n live tuples a probe reads
n / b records; insert and remove are O(1).
"""

from __future__ import annotations

from typing import Any

from penstock.state.arena import NONE, State
from penstock.state.chain import append, unlink
from penstock.state.directory import slot
from penstock.state.jit import kernel

__all__ = ["clear", "first", "following", "insert", "remove"]


@kernel
def _ends(window: Any, key: int) -> int:
    """Where the bucket of a key is. Any number of buckets is legal, hence the division."""
    return 2 * (window.buckets + slot(key, 1 << 30) % window.bucket_count)


@kernel
def clear(state: State, number: int) -> None:
    """Empty all buckets of a window."""
    window = state.windows[number]
    for half in range(2 * window.buckets, 2 * (window.buckets + window.bucket_count)):
        state.halves[half] = NONE


@kernel
def _matching(state: State, ring: int, key: int, position: int) -> int:
    while position != NONE:
        record = state.records[ring + position]
        if record.key == key:
            return position
        position = record.older
    return NONE


@kernel
def first(state: State, number: int, key: int) -> int:
    """The newest tuple of a key, or NONE."""
    window = state.windows[number]
    return _matching(state, window.ring, key, state.halves[_ends(window, key)])


@kernel
def following(state: State, number: int, key: int, position: int) -> int:
    """The next older tuple of a key, or NONE."""
    window = state.windows[number]
    return _matching(state, window.ring, key, state.records[window.ring + position].older)


@kernel
def insert(state: State, number: int, position: int) -> None:
    """Link the record at `position` as the newest of its bucket."""
    window = state.windows[number]
    ends = _ends(window, state.records[window.ring + position].key)
    append(state, window.ring, position, ends)


@kernel
def remove(state: State, number: int, position: int) -> None:
    """Unlink the record at `position` from its bucket."""
    window = state.windows[number]
    ends = _ends(window, state.records[window.ring + position].key)
    unlink(state, window.ring, position, ends)
