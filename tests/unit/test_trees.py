"""The ordered indexes against a sorted list, with all invariants checked after every step."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from numba import config

from penstock.kernels.arena import Words
from penstock.kernels.index import bplus_tree, t_tree
from penstock.kernels.index.nodes import TREE
from penstock.kernels.links import NOWHERE
from penstock.windows.tree_invariants import check_bplus_tree, check_t_tree
from support.thoroughness import examples, often

LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
OFFSET = 24  # words of the arena before the nodes
CHECKS = {bplus_tree: check_bplus_tree, t_tree: check_t_tree}
BOTH = pytest.mark.parametrize(
    "module", [bplus_tree, t_tree], ids=lambda each: each.__name__.rpartition(".")[2]
)

Entry = tuple[int, int]


class Tree:
    """A tree, and the sorted list that says what is in it."""

    def __init__(self, module: ModuleType, room: int) -> None:
        self.module = module
        nodes = module.nodes_for(room)
        self.words: Words = np.full(OFFSET + nodes * module.NODE_WORDS + OFFSET, 77, np.int64)
        self.tree: Any = np.zeros(1, TREE)[0]
        self.tree.nodes, self.tree.node_room = OFFSET, nodes
        module.clear(self.tree)
        self.entries: list[Entry] = []
        self.shape: list[int] = []

    def insert(self, key: int, sequence: int) -> None:
        assert self.module.has_room(self.tree)
        self.module.insert(self.words, self.tree, key, sequence)
        insort(self.entries, (key, sequence))

    def remove(self, key: int, sequence: int) -> None:
        at = bisect_left(self.entries, (key, sequence))
        there = self.entries[at : at + 1] == [(key, sequence)]
        assert self.module.remove(self.words, self.tree, key, sequence) == there
        if there:
            del self.entries[at]

    def probe(self, low: int, high: int) -> list[Entry]:
        module, words, tree = self.module, self.words, self.tree
        found = []
        cursor = module.last(words, tree, low, high)
        while cursor != NOWHERE:
            key, sequence = (f(words, tree, cursor) for f in (module.key_at, module.sequence_at))
            found.append((int(key), int(sequence)))
            cursor = module.previous(words, tree, low, cursor)
        return found

    def compare(self, low: int, high: int) -> None:
        start, end = (
            bisect_left(self.entries, (low, LEAST)),
            bisect_right(self.entries, (high, MOST)),
        )
        assert self.probe(low, high) == self.entries[start:end][::-1]

    def check(self) -> None:
        CHECKS[self.module](self.words, self.tree)
        assert self.tree.entries == len(self.entries)
        assert (self.words[:OFFSET] == 77).all(), "wrote in front of its nodes"
        assert (self.words[-OFFSET:] == 77).all(), "wrote behind its nodes"

    def check_if_reshaped(self) -> None:
        """As checking takes a while, only when a node has been taken or freed."""
        shape = [int(self.tree[name]) for name in ("root", "height", "free", "fresh")]
        if shape != self.shape:
            self.check()
        self.shape = shape


KEYS = {
    "any": st.integers(LEAST, MOST),
    "few": st.integers(-2, 2),
    "ends": st.sampled_from([LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST]),
    "near": st.integers(0, 3_000),
}
ROOM = 4_000 if config.DISABLE_JIT else 12_000


class Random(RuleBasedStateMachine):
    """Many entries at a time, since a node holds many."""

    module: ModuleType

    @initialize(seed=st.integers(0, 2**32), kind=st.sampled_from(list(KEYS)))
    def begin(self, seed: int, kind: str) -> None:
        self.random = np.random.default_rng(seed)
        self.kind = kind
        self.of = Tree(self.module, ROOM)
        self.sequence = 0

    def add(self, keys: Any) -> None:
        for key in keys:
            if len(self.of.entries) < ROOM:
                self.of.insert(int(key), self.sequence)
                self.sequence += 1

    def some(self, count: int) -> Any:
        if self.kind == "any":
            return self.random.integers(LEAST, MOST, count, endpoint=True)
        if self.kind == "near":
            return self.random.integers(0, 3_000, count)
        return self.random.choice([LEAST, -2, -1, 0, 1, MOST] if self.kind == "ends" else 5, count)

    @rule(count=st.sampled_from([1, 7, 126, 400, 3_000]))
    def insert_some(self, count: int) -> None:
        self.add(self.some(count))

    @rule(count=st.sampled_from([1, 126, 800, 6_000]), down=st.booleans(), at=KEYS["near"])
    def insert_in_order(self, count: int, down: bool, at: int) -> None:
        self.add(at + np.arange(count)[:: -1 if down else 1])

    @rule(count=st.sampled_from([1, 126, 800]), key=st.one_of(*KEYS.values()))
    def insert_one_key(self, count: int, key: int) -> None:
        self.add([key] * count)

    @rule(share=st.sampled_from([0.01, 0.3, 0.9]))
    def remove_some(self, share: float) -> None:
        gone = self.random.random(len(self.of.entries)) < share
        leaving = [entry for entry, goes in zip(self.of.entries, gone, strict=True) if goes]
        self.random.shuffle(leaving)
        for key, sequence in leaving:
            self.of.remove(int(key), int(sequence))

    @rule(share=st.floats(0, 1), newest=st.booleans())
    def remove_by_age(self, share: float, newest: bool) -> None:
        by_age = sorted(self.of.entries, key=lambda entry: entry[1], reverse=newest)
        for key, sequence in by_age[: int(share * len(by_age))]:
            self.of.remove(key, sequence)

    @rule(start=st.floats(0, 1), share=st.floats(0, 1), down=st.booleans())
    def remove_range(self, start: float, share: float, down: bool) -> None:
        first = int(start * len(self.of.entries))
        leaving = self.of.entries[first : first + int(share * len(self.of.entries))]
        for key, sequence in leaving[:: -1 if down else 1]:
            self.of.remove(key, sequence)

    @rule(key=st.one_of(*KEYS.values()), sequence=KEYS["any"])
    def remove_perhaps_nothing(self, key: int, sequence: int) -> None:
        self.of.remove(key, sequence)
        self.of.remove(key, self.sequence)

    @rule()
    def remove_all(self) -> None:
        while self.of.entries:
            self.of.remove(*self.of.entries[self.random.integers(len(self.of.entries))])
        assert self.of.tree.root == NOWHERE

    @rule()
    def clear(self) -> None:
        self.module.clear(self.of.tree)
        self.of.entries = []

    @rule(low=st.one_of(*KEYS.values()), high=st.one_of(*KEYS.values()))
    def probe(self, low: int, high: int) -> None:
        self.of.compare(low, high)
        self.of.compare(low, low)

    @rule(place=st.floats(0, 1), width=st.integers(0, 300))
    def probe_what_is_there(self, place: float, width: int) -> None:
        if self.of.entries:
            key = self.of.entries[int(place * (len(self.of.entries) - 1))][0]
            self.of.compare(key, key)
            self.of.compare(key, min(key + width, MOST))
            self.of.compare(max(key - width, LEAST), key)

    @invariant()
    def sound(self) -> None:
        if hasattr(self, "of"):
            self.of.check()
            self.of.compare(LEAST, MOST)


class RandomBPlusTree(Random):
    module = bplus_tree


class RandomTTree(Random):
    module = t_tree


SOME = settings(examples(1 / 20 if config.DISABLE_JIT else 1 / 4), stateful_step_count=25)
TestRandomBPlusTree = pytest.mark.jit_off(RandomBPlusTree.TestCase)
TestRandomBPlusTree.settings = SOME
TestRandomTTree = pytest.mark.jit_off(RandomTTree.TestCase)
TestRandomTTree.settings = SOME


@pytest.mark.jit_off
@BOTH
@pytest.mark.parametrize("keys", ["up", "down", "one", "few"])
def test_a_sliding_window_fills_its_nodes(module: ModuleType, keys: str) -> None:
    """However few keys there are, and where they stand: no nodes stay half empty."""
    live = 2_000
    of = Tree(module, live)
    every = {
        "up": np.arange(2 * live),
        "down": np.arange(2 * live)[::-1],
        "one": np.zeros(2 * live, np.int64),
        "few": np.random.default_rng(1).integers(0, 4, 2 * live),
    }[keys]
    for sequence, key in enumerate(every):
        if sequence >= live:
            of.remove(int(every[sequence - live]), sequence - live)
        of.insert(int(key), sequence)
        if sequence % 100 == 0:
            of.check()
    of.check()
    assert of.tree.fresh * module.NODE_WORDS * 0.6 <= live * 2
    of.compare(0, 2 * live)


@pytest.mark.jit_off
@BOTH
def test_a_cursor_follows_equal_keys_from_the_newest(module: ModuleType) -> None:
    of = Tree(module, 500)
    for sequence in range(500):
        of.insert(sequence % 3, sequence)
    found = [sequence for _, sequence in of.probe(1, 1)]
    assert found == list(range(499, 0, -3))
    assert of.probe(2, 1) == of.probe(3, MOST) == of.probe(LEAST, -1) == []


@pytest.mark.jit_off
@BOTH
def test_the_room_asked_for_is_enough_and_no_more_is_used(module: ModuleType) -> None:
    """Whatever fills it, an area of nodes_for(n) takes n entries."""
    for room in (1, 124, 125, 126, 251, 1_500):
        of = Tree(module, room)
        for sequence in range(room):
            of.insert(sequence * 7 % room, sequence)
        of.check()
    assert all(a <= b for a, b in pairwise(map(module.nodes_for, range(10_000))))


@pytest.mark.jit_off
@BOTH
@pytest.mark.parametrize("leaving", ["anywhere", "from below", "from above"])
def test_up_to_three_levels_and_down_again(module: ModuleType, leaving: str) -> None:
    if config.DISABLE_JIT and leaving != "anywhere":
        pytest.skip("takes long without the JIT")
    random = np.random.default_rng(1)
    count = 9_000 if module is bplus_tree else 3_000
    of = Tree(module, count)
    for step, key in enumerate(random.permutation(count).tolist()):
        of.insert(key, step)
        of.check_if_reshaped()
    assert of.tree.height >= 3
    if leaving == "anywhere":
        entries = random.permutation(of.entries).tolist()
    else:
        entries = sorted(of.entries, reverse=leaving == "from above")
    for key, sequence in entries:
        of.remove(key, sequence)
        of.check_if_reshaped()
        of.remove(key, sequence)  # a second time, so it is not there
        of.check_if_reshaped()
    assert of.tree.root == NOWHERE


@pytest.mark.skipif(config.DISABLE_JIT, reason="takes minutes without the JIT")
@BOTH
@pytest.mark.parametrize("distinct", often([1, 50, 10**9], 50))
def test_a_long_run(module: ModuleType, distinct: int) -> None:
    live, turns = 20_000, 5
    of = Tree(module, live)
    random = np.random.default_rng(distinct)
    keys = random.integers(0, distinct, live * turns)
    words, tree = of.words, of.tree
    for sequence, key in enumerate(keys):
        if sequence >= live:
            assert module.remove(words, tree, keys[sequence - live], sequence - live)
        assert module.has_room(tree)
        module.insert(words, tree, key, sequence)
        if sequence % 24_999 == 0 and sequence:
            first = max(sequence - live + 1, 0)
            of.entries = sorted(
                zip(keys[first : sequence + 1].tolist(), range(first, sequence + 1), strict=True)
            )
            of.check()
            of.compare(0, distinct)
            for low in random.integers(0, distinct, 3).tolist():
                of.compare(low, low + distinct // 100)
