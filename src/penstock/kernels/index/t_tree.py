r"""The T-tree of Lehman and Carey: a balanced binary tree of sorted nodes (Kang et al.).

Every node holds entries; those of its left subtree are before them, those of its right
subtree after them. Drawn with three entries to a node; (5, 2) is key 5, sequence number 2:

                     | (5,2) (5,6) (8,3) |
                       /               \
             | (1,4) (3,0) |        | (9,5) (9,7) |

The node that bounds an entry is the last one, in order, that does not start after it. If it
is full, its least entries go to the node just before it, at the end of its left subtree; the
tree only grows a leaf when that is full too.

Invariants: the heights of a node's subtrees differ by one at most; no node is empty; a node
with two children holds LEAST entries or more; a node with one child, which is a leaf, holds
with it more than MERGED.

    insert, remove, last: O(log n). previous: O(1) on average, O(log n) at worst.
    key_at, sequence_at, clear: O(1).

Departures from Lehman and Carey: up to _HANDED entries change nodes at a time, instead of
one, so that a full node is not asked for room by every insert; a search compares with the
first entry of a node only, and reads one cache line of it; nodes know their parents, so that
the entry before one is found from a cursor. Their special rotation is the case of `_mend`
where a node that holds too little has just become the top of a subtree.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.kernels.arena import Words
from penstock.kernels.index.nodes import (
    COUNT,
    ENTRY,
    HEADER,
    LAST_SEQUENCE,
    LINK,
    NODE_WORDS,
    begin,
    close_gap,
    cursor_to,
    entry_at,
    fetch,
    give_back,
    is_first,
    key_at,
    node_of,
    not_after,
    open_gap,
    put,
    rank,
    sequence_at,
    start,
    take,
)
from penstock.kernels.intrinsics.word_moves import move
from penstock.kernels.jit import kernel, outlined
from penstock.kernels.links import NOWHERE

__all__ = [
    "NODE_WORDS", "clear", "has_room", "insert", "key_at", "last", "nodes_for",
    "previous", "remove", "sequence_at",
]  # fmt: skip

LEFT: Final = LINK
RIGHT: Final = LINK + 1
PARENT: Final = LINK + 2
HEIGHT: Final = LINK + 3  # levels of the subtree: 1 for a leaf

ROOM: Final = (NODE_WORDS - HEADER) // ENTRY
_HANDED: Final = ROOM // 8
LEAST: Final = ROOM - _HANDED
MERGED: Final = ROOM * 3 // 4  # not all of ROOM: the next insert would part them again


def nodes_for(entries: int) -> int:
    """How many nodes are enough for `entries`, whatever came and went.

    Of n leaves n - 1 are paired with a node that has two children, and so with LEAST entries
    at least; a node with one child only makes it better.
    """
    return 2 * (entries + LEAST) // (LEAST + 1) + 1


_most_nodes = kernel(nodes_for)
clear = begin


@kernel
def has_room(tree: Any) -> bool:
    """Whether one more entry cannot run out of nodes."""
    return _most_nodes(tree.entries + 1) <= tree.node_room


@kernel
def _link(words: Words, tree: Any, node: int, link: int) -> int:
    return words[start(tree, node) + link]


@kernel
def _height(words: Words, tree: Any, node: int) -> int:
    return 0 if node == NOWHERE else _link(words, tree, node, HEIGHT)


@kernel
def _greatest(words: Words, tree: Any, node: int) -> int:
    """The last node of a subtree, in order."""
    while _link(words, tree, node, RIGHT) != NOWHERE:
        node = _link(words, tree, node, RIGHT)
    return node


@kernel
def _attach(words: Words, tree: Any, parent: int, link: int) -> int:
    """A new leaf, without entries, as a child of a node or as the root."""
    leaf = take(words, tree)
    at = start(tree, leaf)
    words[at + LEFT] = NOWHERE
    words[at + RIGHT] = NOWHERE
    words[at + PARENT] = parent
    words[at + HEIGHT] = 1
    if parent == NOWHERE:
        tree.root = leaf
        tree.height = 1
    else:
        words[start(tree, parent) + link] = leaf
    return leaf


@kernel
def _replace(words: Words, tree: Any, node: int, other: int) -> None:
    """Put another node, or NOWHERE, in the place of one below its parent."""
    parent = _link(words, tree, node, PARENT)
    if parent == NOWHERE:
        tree.root = other
    elif _link(words, tree, parent, LEFT) == node:
        words[start(tree, parent) + LEFT] = other
    else:
        words[start(tree, parent) + RIGHT] = other
    if other != NOWHERE:
        words[start(tree, other) + PARENT] = parent


@kernel
def _measure(words: Words, tree: Any, node: int) -> None:
    """Set the height of a node from those of its children."""
    left = _height(words, tree, _link(words, tree, node, LEFT))
    right = _height(words, tree, _link(words, tree, node, RIGHT))
    words[start(tree, node) + HEIGHT] = max(left, right) + 1


@outlined
def _rotate(words: Words, tree: Any, node: int, link: int) -> int:
    """Let the child at `link` take the place of a node, which becomes its other child."""
    opposite = LEFT + RIGHT - link
    child = _link(words, tree, node, link)
    between = _link(words, tree, child, opposite)
    _replace(words, tree, node, child)
    words[start(tree, child) + opposite] = node
    words[start(tree, node) + PARENT] = child
    words[start(tree, node) + link] = between
    if between != NOWHERE:
        words[start(tree, between) + PARENT] = node
    _measure(words, tree, node)
    _measure(words, tree, child)
    return child


@kernel
def _hand_down(words: Words, tree: Any, node: int, below: int, count: int) -> None:
    """Append the first `count` entries of a node to the node just before it."""
    source, target = start(tree, node), start(tree, below)
    end = words[target + COUNT]
    move(words, entry_at(target, end, ENTRY), source + HEADER, count * ENTRY)
    words[target + COUNT] = end + count
    close_gap(words, source, 0, count, ENTRY)


@kernel
def _hand_up(words: Words, tree: Any, node: int, below: int, count: int) -> None:
    """Put the last `count` entries of the node just before a node in front of its own."""
    target, source = start(tree, node), start(tree, below)
    rest = words[source + COUNT] - count
    open_gap(words, target, 0, count, ENTRY)
    move(words, target + HEADER, entry_at(source, rest, ENTRY), count * ENTRY)
    words[source + COUNT] = rest


@kernel
def _merge(words: Words, tree: Any, node: int) -> None:
    """Take in the only child of a node, a leaf."""
    left = _link(words, tree, node, LEFT)
    if left != NOWHERE:
        _hand_up(words, tree, node, left, _link(words, tree, left, COUNT))
        words[start(tree, node) + LEFT] = NOWHERE
        give_back(words, tree, left)
    else:
        right = _link(words, tree, node, RIGHT)
        _hand_down(words, tree, right, node, _link(words, tree, right, COUNT))
        words[start(tree, node) + RIGHT] = NOWHERE
        give_back(words, tree, right)


@outlined
def _mend(words: Words, tree: Any, node: int) -> None:
    """Restore the invariants from a node upwards; they hold everywhere else.

    A node that holds too little takes entries from the node just before it, and mending
    goes on from there. If that was not enough, that node was left empty: then it goes, and
    since the tree has another shape, mending goes up to the root and meets the first again.
    """
    reshaped = False
    while node != NOWHERE:
        at = start(tree, node)
        left, right, count = words[at + LEFT], words[at + RIGHT], words[at + COUNT]
        # 1. What it holds. NOWHERE is below all nodes.
        if min(left, right) != NOWHERE:
            if count < LEAST:
                below = _greatest(words, tree, left)
                wanted = LEAST + _HANDED // 2 - count
                _hand_up(words, tree, node, below, min(wanted, _link(words, tree, below, COUNT)))
                node = below
                continue
        elif max(left, right) != NOWHERE:
            child = max(left, right)
            total = count + _link(words, tree, child, COUNT)
            if _height(words, tree, child) == 1 and (count == 0 or total <= MERGED):
                _merge(words, tree, node)
                reshaped = True
        elif count == 0:
            parent = words[at + PARENT]
            _replace(words, tree, node, NOWHERE)
            give_back(words, tree, node)
            node = parent
            reshaped = True
            continue
        # 2. Its balance.
        lean = _height(words, tree, words[at + LEFT]) - _height(words, tree, words[at + RIGHT])
        if lean > 1 or lean < -1:
            node = _turn(words, tree, node, LEFT if lean > 1 else RIGHT)
            reshaped = True
            continue  # with the new top, which may hold too little
        height = words[at + HEIGHT]
        _measure(words, tree, node)
        # The parent of a leaf may take it in.
        if not reshaped and height == words[at + HEIGHT] and height > 1:
            return
        node = words[at + PARENT]
    tree.height = _height(words, tree, tree.root)


@kernel
def _turn(words: Words, tree: Any, node: int, link: int) -> int:
    """Balance a node whose subtree at `link` is two levels too high; the new top."""
    child = _link(words, tree, node, link)
    opposite = LEFT + RIGHT - link
    outer = _height(words, tree, _link(words, tree, child, link))
    if _height(words, tree, _link(words, tree, child, opposite)) > outer:
        _rotate(words, tree, child, opposite)
    return _rotate(words, tree, node, link)


@outlined
def _make_room(words: Words, tree: Any, node: int, place: int) -> int:
    """Make room at `place` in a full node by handing entries down; the node that has them.

    No more than come before the place, so that the new entry stays this node's.
    """
    left = _link(words, tree, node, LEFT)
    if left == NOWHERE:
        below = _attach(words, tree, node, LEFT)
    else:
        below = _greatest(words, tree, left)
        if _link(words, tree, below, COUNT) == ROOM:
            below = _attach(words, tree, below, RIGHT)
    count = min(_HANDED, place, ROOM - _link(words, tree, below, COUNT))
    _hand_down(words, tree, node, below, count)
    return below


@kernel
def _bounding(words: Words, tree: Any, key: int, sequence: int) -> tuple[int, int]:
    """The last node, in order, that starts with (key, sequence) or before it, or NOWHERE; and the
    last node on the way to where it would be."""
    node = NOWHERE
    end = NOWHERE
    following = tree.root
    while following != NOWHERE:
        end = following
        at = start(tree, end)
        if not_after(words, at + HEADER, key, sequence):
            node = end
            following = words[at + RIGHT]
        else:
            following = words[at + LEFT]
    return node, end


@outlined
def insert(words: Words, tree: Any, key: int, sequence: int) -> None:
    """Add an entry; the caller has seen to room."""
    tree.entries += 1
    if tree.root == NOWHERE:
        put(words, start(tree, _attach(words, tree, NOWHERE, LEFT)), 0, key, sequence)
        return
    # 1. The node that bounds the entry, and the last one on the way there.
    node, end = _bounding(words, tree, key, sequence)
    # 2. Where in it. Behind its last entry, and with nodes behind it: in front of the next one.
    place = 0
    if node != NOWHERE:
        at = start(tree, node)
        fetch(words, at)
        place = rank(words, at + HEADER, words[at + COUNT], ENTRY, key, sequence)
        if place == words[at + COUNT] and end != node:
            place = 0
            node = end
    else:
        node = end
    at = start(tree, node)
    if words[at + COUNT] < ROOM:
        put(words, at, place, key, sequence)
        return
    # 3. It is full. Mending moves entries, so it comes last.
    if 0 < place < ROOM:
        changed = _make_room(words, tree, node, place)
        put(words, at, place - (ROOM - words[at + COUNT]), key, sequence)
    else:
        changed = _attach(words, tree, node, RIGHT if place else LEFT)
        put(words, start(tree, changed), 0, key, sequence)
    _mend(words, tree, changed)


@outlined
def remove(words: Words, tree: Any, key: int, sequence: int) -> bool:
    """Take an entry out; whether it was there."""
    node, _ = _bounding(words, tree, key, sequence)
    if node == NOWHERE:
        return False
    at = start(tree, node)
    fetch(words, at)
    place = rank(words, at + HEADER, words[at + COUNT], ENTRY, key, sequence) - 1
    entry = entry_at(at, place, ENTRY)
    if words[entry] != key or words[entry + 1] != sequence:
        return False
    close_gap(words, at, place, 1, ENTRY)
    tree.entries -= 1
    if words[at + COUNT] < LEAST:
        _mend(words, tree, node)
    return True


@outlined
def last(words: Words, tree: Any, low: int, high: int) -> int:
    """A cursor to the greatest entry with a key from `low` to `high`, or NOWHERE."""
    node, _ = _bounding(words, tree, high, LAST_SEQUENCE)
    if node == NOWHERE:
        return NOWHERE
    at = start(tree, node)
    fetch(words, at)
    place = rank(words, at + HEADER, words[at + COUNT], ENTRY, high, LAST_SEQUENCE)
    return previous(words, tree, low, cursor_to(node, place))


@outlined
def _before(words: Words, tree: Any, node: int) -> int:
    """The node before one, in order, or NOWHERE."""
    left = _link(words, tree, node, LEFT)
    if left != NOWHERE:
        return _greatest(words, tree, left)
    parent = _link(words, tree, node, PARENT)
    while parent != NOWHERE and _link(words, tree, parent, LEFT) == node:
        node = parent
        parent = _link(words, tree, node, PARENT)
    return parent


@kernel
def previous(words: Words, tree: Any, low: int, cursor: int) -> int:
    """The cursor to the entry before, or NOWHERE if its key is below `low`."""
    if not is_first(cursor):
        cursor -= ENTRY
    else:
        node = _before(words, tree, node_of(cursor))
        if node == NOWHERE:
            return NOWHERE
        cursor = cursor_to(node, _link(words, tree, node, COUNT) - 1)
    return cursor if key_at(words, tree, cursor) >= low else NOWHERE
