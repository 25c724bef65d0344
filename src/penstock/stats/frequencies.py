"""How often keys come, in a fixed memory: exact while there are few, then the frequent ones.

Keys are in sets of four, a cache line each. When a set is full, a further key takes the place of
the least frequent one and its count with it (Metwally, Agrawal and El Abbadi's Space-Saving, in
each set): what comes often stays, and no count is ever too low. Counts fade: instead of making old
ones less, an arrival counts the more the later it comes (see `growth` of the budget).

    add, count: O(1)
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.state.arena import Words
from penstock.state.directory import slot
from penstock.state.jit import kernel
from penstock.state.prefetch import prefetch

__all__ = ["WAYS", "add", "add_all", "count", "prepare", "scale"]

WAYS: Final = 4
_ENTRY: Final = 2  # words: the key and its count


@kernel
def _home(table: Any, key: int) -> int:
    word: Any = np.int64(key)  # without the JIT the least key there is may be a plain number
    return table.start + slot(word, table.places) * (WAYS * _ENTRY)


@kernel
def prepare(words: Words, table: Any, key: int) -> None:
    """Have the set of a key fetched, which will soon be asked for."""
    prefetch(words, _home(table, key))


@kernel
def add(words: Words, floats: Any, table: Any, key: int, weight: float) -> bool:
    """Count an arrival of a key; whether it was known."""
    least = _home(table, key)
    for entry in range(least, least + WAYS * _ENTRY, _ENTRY):
        counted = floats[entry + 1]
        if counted == 0.0:  # the rest of the set is free
            words[entry] = key
            floats[entry + 1] = weight
            return False
        if words[entry] == key:
            floats[entry + 1] = counted + weight
            return True
        if counted < floats[least + 1]:
            least = entry
    words[least] = key
    floats[least + 1] += weight
    return False


@kernel
def add_all(words: Words, floats: Any, table: Any, keys: Words, weights: Any) -> None:
    """Count keys that have come so often."""
    for each in range(len(keys)):
        add(words, floats, table, keys[each], weights[each])


@kernel
def count(words: Words, floats: Any, table: Any, key: int) -> float:
    """How much the arrivals of a key count; 0 when it is not known."""
    home = _home(table, key)
    for entry in range(home, home + WAYS * _ENTRY, _ENTRY):
        if words[entry] == key and floats[entry + 1] > 0.0:
            return floats[entry + 1]
    return 0.0


@kernel
def scale(floats: Any, table: Any, factor: float) -> None:
    """Make all counts less. None becomes free, for keys behind it in its set are looked for."""
    begin = table.start + 1
    for entry in range(begin, begin + table.places * WAYS * _ENTRY, _ENTRY):
        if floats[entry] > 0.0:
            floats[entry] = max(floats[entry] * factor, 1e-200)
