"""The hash index: a directory of distinct keys, each with the chains of its tuples.

One directory serves all windows that are hashed on the key. An entry is the key and, for
each window, the ends of the chain of its tuples with that key:

    | key | newest 0, oldest 0 | newest 1, oldest 1 | ...            one word each

So an arrival finds its own chain and those of its partners in one look: with a directory
for each window, every arrival missed the cache twice, and the join was a third slower.

Open addressing with linear probing. A free entry has FREE in the place of newest 0. An
entry whose chains are all empty keeps its place until the directory is rebuilt, which the
caller does before more than 60 % of the entries are in use.

    find, insert, remove: O(1) expected. probe: O(1) to each tuple.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.state.arena import NONE, State
from penstock.state.chain import append, unlink
from penstock.state.jit import kernel

__all__ = [
    "FREE", "check", "claim", "clear", "directory_size", "entry_words", "find", "has_room",
    "insert", "live_keys", "newest", "remove", "slot",
]  # fmt: skip

FREE: Final = -2

_MULTIPLIER: Final = np.uint64(0x9E37_79B9_7F4A_7C15)  # 2^64 over the golden ratio
_FOLD: Final = np.uint64(32)


def directory_size(keys: int) -> int:
    """Entries for that many keys: a power of two, at most 60 % of it in use."""
    size = 16
    while keys * 10 > size * 6:
        size *= 2
    return size


@kernel
def entry_words(streams: int) -> int:
    """Words of an entry."""
    return 1 + streams


@kernel
def slot(key: int, size: int) -> Any:
    """Where the search for a key begins: a multiplicative hash of its 64 bits."""
    mixed = np.uint64(key)
    mixed = (mixed ^ (mixed >> _FOLD)) * _MULTIPLIER
    return np.int64((mixed >> _FOLD) & np.uint64(size - 1))


@kernel
def clear(state: State) -> None:
    """Free all entries."""
    join = state.join[0]
    join.filled = 0
    stride = entry_words(join.streams)
    for place in range(join.directory_size):
        state.halves[2 * (join.directory + place * stride + 1)] = FREE


@kernel
def find(state: State, key: int) -> int:
    """The word where the entry of a key starts, or the free entry where it would go."""
    join = state.join[0]
    stride = entry_words(join.streams)
    place = slot(key, join.directory_size)
    while True:
        entry = join.directory + place * stride
        if state.words[entry] == key or state.halves[2 * (entry + 1)] == FREE:
            return entry
        place = (place + 1) & (join.directory_size - 1)


@kernel
def has_room(state: State) -> bool:
    """Whether one more distinct key fits."""
    return state.join[0].filled * 10 < state.join[0].directory_size * 6


@kernel
def is_free(state: State, entry: int) -> bool:
    """Whether an entry stands for no key."""
    return state.halves[2 * (entry + 1)] == FREE


@kernel
def claim(state: State, entry: int, key: int) -> None:
    """Make a free entry that of a key."""
    state.words[entry] = key
    for half in range(2 * (entry + 1), 2 * (entry + 1 + state.join[0].streams)):
        state.halves[half] = NONE
    state.join[0].filled += 1


@kernel
def newest(state: State, number: int, entry: int) -> int:
    """The newest tuple of an entry in a window, or NONE."""
    position = state.halves[2 * (entry + 1 + number)]
    return NONE if is_free(state, entry) else position


@kernel
def insert(state: State, number: int, position: int, entry: int) -> None:
    """Link the record at `position` of a window as the newest of its key."""
    window = state.windows[number]
    if is_free(state, entry):
        claim(state, entry, state.records[window.ring + position].key)
    append(state, window.ring, position, 2 * (entry + 1 + number))


@kernel
def remove(state: State, number: int, position: int) -> None:
    """Unlink the record at `position` of a window from the chain of its key."""
    window = state.windows[number]
    entry = find(state, state.records[window.ring + position].key)
    unlink(state, window.ring, position, 2 * (entry + 1 + number))


@kernel
def live_keys(state: State) -> int:
    """How many keys have a live tuple in some window. O(entries)."""
    join = state.join[0]
    stride = entry_words(join.streams)
    count = 0
    for place in range(join.directory_size):
        entry = join.directory + place * stride
        if not is_free(state, entry):
            for number in range(join.streams):
                if newest(state, number, entry) != NONE:
                    count += 1
                    break
    return count


def check(state: State, live: dict[int, Any]) -> None:
    """Raise AssertionError unless exactly the keys of `live` have tuples in the directory."""
    join = state.join[0]
    found, filled = set(), 0
    for place in range(int(join.directory_size)):
        entry = int(join.directory) + place * int(entry_words(join.streams))
        if is_free(state, entry):
            continue
        filled += 1
        assert find(state, state.words[entry]) == entry
        chains = state.halves[2 * (entry + 1) : 2 * (entry + 1 + join.streams)].reshape(-1, 2)
        assert bool(((chains[:, 0] == NONE) == (chains[:, 1] == NONE)).all())
        if (chains != NONE).any():
            found.add(int(state.words[entry]))
    assert found == set(live)
    assert filled == join.filled
    assert (filled - 1) * 10 < join.directory_size * 6
