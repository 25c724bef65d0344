"""How often keys come, in a fixed memory: exact while there are few, then the frequent ones.

Keys are in sets of eight, a cache line each. When a set is full, a further key takes the place of
the least frequent one and its count with it (Metwally, Agrawal and El Abbadi's Space-Saving, in
each set): what comes often stays, and no count is ever too low. Counts fade: instead of making old
ones less, an arrival counts the more the later it comes (see `growth` of the budget).

An entry is half a word of the key's hash and a count in single precision, 8 bytes: where each key
comes once, what is learned is worth little unless all keys of a window are known, and memory is
short. The hash also says which set is the key's, and dense integers have hashes of their own.

    add, count: O(1)
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from penstock.kernels.arena import Words
from penstock.kernels.index.directory import mixed
from penstock.kernels.intrinsics.prefetch import prefetch
from penstock.kernels.jit import kernel

__all__ = ["LEAST", "SET_HALVES", "add", "add_all", "add_hashes", "count", "prepare", "scale"]

SET_HALVES: Final = 16  # of eight entries: a hash and a count each
LEAST: Final = 1e-37  # a count that is no longer one
_ENTRY: Final = 2
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFF_FFFF)

Singles = npt.NDArray[np.float32]
Halves = npt.NDArray[np.int32]


@kernel
def _hash(key: int) -> Any:
    word: Any = np.int64(key)  # without the JIT the least key there is may be a plain number
    return np.int64(mixed(word) >> _HALF)


@kernel
def _home(table: Any, hashed: int) -> int:
    """The half where the set of a hash starts."""
    number = (np.uint64(hashed) & _LOW) * np.uint64(table.places) >> _HALF
    return 2 * table.start + np.int64(number) * SET_HALVES


@kernel
def _as_half(hashed: int) -> int:
    """A hash as it stands in half a word, which has a sign."""
    return ((hashed + (1 << 31)) & 0xFFFF_FFFF) - (1 << 31)


@kernel
def prepare(words: Words, table: Any, key: int) -> None:
    """Prefetch the set of a key."""
    prefetch(words, _home(table, _hash(key)) >> 1)


@kernel
def _add(halves: Halves, singles: Singles, table: Any, hashed: int, weight: float) -> bool:
    """Count an arrival of a key, by its hash; whether it was known."""
    least = _home(table, hashed)
    half = _as_half(hashed)
    for entry in range(least, least + SET_HALVES, _ENTRY):
        counted = singles[entry + 1]
        if counted == 0.0:  # the rest of the set is free
            halves[entry] = half
            singles[entry + 1] = weight
            return False
        if halves[entry] == half:
            singles[entry + 1] = counted + weight
            return True
        if counted < singles[least + 1]:
            least = entry
    halves[least] = half
    singles[least + 1] += weight
    return False


@kernel
def add(halves: Halves, singles: Singles, table: Any, key: int, weight: float) -> bool:
    """Count an arrival of a key; whether it was known."""
    return _add(halves, singles, table, _hash(key), weight)


@kernel
def add_all(halves: Halves, singles: Singles, table: Any, keys: Words, weights: Any) -> None:
    """Count keys that have come so often."""
    for each in range(len(keys)):
        add(halves, singles, table, keys[each], weights[each])


@kernel
def add_hashes(halves: Halves, singles: Singles, table: Any, hashes: Words, weights: Any) -> None:
    """The same, by their hashes."""
    for each in range(len(hashes)):
        _add(halves, singles, table, hashes[each], weights[each])


@kernel
def count(halves: Halves, singles: Singles, table: Any, key: int) -> float:
    """How much the arrivals of a key count; 0 when it is not known."""
    hashed = _hash(key)
    home, half = _home(table, hashed), _as_half(hashed)
    for entry in range(home, home + SET_HALVES, _ENTRY):
        if halves[entry] == half and singles[entry + 1] > 0.0:
            return float(singles[entry + 1])
    return 0.0


@kernel
def scale(singles: Singles, table: Any, factor: float) -> None:
    """Make all counts less. None becomes free, for keys behind it in its set are looked for."""
    begin = 2 * table.start + 1
    for entry in range(begin, begin + table.places * SET_HALVES, _ENTRY):
        if singles[entry] > 0.0:
            singles[entry] = max(singles[entry] * factor, LEAST)
