"""Moving tuples: to another arena, or together in the one they are in, and indexing them anew."""

from __future__ import annotations

from typing import Final

from penstock.kernels.arena import DEAD, MUTE, RECORD, State, Words, word_at
from penstock.kernels.index import directory, indexes
from penstock.kernels.jit import kernel

__all__ = ["close_ranks", "copy_rings", "fill", "index_anew"]

_WORD: Final = 8


def copy_rings(old: State, new: State, number: int) -> None:
    """Have the tuples of a window where they were, in another arena with a ring as large."""
    size = int(old.windows["mask"][number]) + 1
    first = int(old.windows["paths"][number])
    stride = RECORD.itemsize // _WORD  # as plain words it is twice as fast
    for path in range(first, first + int(old.windows["words"][number])):
        source, target = int(old.paths["ring"][path]), int(new.paths["ring"][path])
        copied = old.words[source * stride : (source + size) * stride]
        new.words[target * stride : (target + size) * stride] = copied


@kernel
def index_anew(state: State) -> None:
    """Fill empty directories with the tuples of all windows."""
    for number in range(len(state.directories)):
        directory.clear(state, number)
    for path in range(len(state.paths)):
        if state.paths[path].kind == indexes.HASH:
            window = state.windows[state.paths[path].window]
            for sequence in range(window.tail, window.head):
                record = word_at(state, path, sequence)
                if not record.marks & (DEAD | MUTE):
                    entry = indexes.locate(state, path, record.key)
                    indexes.insert(state, path, sequence, entry)


@kernel
def close_ranks(state: State, number: int, live: Words) -> None:
    """Move the live tuples of a window up to its head, and index them anew. Others' stay."""
    window = state.windows[number]
    for path in range(window.paths, window.paths + window.words):
        to = window.head
        for each in range(len(live) - 1, -1, -1):
            to -= 1
            was, record = word_at(state, path, live[each]), word_at(state, path, to)
            record.ts, record.key, record.marks = was.ts, was.key, was.marks
        indexes.forget(state, path)
        for sequence in range(to, window.head):
            record = word_at(state, path, sequence)
            if not record.marks & MUTE:
                # Its key has an entry: it was there before.
                entry = indexes.locate(state, path, record.key)
                indexes.insert(state, path, sequence, entry)
    window.tail = window.head - len(live)


@kernel
def fill(old: State, new: State, number: int, kept: Words, placed: Words) -> None:
    """Move tuples to new sequence numbers in another arena and index them there, in order."""
    begin = new.windows[number].paths
    for each in range(len(kept)):
        for path in range(begin, begin + new.windows[number].words):
            was = word_at(old, path, kept[each])
            record = word_at(new, path, placed[each])
            record.ts = was.ts
            record.key = was.key
            record.marks = was.marks
            if not was.marks & MUTE:
                entry = indexes.locate(new, path, was.key)
                indexes.insert(new, path, placed[each], entry)
