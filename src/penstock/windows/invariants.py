"""The invariants of windows: what tests ask after every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.arena import DEAD, MUTE, State, record_at, word_at
from penstock.kernels.budget import queue
from penstock.kernels.index import directory, indexes
from penstock.kernels.links import NOWHERE
from penstock.windows.tree_invariants import CHECKS
from penstock.windows.windows import Windows

__all__ = ["check"]


def check(windows: Windows) -> None:
    """Raise AssertionError when a ring, an index or a payload is not what it should be."""
    state = windows.state
    hashed: list[set[int]] = [set() for _ in state.directories]
    for number, payload in enumerate(windows.payloads):
        window = state.windows[number]
        tail, head = windows.tail_and_head(number)
        assert 0 <= tail <= head <= tail + windows.size(number)
        assert windows.size(number) == window.mask + 1
        live = windows.live_sequences(number)
        assert len(live) == windows.live(number)
        assert len(live) == 0 or live[0] >= tail
        for path in range(int(window.paths), int(window.paths + window.words)):
            keys = _check_path(state, number, path, live.tolist())
            if state.paths[path].kind == indexes.HASH:
                hashed[state.paths[path].directory] |= keys
        if payload is not None:
            payload.check(live)
        if windows.provision is not None and number < windows.streams:
            queue.check(state, number, set(live.tolist()))
    for number, keys in enumerate(hashed):
        directory.check(state, number, keys)


def _check_path(state: State, number: int, path: int, live: Sequence[int]) -> set[int]:
    """Check that each tuple is found by its word; return the words."""
    by_key: dict[int, list[int]] = {}
    for sequence in live:
        record, word = (
            record_at(state, number, sequence),
            word_at(state, path, sequence),
        )
        assert word.ts == record.ts
        assert word.marks & (MUTE | DEAD) == record.marks & (MUTE | DEAD)
        if not record.marks & MUTE:
            by_key.setdefault(int(word.key), []).append(sequence)
    descriptor = state.paths[path]
    check_tree = CHECKS.get(int(descriptor.kind))
    if check_tree is not None:
        check_tree(state.words, descriptor)
        assert descriptor.entries == sum(map(len, by_key.values()))
    for key, sequences in by_key.items():
        assert _probed(state, path, key) == sequences[::-1], (number, path, key)
    return set(by_key)


def _probed(state: State, path: int, key: int) -> list[int]:
    word: Any = np.int64(key)
    kind = state.paths[path].kind
    asked = (word, word, indexes.locate(state, path, word))
    found, at = [], indexes.first(state, path, kind, asked)
    while at[0] != NOWHERE:
        found.append(int(at[0]))
        at = indexes.following(state, path, kind, asked, at)
    return found
