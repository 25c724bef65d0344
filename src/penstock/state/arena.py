"""The arena: one flat block of memory that holds every window's ring and all indexes.

One block means one compilation of the kernels whatever the number of streams, one file to
map, one allocation to account for. Kernels see it through the views of a `State`, as records
with named fields. Payload columns are not in it.

    join        1 JOIN record
    windows     n WINDOW records, then their probe orders, then the frames of a probe
    ring 0      RECORD, RECORD, ...      a power of two of them
    ring 1      ...
    buckets     the bucket heads of the windows that have them
    directory   one entry for each distinct key, shared by all windows that are hashed

A tuple has a sequence number, counted per window from its first arrival. It lives at ring
position `sequence & mask`. Worked example, a ring of 4 that has seen 6 tuples and lost 3:

    position   0    1    2    3
    sequence   4    5    .    3          tail = 3 (oldest), head = 6 (next to come)

A record's fields stand side by side, 24 bytes in all: reading them as words of a plain
integer array was measured twice as slow.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.model.query import MAX_STREAMS
from penstock.state.jit import kernel

__all__ = [
    "DEAD", "JOIN", "MATCHED", "MUTE", "RANKS", "RANK_SHIFT", "RECORD", "WINDOW", "Flags",
    "State", "Words", "header_bytes", "record_at", "view",
]  # fmt: skip

Words = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# Marks on a record: flags in the low bits, and above them the tuple's rank, which counts the
# tuples of its key modulo a power of two where a window keeps so many rows of each key.
DEAD: Final = 1  # gone before its turn, a hole in the ring
MUTE: Final = 2  # without a key: it counts as a row of its window, and meets nothing
MATCHED: Final = 4  # has met a partner, or has come out without one: see state.matches
RANK_SHIFT: Final = 4
RANKS: Final = 1 << 27


def _record(*fields: tuple[Any, ...]) -> np.dtype[Any]:
    return np.dtype((np.record, list(fields)))


JOIN: Final = _record(
    ("streams", "i8"),
    ("watermark", "i8"),  # what both it and the current arrival have passed may expire
    ("directory", "i8"),  # where the directory starts, in words of the arena
    ("directory_size", "i8"),  # its entries, a power of two; 0 when no window is hashed
    ("filled", "i8"),  # entries in use, those of keys without live tuples included
    # Padding, here and below: descriptors fill whole cache lines.
    ("spare0", "i8"),
    ("spare1", "i8"),
    ("spare2", "i8"),
)
WINDOW: Final = _record(
    ("length_us", "i8"),
    ("kind", "i8"),  # which index, a kind of state.indexes
    ("ring", "i8"),  # where the ring starts, in records of the arena
    ("mask", "i8"),  # ring positions - 1
    ("tail", "i8"),  # sequence number of the oldest tuple
    ("head", "i8"),  # sequence number of the next tuple
    ("live", "i8"),  # tuples in the window
    ("expired", "i8"),  # tuples that have left it
    ("buckets", "i8"),  # where its bucket heads start, in words of the arena
    ("bucket_count", "i8"),
    ("cursor", "i8"),  # next arrival of the chunk
    ("end", "i8"),  # end of this stream's arrivals in the chunk
    ("slot_us", "i8"),  # the size of tumbling slots; 0 without
    ("rows", "i8"),  # how many of the newest tuples are in it; 0 when only time counts
    ("per_key", "i8"),  # whether these are counted for each key
    ("spare0", "i8"),
)
RECORD: Final = _record(("ts", "i8"), ("key", "i8"), ("older", "i4"), ("marks", "i4"))


_ROW: Final = 8 * MAX_STREAMS
_FRAME: Final = 32


class State(NamedTuple):
    """Views of one arena. halves[2 * w] and halves[2 * w + 1] are the halves of words[w].

    orders[s]: the windows that arrivals of stream s probe, in order. frames[d]: what a probe
    remembers at depth d. (Not fields of the records: numba makes an array object for each
    access to an array inside a record, and the loop took four times as long.)
    """

    join: Any
    windows: Any
    orders: Words
    frames: Words
    records: Any
    words: Words
    halves: npt.NDArray[np.int32]


def header_bytes(streams: int) -> int:
    """Bytes before the first ring."""
    return JOIN.itemsize + streams * (WINDOW.itemsize + _ROW) + MAX_STREAMS * _FRAME


def view(arena: npt.NDArray[np.uint8], streams: int) -> State:
    """The arena as kernels see it."""
    windows = JOIN.itemsize
    orders = windows + streams * WINDOW.itemsize
    frames = orders + streams * _ROW
    end = frames + MAX_STREAMS * _FRAME
    # A whole number of records: rings start at such, what is behind them may not.
    whole = arena[: arena.nbytes // RECORD.itemsize * RECORD.itemsize]
    return State(
        arena[:windows].view(JOIN),
        arena[windows:orders].view(WINDOW),
        arena[orders:frames].view(np.int64).reshape(streams, -1),
        arena[frames:end].view(np.int64).reshape(MAX_STREAMS, -1),
        whole.view(RECORD),
        arena.view(np.int64),
        arena.view(np.int32),
    )


@kernel
def record_at(state: State, number: int, sequence: int) -> Any:
    """The record of a tuple."""
    window = state.windows[number]
    return state.records[window.ring + (sequence & window.mask)]
