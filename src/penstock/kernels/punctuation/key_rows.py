"""The index of closed keys: from the word of a key to the row that it has among them.

Rows stand in order of the first promise about their key, in arrays beside this index. places[p]
is a row or FREE: open addressing with linear probing. The caller keeps half of the places free.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from penstock.kernels.arena import Words
from penstock.kernels.index.directory import slot
from penstock.kernels.jit import kernel

__all__ = ["FREE", "Places", "add_rows", "find_rows", "row_of"]

Places = npt.NDArray[np.int32]

FREE: Final = -1


@kernel
def _place(places: Places, keys: Words, key: int) -> int:
    """Where the row of a key stands, or would stand."""
    place = slot(key, len(places))
    while places[place] != FREE and keys[places[place]] != key:
        place += 1
        if place == len(places):
            place = 0
    return int(place)


@kernel
def row_of(places: Places, keys: Words, key: int) -> int:
    """The row of a key, or FREE."""
    return int(places[_place(places, keys, key)])


@kernel
def find_rows(places: Places, keys: Words, wanted: Words, rows: Words) -> None:
    """The row of each wanted key, or FREE."""
    for each in range(len(wanted)):
        rows[each] = row_of(places, keys, wanted[each])


@kernel
def add_rows(places: Places, keys: Words, count: int, wanted: Words, rows: Words) -> int:
    """The same, where keys that have none get the rows from `count` on; how many rows there are."""
    for each in range(len(wanted)):
        place = _place(places, keys, wanted[each])
        if places[place] == FREE:
            places[place] = count
            keys[count] = wanted[each]
            count += 1
        rows[each] = places[place]
    return count
