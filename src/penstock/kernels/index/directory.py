"""The hash index: a directory of distinct keys, each with the chains of its tuples.

One directory serves all windows that are hashed on columns which must be equal. An entry is the
key and, for each window, the link to its newest tuple with that key. Two windows, 16 bytes:

    |          key          |  newest 0 |  newest 1 |

So an arrival finds its own chain and those of its partners in one look: with a directory
for each window, every arrival missed the cache twice, and the join was a third slower.

Open addressing with linear probing. A free entry has FREE in the place of newest 0. An
entry whose tuples are all gone keeps its place until the directory is rebuilt, which the
caller does before more than 60 % of the entries are in use.

    find, insert: O(1) expected. probe: O(1) to each tuple.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.kernels.arena import State, word_at
from penstock.kernels.jit import kernel
from penstock.kernels.links import NOWHERE, follow, link_to

__all__ = [
    "FREE", "check", "clear", "directory_size", "entry_words", "find", "forget", "has_room", "home",
    "insert", "is_free", "live_keys", "mixed", "newest", "slot",
]  # fmt: skip

FREE: Final = -1  # no link is negative

_MULTIPLIER: Final = np.uint64(0x9E37_79B9_7F4A_7C15)  # 2^64 over the golden ratio
_FOLD: Final = np.uint64(32)


def directory_size(keys: int, *, tight: bool = False) -> int:
    """Entries for that many keys, of which at most 60 % are in use: a power of two, so that a
    directory that grows does so by much, or tight, as few as will do."""
    size = 16
    if tight:
        return max(size, keys * 10 // 6 + 2)
    while keys * 10 > size * 6:
        size *= 2
    return size


@kernel
def entry_words(windows: int) -> int:
    """Words of an entry."""
    return 1 + (windows + 1) // 2


@kernel
def _links(entry: int) -> int:
    """The half where the links of an entry start."""
    return 2 * entry + 2


@kernel
def mixed(key: int) -> Any:
    """A word whose high bits distinguish keys."""
    word = np.uint64(key)
    return (word ^ (word >> _FOLD)) * _MULTIPLIER


@kernel
def slot(key: int, size: int) -> Any:
    """Where the search for a key begins, of any number of places: a multiplicative hash.

    The high bits of the product are the good ones: dense integers, the usual keys, get a
    place each. By the bits in the middle three of four were displaced.
    """
    return np.int64(((mixed(key) >> _FOLD) * np.uint64(size)) >> _FOLD)


@kernel
def clear(state: State, number: int) -> None:
    """Free all entries of a directory."""
    directory = state.directories[number]
    directory.filled = 0
    stride = entry_words(len(state.windows))
    for place in range(directory.places):
        state.halves[_links(directory.start + place * stride)] = FREE


@kernel
def forget(state: State, path: int) -> None:
    """Take the tuples of one path out of all entries."""
    descriptor = state.paths[path]
    directory = state.directories[descriptor.directory]
    stride = entry_words(len(state.windows))
    for place in range(directory.places):
        links = _links(directory.start + place * stride)
        if state.halves[links] != FREE:
            # Of nothing; where the link of the first window says that an entry is in use, so too.
            state.halves[links + descriptor.window] = 0


@kernel
def has_room(state: State, number: int) -> bool:
    """Whether one more distinct key fits."""
    return state.directories[number].filled * 10 < state.directories[number].places * 6


@kernel
def is_free(state: State, entry: int) -> bool:
    """Whether an entry stands for no key."""
    return state.halves[_links(entry)] == FREE


@kernel
def home(state: State, number: int, key: int) -> int:
    """The word where the entry of a key starts, unless another key was there first."""
    directory = state.directories[number]
    return directory.start + slot(key, directory.places) * entry_words(len(state.windows))


@kernel
def find(state: State, number: int, key: int) -> int:
    """The word where the entry of a key starts, or the free entry where it would go."""
    directory = state.directories[number]
    stride = entry_words(len(state.windows))
    place = slot(key, directory.places)
    while True:
        entry = directory.start + place * stride
        if state.words[entry] == key or is_free(state, entry):
            return entry
        place = place + 1 if place + 1 < directory.places else 0


@kernel
def newest(state: State, window: int, entry: int) -> int:
    """The link to the newest tuple of an entry in a window; in a free entry, anything."""
    return state.halves[_links(entry) + window]


@kernel
def insert(state: State, path: int, sequence: int, entry: int) -> int:
    """Make a tuple the newest of its entry; return the link to the one that was."""
    descriptor = state.paths[path]
    older = newest(state, descriptor.window, entry)
    if is_free(state, entry):
        state.words[entry] = word_at(state, path, sequence).key
        for half in range(_links(entry), _links(entry) + len(state.windows)):
            state.halves[half] = 0
        state.directories[descriptor.directory].filled += 1
        older = 0
    state.halves[_links(entry) + descriptor.window] = link_to(sequence)
    return older


@kernel
def _is_live(state: State, number: int, entry: int) -> bool:
    if is_free(state, entry):
        return False
    for path in range(len(state.paths)):
        if state.paths[path].directory == number:
            window = state.windows[state.paths[path].window]
            link = newest(state, state.paths[path].window, entry)
            sequence = follow(window, window.head, link)
            if sequence != NOWHERE and word_at(state, path, sequence).key == state.words[entry]:
                return True
    return False


@kernel
def live_keys(state: State, number: int) -> int:
    """How many keys have a tuple in some window. O(entries)."""
    directory = state.directories[number]
    stride = entry_words(len(state.windows))
    count = 0
    for place in range(directory.places):
        if _is_live(state, number, directory.start + place * stride):
            count += 1
    return count


def check(state: State, number: int, live: set[int]) -> None:
    """Raise AssertionError unless all keys of `live` are found, and the entries are sound."""
    directory = state.directories[number]
    keys = []
    for place in range(int(directory.places)):
        entry = int(directory.start) + place * int(entry_words(len(state.windows)))
        if not is_free(state, entry):
            keys.append(int(state.words[entry]))
            assert find(state, number, state.words[entry]) == entry
    assert len(keys) == len(set(keys)) == directory.filled
    assert live <= set(keys)
    assert (directory.filled - 1) * 10 < directory.places * 6
