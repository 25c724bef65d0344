r"""The B+tree: an ordered index whose entries all stand in its leaves (Kang et al.).

A leaf holds up to LEAF_ROOM entries and the numbers of the leaves before and after it. An
inner node holds up to INNER_ROOM children, each with a bound: no entry below the child is
before its bound, and all entries below the children to the left of it are. Drawn with three
entries to a leaf; (5, 2) is key 5, sequence number 2:

                        | any -> A | (5,2) -> B | (9,1) -> C |
                           /               |             \
        A | (1,4) (3,0) |  <-->  B | (5,2) (5,6) (8,3) |  <-->  C | (9,5) (9,7) |

(9,1) has been removed: a bound need not be an entry. The bound of a node's first child is
never looked at; it is the node's own, so entries move between inner nodes as between leaves.

Invariants: all leaves are on the last level; leaves but the root hold LEAF_LEAST entries or
more, inner nodes but the root INNER_LEAST children or more, and the root, if not a leaf, two.

    insert, remove, last: O(log n). previous, key_at, sequence_at: O(1). clear: O(1).

An insert splits the full inner nodes on its way down and a removal fills up those that hold
the least, so that a change of the leaf never reaches further up than its parent.
A full leaf first hands entries to a leaf beside it that has room, and only then is split.
If keys ascend, or many tuples share a key, entries are always added at the same end:
split in the middle, every leaf would be left half empty, and stay so until its tuples expire.
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

PREVIOUS: Final = LINK  # of a leaf: the leaf before it, or NOWHERE
NEXT: Final = LINK + 1
BRANCH: Final = 3  # words of a child: its bound, and its number

LEAF_ROOM: Final = (NODE_WORDS - HEADER) // ENTRY
INNER_ROOM: Final = (NODE_WORDS - HEADER) // BRANCH
# Two nodes that are too much for one are more than the least for both, shared out evenly.
LEAF_LEAST: Final = (LEAF_ROOM - 1) // 2
INNER_LEAST: Final = (INNER_ROOM - 1) // 2
_WORTH_SHARING: Final = LEAF_ROOM // 8  # room in the leaf beside a full one


def nodes_for(entries: int) -> int:
    """How many nodes are enough for `entries`, whatever came and went."""
    leaves = entries // LEAF_LEAST + 1
    return leaves + leaves // (INNER_LEAST - 1) + 1


_most_nodes = kernel(nodes_for)
clear = begin


@kernel
def has_room(tree: Any) -> bool:
    """Whether one more entry cannot run out of nodes."""
    return _most_nodes(tree.entries + 1) <= tree.node_room


@kernel
def _child(words: Words, tree: Any, node: int, position: int) -> int:
    return words[entry_at(start(tree, node), position, BRANCH) + 2]


@kernel
def _branch(words: Words, tree: Any, node: int, key: int, sequence: int) -> int:
    """Below which child of a node an entry is, if anywhere."""
    at = start(tree, node)
    second = entry_at(at, 1, BRANCH)
    return rank(words, second, words[at + COUNT] - 1, BRANCH, key, sequence)


@outlined
def _share(words: Words, tree: Any, parent: int, position: int, level: int) -> None:
    """Share out what a child and the one to its right hold: evenly, or into one if it fits."""
    left = start(tree, _child(words, tree, parent, position))
    right = start(tree, _child(words, tree, parent, position + 1))
    total = words[left + COUNT] + words[right + COUNT]
    if total <= (LEAF_ROOM if level == 1 else INNER_ROOM):
        _level_out(words, tree, parent, position, total, level)
        _drop(words, tree, parent, position + 1, level)
    else:
        _level_out(words, tree, parent, position, total >> 1, level)


@outlined
def _level_out(
    words: Words, tree: Any, parent: int, position: int, wanted: int, level: int
) -> None:
    """Move entries between a child and the one to its right until it holds `wanted`."""
    stride = ENTRY if level == 1 else BRANCH
    left = start(tree, _child(words, tree, parent, position))
    right = start(tree, _child(words, tree, parent, position + 1))
    count = words[left + COUNT]
    gap = count - wanted
    if gap > 0:
        open_gap(words, right, 0, gap, stride)
        move(words, entry_at(right, 0, stride), entry_at(left, wanted, stride), gap * stride)
    else:
        move(words, entry_at(left, count, stride), entry_at(right, 0, stride), -gap * stride)
        close_gap(words, right, 0, -gap, stride)
    words[left + COUNT] = wanted
    bound = entry_at(start(tree, parent), position + 1, BRANCH)
    words[bound] = words[right + HEADER]
    words[bound + 1] = words[right + HEADER + 1]


@outlined
def _split(words: Words, tree: Any, parent: int, position: int, level: int) -> None:
    """Part a full child in two; its parent has room."""
    node = _child(words, tree, parent, position)
    right = take(words, tree)
    if level == 1:
        after = words[start(tree, node) + NEXT]
        _join(words, tree, right, after)
        _join(words, tree, node, right)
    open_gap(words, start(tree, parent), position + 1, 1, BRANCH)
    words[entry_at(start(tree, parent), position + 1, BRANCH) + 2] = right
    half = (words[start(tree, node) + COUNT] + 1) >> 1
    _level_out(words, tree, parent, position, half, level)


@kernel
def _drop(words: Words, tree: Any, parent: int, position: int, level: int) -> None:
    """Take out an empty child that has one to its left."""
    node = _child(words, tree, parent, position)
    if level == 1:
        leaf = start(tree, node)
        _join(words, tree, words[leaf + PREVIOUS], words[leaf + NEXT])
    give_back(words, tree, node)
    close_gap(words, start(tree, parent), position, 1, BRANCH)


@kernel
def _join(words: Words, tree: Any, before: int, after: int) -> None:
    """Make two leaves neighbours; either may be NOWHERE."""
    if before != NOWHERE:
        words[start(tree, before) + NEXT] = after
    if after != NOWHERE:
        words[start(tree, after) + PREVIOUS] = before


@kernel
def _plant(words: Words, tree: Any) -> None:
    """A new root: a leaf for the empty tree, or a node whose only child is the old root."""
    root = take(words, tree)
    at = start(tree, root)
    words[at + PREVIOUS] = NOWHERE
    words[at + NEXT] = NOWHERE
    if tree.height > 0:
        words[at + COUNT] = 1
        words[entry_at(at, 0, BRANCH)] = 0
        words[entry_at(at, 0, BRANCH) + 1] = 0
        words[entry_at(at, 0, BRANCH) + 2] = tree.root
    tree.root = root
    tree.height += 1


@outlined
def _make_room(words: Words, tree: Any, parent: int, position: int, place: int) -> None:
    """Make room for an entry at `place` in a full leaf, or in the one that will be its."""
    if position > 0:
        beside = words[start(tree, _child(words, tree, parent, position - 1)) + COUNT]
        if beside <= LEAF_ROOM - _WORTH_SHARING:
            # What is added at the end goes on being added there.
            wanted = LEAF_ROOM if place == LEAF_ROOM else (beside + LEAF_ROOM) >> 1
            _level_out(words, tree, parent, position - 1, wanted, 1)
            return
    if position + 1 < words[start(tree, parent) + COUNT]:
        beside = words[start(tree, _child(words, tree, parent, position + 1)) + COUNT]
        if beside <= LEAF_ROOM - _WORTH_SHARING:
            wanted = beside if place == 0 else (beside + LEAF_ROOM) >> 1
            _level_out(words, tree, parent, position, wanted, 1)
            return
    _split(words, tree, parent, position, 1)


@kernel
def _way_down(
    words: Words, tree: Any, key: int, sequence: int, mended: int
) -> tuple[int, int, int]:
    """The leaf where an entry belongs, after its parent and before its position in that.

    mended: an inner node on the way with this many children is split, if that is all it has room
    for, or filled up, if it is the least.
    """
    parent = NOWHERE
    node = tree.root
    position = 0
    for level in range(tree.height - 1, 0, -1):
        position = _branch(words, tree, node, key, sequence)
        child = _child(words, tree, node, position)
        if level > 1 and words[start(tree, child) + COUNT] == mended:
            if mended == INNER_ROOM:
                _split(words, tree, node, position, level)
            else:
                _share(words, tree, node, max(position - 1, 0), level)
            position = _branch(words, tree, node, key, sequence)
            child = _child(words, tree, node, position)
        parent = node
        node = child
    return parent, node, position


@outlined
def insert(words: Words, tree: Any, key: int, sequence: int) -> None:
    """Add an entry; the caller has seen to room."""
    if tree.root == NOWHERE:
        _plant(words, tree)
    room = LEAF_ROOM if tree.height == 1 else INNER_ROOM
    if words[start(tree, tree.root) + COUNT] == room:
        _plant(words, tree)
        _split(words, tree, tree.root, 0, tree.height - 1)
    parent, node, position = _way_down(words, tree, key, sequence, INNER_ROOM)
    leaf = start(tree, node)
    fetch(words, leaf)
    place = rank(words, leaf + HEADER, words[leaf + COUNT], ENTRY, key, sequence)
    if words[leaf + COUNT] == LEAF_ROOM:
        _make_room(words, tree, parent, position, place)
        position = _branch(words, tree, parent, key, sequence)
        leaf = start(tree, _child(words, tree, parent, position))
        place = rank(words, leaf + HEADER, words[leaf + COUNT], ENTRY, key, sequence)
    put(words, leaf, place, key, sequence)
    tree.entries += 1


@kernel
def _fell(words: Words, tree: Any) -> None:
    """Do without a root that has one child only, or is a leaf without entries."""
    root = tree.root
    if words[start(tree, root) + COUNT] == (0 if tree.height == 1 else 1):
        tree.root = NOWHERE if tree.height == 1 else _child(words, tree, root, 0)
        tree.height -= 1
        give_back(words, tree, root)


@outlined
def remove(words: Words, tree: Any, key: int, sequence: int) -> bool:
    """Take an entry out; return whether it was there."""
    if tree.root == NOWHERE:
        return False
    parent, node, position = _way_down(words, tree, key, sequence, INNER_LEAST)
    leaf = start(tree, node)
    fetch(words, leaf)
    place = rank(words, leaf + HEADER, words[leaf + COUNT], ENTRY, key, sequence) - 1
    at = entry_at(leaf, place, ENTRY)
    found = place >= 0 and words[at] == key and words[at + 1] == sequence
    if found:
        close_gap(words, leaf, place, 1, ENTRY)
        tree.entries -= 1
        if parent != NOWHERE and words[leaf + COUNT] < LEAF_LEAST:
            _share(words, tree, parent, max(position - 1, 0), 1)
    # Its children may have been merged on the way to an entry that is not there.
    _fell(words, tree)
    return found


@outlined
def last(words: Words, tree: Any, low: int, high: int) -> int:
    """A cursor to the greatest entry with a key from `low` to `high`, or NOWHERE."""
    if tree.root == NOWHERE:
        return NOWHERE
    node = tree.root
    for _ in range(tree.height - 1):
        node = _child(words, tree, node, _branch(words, tree, node, high, LAST_SEQUENCE))
    leaf = start(tree, node)
    fetch(words, leaf)
    after = rank(words, leaf + HEADER, words[leaf + COUNT], ENTRY, high, LAST_SEQUENCE)
    return previous(words, tree, low, cursor_to(node, after))


@kernel
def previous(words: Words, tree: Any, low: int, cursor: int) -> int:
    """The cursor to the entry before, or NOWHERE if its key is below `low`."""
    if not is_first(cursor):
        cursor -= ENTRY
    else:
        leaf = words[start(tree, node_of(cursor)) + PREVIOUS]
        if leaf == NOWHERE:
            return NOWHERE
        cursor = cursor_to(leaf, words[start(tree, leaf) + COUNT] - 1)
    return cursor if key_at(words, tree, cursor) >= low else NOWHERE
