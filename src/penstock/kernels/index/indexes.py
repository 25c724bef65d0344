"""Every index behind the same verbs: clear, has_room, insert, remove, probe (first, following).

An index is of one path of a window. Kernels branch on the integer kind, so one compilation serves
every combination of indexes. A further index is one more kind in `KINDS` and one more branch in
each verb. What is asked for is a range of words, from low to high; chains know equal words only,
and are asked for no others. Tuples come from the greatest word to the least, and of one word from
the newest to the oldest.

Chains keep a tuple that is gone: a probe passes over one that has left its ring, or is marked
DEAD. From trees it is removed (`remove`), for they are found from above.

`locate` finds what the verbs of one key have in common, its directory entry, so that it is looked
for once however many windows are probed.
"""

from __future__ import annotations

from typing import Final

from penstock.kernels.arena import DEAD, MUTE, RECORD, State, is_plain, word_at
from penstock.kernels.index import bplus_tree, buckets, directory, scan, t_tree
from penstock.kernels.index.nodes import ENTRY, begin, sequence_at
from penstock.kernels.intrinsics.prefetch import prefetch
from penstock.kernels.jit import kernel
from penstock.kernels.links import NOWHERE, follow

__all__ = [
    "BPLUS_TREE", "BUCKETS", "HASH", "KINDS", "SCAN", "TREES", "T_TREE", "clear", "first",
    "following", "forget", "has_room", "insert", "locate", "newest", "older", "prepare",
    "prepare_chains", "remove",
]  # fmt: skip

HASH: Final = 0
BUCKETS: Final = 1
SCAN: Final = 2
BPLUS_TREE: Final = 3
T_TREE: Final = 4

KINDS: Final = {
    "hash": HASH, "buckets": BUCKETS, "scan": SCAN, "bplus_tree": BPLUS_TREE, "t_tree": T_TREE,
}  # fmt: skip
TREES: Final = {BPLUS_TREE: bplus_tree, T_TREE: t_tree}

_AHEAD: Final = 8  # entries of a tree between the fetching of a record and its use
_RECORD_WORDS: Final = RECORD.itemsize // 8


@kernel
def clear(state: State) -> None:
    """Empty the indexes of all windows."""
    for number in range(len(state.directories)):
        directory.clear(state, number)
    for path in range(len(state.paths)):
        buckets.clear(state, path)
        begin(state.paths[path])


@kernel
def forget(state: State, path: int) -> None:
    """Empty the index of one path; keys keep their entries, which other windows share."""
    kind = state.paths[path].kind
    if kind == HASH:
        directory.forget(state, path)
    elif kind == BUCKETS:
        buckets.clear(state, path)
    elif not is_plain(state) and kind in (BPLUS_TREE, T_TREE):
        begin(state.paths[path])


@kernel
def has_room(state: State, window: int) -> bool:
    """Whether a tuple with any words can be inserted into a window."""
    begin = state.windows[window].paths
    words = 1 if is_plain(state) else state.windows[window].words
    for path in range(begin, begin + words):  # noqa: SIM110  numba has no `all`
        if not _has_room(state, path):
            return False
    return True


@kernel
def _has_room(state: State, path: int) -> bool:
    descriptor = state.paths[path]
    return descriptor.kind != HASH or directory.has_room(state, _directory(state, path))


@kernel
def _directory(state: State, path: int) -> int:
    """The number of the directory of a path's group; -1 without."""
    return 0 if is_plain(state) else state.paths[path].directory


@kernel
def prepare(state: State, path: int, key: int) -> None:
    """Have the directory entry of a key fetched, which will soon be located."""
    number = _directory(state, path)
    if number >= 0 and state.directories[number].places > 0:
        prefetch(state.words, directory.home(state, number, key))


@kernel
def prepare_chains(state: State, path: int, key: int) -> None:
    """Have the newest tuples of a key fetched, whose directory entry has been."""
    number = _directory(state, path)
    if number < 0 or state.directories[number].places == 0:
        return
    entry = directory.home(state, number, key)
    if state.words[entry] != key:
        return
    for window in range(len(state.windows)):
        descriptor = state.windows[window]
        sequence = directory.newest(state, window, entry)
        place = descriptor.ring + (sequence & descriptor.mask)
        prefetch(state.words, _RECORD_WORDS * place)


@kernel
def locate(state: State, path: int, key: int) -> int:
    """Where all that is hashed under a key of a path's group is found; anything if nothing is."""
    number = _directory(state, path)
    if number < 0 or state.directories[number].places == 0:
        return 0
    return directory.find(state, number, key)


