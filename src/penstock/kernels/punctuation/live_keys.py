"""The live tuples of keys, and their end by a punctuation."""

from __future__ import annotations

from typing import Final

from penstock.kernels import ring
from penstock.kernels.arena import DEAD, MUTE, State, Words, record_at
from penstock.kernels.index import indexes
from penstock.kernels.jit import kernel
from penstock.kernels.links import NOWHERE
from penstock.kernels.punctuation.key_rows import FREE, Places, row_of

__all__ = ["bury_all", "live_by_index", "live_by_scan"]

_AHEAD: Final = 8  # keys between the fetching of a directory's entry and its use


@kernel
def live_by_index(state: State, number: int, keys: Words, out: Words) -> int:
    """Write the live tuples of keys in a window, and for each which of the keys it has, as far as
    there is room; return how many they are. O(tuples found) with a hash index, and what a search
    takes with another."""
    path = state.windows[number].paths
    count = 0
    for each in range(len(keys)):
        if each + _AHEAD < len(keys):
            indexes.prepare(state, path, keys[each + _AHEAD])
        entry = indexes.locate(state, path, keys[each])
        met, cursor = indexes.newest(state, number, keys[each], entry)
        while met != NOWHERE:
            _write(out, count, met, each)
            count += 1
            met, cursor = indexes.older(state, number, keys[each], (met, cursor))
    return count


@kernel
def _write(out: Words, count: int, sequence: int, which: int) -> None:
    if count < out.shape[1]:
        out[0, count], out[1, count] = sequence, which


@kernel
def live_by_scan(state: State, number: int, places: Places, keys: Words, out: Words) -> int:
    """The same by one pass over the ring, with an index of the keys."""
    window = state.windows[number]
    count = 0
    for sequence in range(window.tail, window.head):
        record = record_at(state, number, sequence)
        if record.marks & (DEAD | MUTE) == 0:
            row = row_of(places, keys, record.key)
            if row != FREE:
                _write(out, count, sequence, row)
                count += 1
    return count


@kernel
def bury_all(state: State, number: int, sequences: Words) -> None:
    """Leave holes where live tuples were."""
    for sequence in sequences:
        ring.bury(state, number, sequence)
