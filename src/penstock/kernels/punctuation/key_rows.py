"""The table of closed keys: from the word of a key to the row that it has, and what is known of it.

Rows stand in order of the first promise about their key. places[p] is a row or FREE: open
addressing with linear probing. The caller keeps half of the places free. Most keys that are looked
for have no row; of these a bit for the hash says so, in a look at what stays in the cache:

    known[b]   bit b is set if a key has it, of which there are a few for each row
    places[p]  the row of a key
    keys[r]    its word
    at[s, r]   from when on stream s has closed it
    came[s, r] whether its only tuple in stream s has come, if it has one only
    dead[r]    no combination of it can come any more; told[r]: that has been given out
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.kernels.arena import Flags, Words
from penstock.kernels.index.directory import slot
from penstock.kernels.jit import kernel

__all__ = [
    "FREE", "NEVER", "KeyTable", "Places", "add_rows", "enter_rows", "find_rows", "index_rows",
    "is_repeated", "place_of", "row_of",
]  # fmt: skip

Places = npt.NDArray[np.int32]

FREE: Final = -1
NEVER: Final = (1 << 63) - 1  # later than the end of time


class KeyTable(NamedTuple):
    """The arrays of the table, as above."""

    known: npt.NDArray[np.uint8]
    places: Places
    keys: Words
    at: Words
    came: Flags
    dead: Flags
    told: Flags


@kernel
def place_of(places: Places, keys: Words, key: int) -> int:
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
    return int(places[place_of(places, keys, key)])


@kernel
def index_rows(places: Places, keys: Words, count: int) -> None:
    """Enter keys into empty places, each under its number."""
    for row in range(count):
        places[place_of(places, keys, keys[row])] = row


@kernel
def _bit(table: Any, key: int) -> Any:
    return slot(key, 8 * len(table.known))


@kernel
def _make_known(table: Any, key: int) -> None:
    bit = _bit(table, key)
    table.known[bit >> 3] |= np.uint8(1 << (bit & 7))


@kernel
def enter_rows(table: Any, count: int) -> None:
    """Make the keys of a table known, of which nothing else is missing."""
    index_rows(table.places, table.keys, count)
    for row in range(count):
        _make_known(table, table.keys[row])


@kernel
def find_rows(table: Any, wanted: Words, rows: Words) -> int:
    """The row of each wanted key, or FREE; how many have one. O(1) expected for each."""
    found = 0
    for each in range(len(wanted)):
        bit = _bit(table, wanted[each])
        rows[each] = FREE
        if table.known[bit >> 3] >> (bit & 7) & 1:
            rows[each] = row_of(table.places, table.keys, wanted[each])
            found += rows[each] != FREE
    return found


@kernel
def add_rows(table: Any, count: int, wanted: Words, rows: Words) -> int:
    """The same, where keys that have none get the rows from `count` on; how many rows there are."""
    for each in range(len(wanted)):
        place = place_of(table.places, table.keys, wanted[each])
        if table.places[place] == FREE:
            table.places[place] = count
            table.keys[count] = wanted[each]
            _make_known(table, wanted[each])
            count += 1
        rows[each] = table.places[place]
    return count


@kernel
def is_repeated(places: Places, words: Words) -> bool:
    """Whether some word stands there twice. places: free ones, twice as many."""
    for each in range(len(words)):
        place = place_of(places, words, words[each])
        if places[place] != FREE:
            return True
        places[place] = each
    return False
