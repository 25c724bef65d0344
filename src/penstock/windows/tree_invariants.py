"""The invariants of the ordered indexes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from penstock.kernels.arena import Words
from penstock.kernels.index import bplus_tree, t_tree
from penstock.kernels.index.indexes import BPLUS_TREE, T_TREE
from penstock.kernels.index.nodes import COUNT, ENTRY, LINK, entry_at, start
from penstock.kernels.links import NOWHERE

__all__ = ["CHECKS", "check_bplus_tree", "check_t_tree"]


def check_bplus_tree(words: Words, tree: Any) -> None:
    """Raise AssertionError unless all invariants hold. O(n)."""
    used: set[int] = set()
    leaves: list[int] = []
    entries: list[tuple[int, int]] = []

    def visit(node: int, level: int, low: tuple[int, int] | None) -> None:
        assert node not in used, "a node has two parents"
        used.add(node)
        at = int(start(tree, node))
        count = int(words[at + COUNT])
        is_leaf = level == 1
        stride = ENTRY if is_leaf else bplus_tree.BRANCH
        room = bplus_tree.LEAF_ROOM if is_leaf else bplus_tree.INNER_ROOM
        least = bplus_tree.LEAF_LEAST if is_leaf else bplus_tree.INNER_LEAST
        if node == tree.root:
            least = 1 if is_leaf else 2
        assert least <= count <= room, f"a node of level {level} holds {count}"
        places = [int(entry_at(at, position, stride)) for position in range(count)]
        bounds = [(int(words[place]), int(words[place + 1])) for place in places]
        if is_leaf:
            assert low is None or low <= bounds[0], "an entry is before its bound"
            leaves.append(node)
            entries.extend(bounds)
            return
        assert low is None or bounds[0] == low, "the first bound is not the node's own"
        for place, bound in zip(places, [low, *bounds[1:]], strict=True):
            assert bound is None or not entries or entries[-1] < bound, "an entry is after a bound"
            visit(int(words[place + 2]), level - 1, bound)

    assert (tree.root == NOWHERE) == (tree.height == 0) == (tree.entries == 0)
    if tree.root != NOWHERE:
        visit(int(tree.root), int(tree.height), None)
    assert len(entries) == tree.entries
    assert all(before < after for before, after in pairwise(entries))
    for before, after in zip([NOWHERE, *leaves], [*leaves, NOWHERE], strict=True):
        assert before == NOWHERE or words[start(tree, before) + bplus_tree.NEXT] == after
        assert after == NOWHERE or words[start(tree, after) + bplus_tree.PREVIOUS] == before
    _check_free(words, tree, used)
    assert len(used) <= bplus_tree.nodes_for(len(entries)), "more nodes than ever promised"


def check_t_tree(words: Words, tree: Any) -> None:
    """Raise AssertionError unless all invariants hold. O(n)."""
    used: set[int] = set()
    entries: list[tuple[int, int]] = []

    def visit(node: int, parent: int) -> int:
        if node == NOWHERE:
            return 0
        assert node not in used, "a node has two parents"
        used.add(node)
        at = int(start(tree, node))
        assert words[at + t_tree.PARENT] == parent, "a node does not know its parent"
        left, right = int(words[at + t_tree.LEFT]), int(words[at + t_tree.RIGHT])
        count = int(words[at + COUNT])
        assert 1 <= count <= t_tree.ROOM, f"a node holds {count}"
        left_height = visit(left, node)
        for position in range(count):
            entry = int(entry_at(at, position, ENTRY))
            entries.append((int(words[entry]), int(words[entry + 1])))
        right_height = visit(right, node)
        assert abs(left_height - right_height) <= 1, "a node is out of balance"
        height = max(left_height, right_height) + 1
        assert words[at + t_tree.HEIGHT] == height
        children = [child for child in (left, right) if child != NOWHERE]
        if len(children) == 2:
            assert count >= t_tree.LEAST, f"a node with two children holds {count}"
        elif children:
            total = count + int(words[start(tree, children[0]) + COUNT])
            assert total > t_tree.MERGED, f"a node and its only child hold {total}"
        return height

    assert visit(int(tree.root), NOWHERE) == tree.height
    assert (tree.root == NOWHERE) == (tree.entries == 0)
    assert len(entries) == tree.entries
    assert all(before < after for before, after in pairwise(entries))
    _check_free(words, tree, used)
    assert len(used) <= t_tree.nodes_for(len(entries)), "more nodes than ever promised"


def _check_free(words: Words, tree: Any, used: set[int]) -> None:
    """Raise AssertionError unless every node is either in use or in the list, once."""
    free = []
    node = int(tree.free)
    while node != NOWHERE:
        free.append(node)
        assert len(free) <= tree.fresh, "the list of freed nodes is a ring"
        node = int(words[start(tree, node) + LINK])
    assert not used & set(free), "a node is in use and freed"
    assert len(used) + len(free) == tree.fresh, "a node is lost"
    assert used | set(free) == set(range(tree.fresh))
    assert tree.fresh <= tree.node_room, "a node is outside the area"


# By the kind of the index.
CHECKS: Final[dict[int, Callable[[Words, Any], None]]] = {
    BPLUS_TREE: check_bplus_tree,
    T_TREE: check_t_tree,
}
