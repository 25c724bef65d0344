"""The bucket index: a fixed number of chains that keys share (Kang et al., Golab and Özsu).

A bucket is the link to its newest tuple. With b buckets and n live tuples a probe reads
n / b records, an insert one. Keys share chains, so a chain goes on past a record of another
key: as long as that record is of the same bucket.
"""

from __future__ import annotations

from typing import Any

from penstock.kernels.arena import DEAD, MUTE, State, word_at
from penstock.kernels.index.directory import slot
from penstock.kernels.jit import kernel
from penstock.kernels.links import NOWHERE, follow, link_to

__all__ = ["clear", "first", "following", "insert"]


@kernel
def _bucket(path: Any, key: int) -> int:
    """The half where the bucket of a key is."""
    return 2 * path.buckets + slot(key, path.bucket_count)


@kernel
def clear(state: State, number: int) -> None:
    """Empty all buckets of a path."""
    path = state.paths[number]
    for bucket in range(path.bucket_count):
        state.halves[2 * path.buckets + bucket] = 0


@kernel
def _matching(state: State, number: int, key: int, sequence: int) -> int:
    """The first tuple of a key in a chain from `sequence` on."""
    path = state.paths[number]
    window = state.windows[path.window]
    bucket = _bucket(path, key)
    while sequence != NOWHERE:
        record = word_at(state, number, sequence)
        if record.marks & MUTE:  # a link to what was there before
            return NOWHERE
        if record.key == key and not record.marks & DEAD:
            return sequence
        if record.key != key and _bucket(path, record.key) != bucket:
            return NOWHERE
        sequence = follow(window, sequence, record.older)
    return NOWHERE


@kernel
def first(state: State, number: int, key: int) -> int:
    """The newest tuple of a key, or NOWHERE."""
    path = state.paths[number]
    window = state.windows[path.window]
    link = state.halves[_bucket(path, key)]
    return _matching(state, number, key, follow(window, window.head, link))


@kernel
def following(state: State, number: int, key: int, sequence: int) -> int:
    """The next older tuple of a key, or NOWHERE."""
    window = state.windows[state.paths[number].window]
    older = word_at(state, number, sequence).older
    return _matching(state, number, key, follow(window, sequence, older))


@kernel
def insert(state: State, number: int, sequence: int, key: int) -> int:
    """Make a tuple the newest of its bucket; return the link to the one that was."""
    bucket = _bucket(state.paths[number], key)
    older = state.halves[bucket]
    state.halves[bucket] = link_to(sequence)
    return older