@kernel
def insert(state: State, path: int, sequence: int, entry: int) -> None:
    """Index a tuple that has its record; `entry` is where its key was located."""
    kind = state.paths[path].kind
    record = word_at(state, path, sequence)
    if kind == HASH:
        record.older = directory.insert(state, path, sequence, entry)
    elif kind == BUCKETS:
        record.older = buckets.insert(state, path, sequence, record.key)
    elif is_plain(state):
        return
    elif kind == BPLUS_TREE:
        bplus_tree.insert(state.words, state.paths[path], record.key, sequence)
    elif kind == T_TREE:
        t_tree.insert(state.words, state.paths[path], record.key, sequence)


@kernel
def remove(state: State, window: int, sequence: int) -> None:
    """Take a tuple out of the trees of its window."""
    if is_plain(state) or state.windows[window].trees == 0:
        return
    begin_at = state.windows[window].paths
    for path in range(begin_at, begin_at + state.windows[window].words):
        kind = state.paths[path].kind
        key = word_at(state, path, sequence).key
        if kind == BPLUS_TREE:
            bplus_tree.remove(state.words, state.paths[path], key, sequence)
        elif kind == T_TREE:
            t_tree.remove(state.words, state.paths[path], key, sequence)


@kernel
def _chained(state: State, path: int, key: int, sequence: int) -> int:
    """The first live tuple of a chain of one key, from `sequence` on."""
    while sequence != NOWHERE:
        record = word_at(state, path, sequence)
        if record.key != key or record.marks & MUTE:  # a link to what was there before
            return NOWHERE
        if not record.marks & DEAD:
            return sequence
        sequence = follow(state.windows[state.paths[path].window], sequence, record.older)
    return NOWHERE


@kernel
def first(state: State, path: int, kind: int, asked: tuple[int, int, int]) -> tuple[int, int]:
    """The first candidate of a path for what is asked (low, high, entry), or NOWHERE; and where
    a tree has it. kind: of the index, or a scan of it."""
    low, high, entry = asked
    descriptor = state.paths[path]
    if kind == HASH:
        if directory.is_free(state, entry):
            return NOWHERE, NOWHERE
        link = directory.newest(state, descriptor.window, entry)
        window = state.windows[descriptor.window]
        return _chained(state, path, low, follow(window, window.head, link)), NOWHERE
    if kind == BUCKETS:
        return buckets.first(state, path, low), NOWHERE
    if is_plain(state):
        return scan.first(state, path, low, high), NOWHERE
    if kind == BPLUS_TREE:
        return _found(state, path, bplus_tree.last(state.words, descriptor, low, high))
    if kind == T_TREE:
        return _found(state, path, t_tree.last(state.words, descriptor, low, high))
    return scan.first(state, path, low, high), NOWHERE


@kernel
def following(
    state: State, path: int, kind: int, asked: tuple[int, int, int], at: tuple[int, int]
) -> tuple[int, int]:
    """The candidate after one that is `at` a sequence number and a place in a tree."""
    low, high, _ = asked
    sequence, cursor = at
    descriptor = state.paths[path]
    if kind == HASH:
        window = state.windows[descriptor.window]
        link = word_at(state, path, sequence).older
        return _chained(state, path, low, follow(window, sequence, link)), NOWHERE
    if kind == BUCKETS:
        return buckets.following(state, path, low, sequence), NOWHERE
    if is_plain(state):
        return scan.following(state, path, low, high, sequence), NOWHERE
    if kind == BPLUS_TREE:
        return _found(state, path, bplus_tree.previous(state.words, descriptor, low, cursor))
    if kind == T_TREE:
        return _found(state, path, t_tree.previous(state.words, descriptor, low, cursor))
    return scan.following(state, path, low, high, sequence), NOWHERE


@kernel
def _found(state: State, path: int, cursor: int) -> tuple[int, int]:
    """The tuple at a place of a tree, and the place.

    The records of a range are anywhere in the ring: that of one further on is fetched meanwhile.
    Before the first entry of a node it is some other record, which does no harm.
    """
    if cursor == NOWHERE:
        return NOWHERE, NOWHERE
    tree = state.paths[path]
    coming = sequence_at(state.words, tree, cursor - _AHEAD * ENTRY)
    prefetch(state.words, _RECORD_WORDS * (tree.ring + (coming & tree.mask)))
    return sequence_at(state.words, tree, cursor), cursor


@kernel
def newest(state: State, window: int, key: int, entry: int) -> tuple[int, int]:
    """The newest tuple of a key in a window, or NOWHERE, and where a tree has it."""
    path = state.windows[window].paths
    return first(state, path, state.paths[path].kind, (key, key, entry))


@kernel
def older(state: State, window: int, key: int, at: tuple[int, int]) -> tuple[int, int]:
    """The next older of the same key."""
    path = state.windows[window].paths
    return following(state, path, state.paths[path].kind, (key, key, 0), at)
