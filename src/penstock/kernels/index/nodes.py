"""Nodes of the ordered indexes: an area of the arena, cut into pieces of one size.

A node is NODE_WORDS words: a header, then its entries, packed from the front and in order.
An entry is a key and a sequence number side by side; what more of an entry there is comes
behind them, and `stride` is how many words it has in all. Entries are ordered by key, then
by sequence number, so no two are equal and those of one key stand oldest first.

    | count | links ...     |  key sequence  |  key sequence  |  ...  unused |
    0       1               HEADER

A tree is a record with the fields of TREE, or a larger one that has them too. Freed nodes
are a list through their first link; nodes from `fresh` on have never been used. So

    nodes in use + nodes in the list = fresh <= node_room.

    take, give_back: O(1). rank: O(log entries of a node).

A cache line is 64 bytes, and so long is the header with the first entry: a search that asks
a node only whether to go left or right reads one line of it. Nodes of 256 words hold 125
entries (Kang et al. chose 100). Nodes of half the size were as fast to insert into and to
remove from at 100,000 entries, and a quarter slower to walk through; of a quarter, slower
at everything.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.kernels.arena import TREE, Words
from penstock.kernels.intrinsics.choice import choose
from penstock.kernels.intrinsics.prefetch import prefetch
from penstock.kernels.intrinsics.word_moves import move
from penstock.kernels.jit import kernel
from penstock.kernels.links import NOWHERE

__all__ = [
    "COUNT",
    "ENTRY",
    "HEADER",
    "LAST_SEQUENCE",
    "LINK",
    "NODE_WORDS",
    "TREE",
    "begin",
    "close_gap",
    "cursor_to",
    "entry_at",
    "fetch",
    "give_back",
    "is_first",
    "key_at",
    "node_of",
    "not_after",
    "open_gap",
    "put",
    "rank",
    "sequence_at",
    "start",
    "take",
]  # fmt: skip

_SHIFT: Final = 8
NODE_WORDS: Final = 1 << _SHIFT  # a power of two: that makes cursors cheap
HEADER: Final = 6  # words before the first entry
COUNT: Final = 0  # word of the number of entries
LINK: Final = 1  # word of the first link, that of a freed node included
ENTRY: Final = 2  # words of an entry that is a key and a sequence number only
_LINE: Final = 8  # words of a cache line
LAST_SEQUENCE: Final = np.iinfo(np.int64).max  # no sequence number is above it


@kernel
def begin(tree: Any) -> None:
    """Make a tree empty."""
    tree.root = NOWHERE
    tree.height = 0
    tree.free = NOWHERE
    tree.fresh = 0
    tree.entries = 0


@kernel
def start(tree: Any, node: int) -> int:
    """The word where a node starts."""
    return tree.nodes + node * NODE_WORDS


@kernel
def fetch(words: Words, node_start: int) -> None:
    """Have a whole node fetched: searched, it would be fetched line after line."""
    for line in range(node_start, node_start + NODE_WORDS, _LINE):
        prefetch(words, line)


@kernel
def take(words: Words, tree: Any) -> int:
    """A node without entries; its links are anything."""
    node = tree.free
    if node == NOWHERE:
        node = tree.fresh
        tree.fresh = node + 1
    else:
        tree.free = words[start(tree, node) + LINK]
    words[start(tree, node) + COUNT] = 0
    return node


@kernel
def give_back(words: Words, tree: Any, node: int) -> None:
    """Free a node."""
    words[start(tree, node) + LINK] = tree.free
    tree.free = node


@kernel
def entry_at(node_start: int, position: int, stride: int) -> int:
    """The word where an entry of the node at `node_start` starts."""
    return node_start + HEADER + position * stride


@kernel
def cursor_to(node: int, position: int) -> int:
    """The cursor to an entry of ENTRY words: the word where it starts, from the first node on."""
    return entry_at(node << _SHIFT, position, ENTRY)


@kernel
def node_of(cursor: int) -> int:
    """The node that a cursor leads to."""
    return cursor >> _SHIFT


@kernel
def is_first(cursor: int) -> bool:
    """Whether a cursor leads to the first entry of its node."""
    return cursor & (NODE_WORDS - 1) == HEADER


@kernel
def key_at(words: Words, tree: Any, cursor: int) -> int:
    """The key of the entry at a cursor."""
    return words[tree.nodes + cursor]


@kernel
def sequence_at(words: Words, tree: Any, cursor: int) -> int:
    """The sequence number of the entry at a cursor."""
    return words[tree.nodes + cursor + 1]


@kernel
def not_after(words: Words, entry: int, key: int, sequence: int) -> bool:
    """Whether the entry at a word is (key, sequence) or before it."""
    found = words[entry]
    return (found < key) | ((found == key) & (words[entry + 1] <= sequence))


@kernel
def rank(words: Words, first: int, count: int, stride: int, key: int, sequence: int) -> int:
    """How many of the `count` entries from word `first` on are (key, sequence) or before it."""
    at = first
    while count > 0:
        half = (count + 1) >> 1
        ahead = at + half * stride
        at = choose(not_after(words, ahead - stride, key, sequence), ahead, at)
        count -= half
    return (at - first) // stride


@kernel
def open_gap(words: Words, node_start: int, position: int, gap: int, stride: int) -> None:
    """Move the entries from `position` on up by `gap`, and count `gap` more in the node."""
    count = words[node_start + COUNT]
    at = entry_at(node_start, position, stride)
    move(words, at + gap * stride, at, (count - position) * stride)
    words[node_start + COUNT] = count + gap


@kernel
def close_gap(words: Words, node_start: int, position: int, gap: int, stride: int) -> None:
    """Take out `gap` entries from `position` on."""
    count = words[node_start + COUNT] - gap
    at = entry_at(node_start, position, stride)
    move(words, at, at + gap * stride, (count - position) * stride)
    words[node_start + COUNT] = count


@kernel
def put(words: Words, node_start: int, position: int, key: int, sequence: int) -> None:
    """Put an entry of ENTRY words into a node that has room."""
    open_gap(words, node_start, position, 1, ENTRY)
    at = entry_at(node_start, position, ENTRY)
    words[at] = key
    words[at + 1] = sequence
