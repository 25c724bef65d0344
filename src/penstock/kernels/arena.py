"""The arena: one flat block of memory that holds every window's ring and all indexes.

One block means one compilation of the kernels whatever the number of streams, one file to
map, one allocation to account for. Kernels see it through the views of a `State`, as records
with named fields. Payload columns are not in it.

    join        1 JOIN record
    windows     n WINDOW records
    paths       a PATH record for each thing by which a window's tuples are found
    directories a DIRECTORY record for each group of columns that must be equal
    steps       the STEPs of a probe, for each stream that an arrival may be of
    checks      what these STEPs ask for
    frames      what a probe remembers at each depth
    budget      and what else a join under a budget has: see kernels.budget
    ring 0      RECORD, RECORD, ...      a power of two of them, for path 0
    ring 1      ...
    buckets     the bucket heads of the paths that have them
    nodes       those of the paths that are trees
    entries     of the directories: one for each distinct key, shared by all windows in it

A tuple has a sequence number, counted per window from its first arrival. It lives at ring
position `sequence & mask`. Worked example, a ring of 4 that has seen 6 tuples and lost 3:

    position   0    1    2    3
    sequence   4    5    .    3          tail = 3 (oldest), head = 6 (next to come)

A tuple has one record for each path of its window, with that path's word and link, all at the
same position; time, DEAD and MUTE are the same in all of them, other marks only in the first.
So what goes along a path reads its own records and no others. Nearly every window has one path.

A record's fields stand side by side, 24 bytes in all: reading them as words of a plain
integer array was measured twice as slow.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.kernels.budget.records import BUDGET, QUOTA, TABLE, record
from penstock.kernels.jit import asks_type, kernel
from penstock.model.query import MAX_STREAMS

__all__ = [
    "CHECK", "DEAD", "DIRECTORY", "FRAME", "JOIN", "MATCHED", "MET", "MUTE", "PATH", "RANKS",
    "RANK_SHIFT", "RECORD", "STEP", "TREE", "UNPROBED", "WINDOW", "Flags", "Shape", "State",
    "Words", "has_budget", "header_bytes", "is_plain", "record_at", "view", "word_at",
]  # fmt: skip

Words = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# Marks on a record: flags in the low bits. Above them, if a window keeps N rows of each key, the
# tuple's rank, which counts the tuples of its key modulo a power of two.
DEAD: Final = 1  # gone before its turn, a hole in the ring
MUTE: Final = 2  # without a key: it counts as a row of its window, and meets nothing
MATCHED: Final = 4  # has met a partner, or has come out without one: see kernels.matches
MET: Final = 8  # has met a ghost: in a semi join, a result that is lost unless it matches
UNPROBED: Final = 16  # has not looked for partners when it came
RANK_SHIFT: Final = 5
RANKS: Final = 1 << 26


# Padding, here and below: descriptors fill whole cache lines.
JOIN: Final = record(
    ("streams", "i8"),
    ("watermark", "i8"),  # what both it and the current arrival have passed may expire
    *((f"spare{number}", "i8") for number in range(6)),
)
WINDOW: Final = record(
    ("length_us", "i8"),
    ("paths", "i8"),  # the first of its paths
    ("ring", "i8"),  # where the ring of its first path starts, in records of the arena
    ("mask", "i8"),  # ring positions - 1
    ("tail", "i8"),  # sequence number of the oldest tuple
    ("head", "i8"),  # sequence number of the next tuple
    ("live", "i8"),  # tuples in the window
    ("expired", "i8"),  # tuples that have left it
    ("words", "i8"),  # how many paths it has
    ("trees", "i8"),  # how many of them are trees
    ("cursor", "i8"),  # next arrival of the chunk
    ("end", "i8"),  # end of this stream's arrivals in the chunk
    ("slot_us", "i8"),  # the size of tumbling slots; 0 without
    ("rows", "i8"),  # how many of the newest tuples are in it; 0 when only time counts
    ("per_key", "i8"),  # whether these are counted for each key
    ("spare0", "i8"),
)
TREE: Final = record(
    ("nodes", "i8"),  # where its nodes start, in words of the arena
    ("node_room", "i8"),  # how many there is room for
    ("root", "i8"),  # -1 when it is empty
    ("height", "i8"),  # levels
    ("free", "i8"),  # first of the freed nodes, or -1
    ("fresh", "i8"),  # nodes from this number on have never been used
    ("entries", "i8"),
)
PATH: Final = record(
    ("window", "i8"),  # whose
    ("kind", "i8"),  # which index, a kind of kernels.index
    ("ring", "i8"),  # where its ring starts, in records of the arena
    ("mask", "i8"),  # ring positions - 1
    ("directory", "i8"),  # the directory of its group; -1 without
    ("buckets", "i8"),  # where its bucket heads start, in words of the arena
    ("bucket_count", "i8"),
    *((name, "i8") for name in TREE.names or ()),
    ("spare0", "i8"),
    ("spare1", "i8"),
)
DIRECTORY: Final = record(
    ("start", "i8"),  # where its entries start, in words of the arena
    ("places", "i8"),  # its entries; 0 when no window is hashed by it
    ("filled", "i8"),  # entries in use, those of keys without live tuples included
    *((f"spare{number}", "i8") for number in range(5)),
)
# A step of a probe (model.steps). keyed: what is asked for is the first word of the arrival.
STEP: Final = record(
    ("window", "i8"),
    ("path", "i8"),
    ("kind", "i8"),  # the index of the path, or a scan where nothing is asked for
    ("keyed", "i8"),
    ("bounds", "i8"),  # the first of its checks
    ("filters", "i8"),  # the first that is of another path
    ("stop", "i8"),  # behind the last
    ("spare0", "i8"),
)
# path: the word that is checked. source: of the word that it is checked by, a path.
CHECK: Final = record(
    ("path", "i8"),
    ("source", "i8"),
    ("op", "i8"),
    ("epsilon", "f8"),
    ("shift", "f8"),
    *((f"spare{number}", "i8") for number in range(3)),
)
RECORD: Final = record(("ts", "i8"), ("key", "i8"), ("older", "i4"), ("marks", "i4"))

# What a probe remembers at a depth: the tuple that is chosen there, latest and ends of the
# combination above it, the first tuple that was found, and what was asked for.
FRAME: Final = record(
    ("met", "i8"),
    ("latest", "i8"),
    ("ends", "i8"),
    ("newest", "i8"),
    ("low", "i8"),
    ("high", "i8"),
    ("entry", "i8"),
    ("cursor", "i8"),  # the place of the chosen one in a tree
    ("ghost", "i8"),  # 1 when it is a ghost
    *((f"spare{number}", "i8") for number in range(7)),
)


class Shape(NamedTuple):
    """How many there are of what stands before the rings, whether the join is plain, and whether
    it has a budget. windows: with those of ghosts, as `paths` are. tables: 0 without a budget."""

    streams: int
    windows: int
    paths: int
    directories: int
    checks: int
    tables: int
    plain: bool


class State(NamedTuple):
    """Views of one arena. halves[2 * w] and halves[2 * w + 1] are the halves of words[w], and so
    are the singles.

    steps[s, d]: what arrivals of stream s probe at depth d. frames[d]: what a probe remembers
    there. (Not fields of the records: numba makes an array object for each access to an array
    inside a record, and the loop took four times as long.)

    general is None in a plain join: one path for each window, no tree, and every step asks for the
    arrival's key. Numba takes that for another type and compiles the kernels for it without all
    that only other joins need (`is_plain`); they are a sixth faster, and ready sooner. The same
    goes for limited, None if memory is not (`has_budget`).
    """

    join: Any
    windows: Any
    paths: Any
    directories: Any
    steps: Any
    checks: Any
    frames: Any
    records: Any
    words: Words
    halves: npt.NDArray[np.int32]
    floats: npt.NDArray[np.float64]
    singles: npt.NDArray[np.float32]
    budget: Any
    quotas: Any
    tables: Any
    general: bool | None
    limited: bool | None


def _parts(shape: Shape) -> list[tuple[np.dtype[Any], int]]:
    """What stands before the rings, in the order of `State`."""
    return [
        (JOIN, 1),
        (WINDOW, shape.windows),
        (PATH, shape.paths),
        (DIRECTORY, shape.directories),
        (STEP, shape.streams * MAX_STREAMS),
        (CHECK, shape.checks),
        (FRAME, MAX_STREAMS),
        (BUDGET, 1 if shape.tables else 0),
        (QUOTA, shape.streams if shape.tables else 0),
        (TABLE, shape.tables),
    ]


def header_bytes(shape: Shape) -> int:
    """Bytes before the first ring."""
    return sum(count * part.itemsize for part, count in _parts(shape))


def view(arena: npt.NDArray[np.uint8], shape: Shape) -> State:
    """The arena as kernels see it."""
    views, begin = [], 0
    for part, count in _parts(shape):
        end = begin + count * part.itemsize
        views.append(arena[begin:end].view(part))
        begin = end
    join, windows, paths, directories, steps, checks, frames, budget, quotas, tables = views
    # A whole number of records: rings start at such, what is behind them may not.
    whole = arena[: arena.nbytes // RECORD.itemsize * RECORD.itemsize]
    return State(
        join,
        windows,
        paths,
        directories,
        steps.reshape(shape.streams, MAX_STREAMS),
        checks,
        frames,
        whole.view(RECORD),
        arena.view(np.int64),
        arena.view(np.int32),
        arena.view(np.float64),
        arena.view(np.float32),
        budget,
        quotas,
        tables,
        None if shape.plain else True,
        True if shape.tables else None,
    )


@asks_type("general", is_none=True)
def is_plain(state: State) -> bool:
    """Whether nothing is asked for but the key: known when kernels are compiled."""
    return state.general is None


@asks_type("limited", is_none=False)
def has_budget(state: State) -> bool:
    """Whether memory is limited: known when kernels are compiled."""
    return state.limited is not None


@kernel
def record_at(state: State, number: int, sequence: int) -> Any:
    """The record of a tuple."""
    window = state.windows[number]
    return state.records[window.ring + (sequence & window.mask)]


@kernel
def word_at(state: State, path: int, sequence: int) -> Any:
    """The record of a tuple for one path of its window."""
    if is_plain(state):
        return record_at(state, path, sequence)  # as many paths as windows
    descriptor = state.paths[path]
    return state.records[descriptor.ring + (sequence & descriptor.mask)]
