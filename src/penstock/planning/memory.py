"""What a structure takes of memory, from how it is laid out.

The papers print no layouts, only what came of them: with nodes of 100 the T-tree took the least, a
hash table with 10 tuples to a bucket about 5 % more, the B+tree about 10 %. These layouts, in words
of 8 bytes, give 5.2 % and 9.7 %:

    tuple        4          key, time, values elsewhere, the next tuple in order of arrival
    scan         nothing more
    hash         a word for each tuple (the next one of its bucket); 3 for each bucket (its newest
                 and oldest tuple, their number), so that larger buckets save much up to ten tuples
                 and little from there on, as in the paper
    t_tree       a word for each tuple; 4 for each node (left, right, height, count), nodes full
    bplus_tree   a word for each tuple in leaves that are full by ln 2, as random inserts leave
                 them; 3 for each leaf (before, after, count), and above each leaf a bound and a
                 child, in nodes that are as full

The model 'penstock' is what `penstock.kernels` allocates: rings of a power of two records, room for
as many nodes as may ever be needed, a directory with room for twice the keys, half of which is
charged to each of two windows that are alike. Columns that are carried along are not in it.

What is removed late is still there: `expired_kept`.
"""

from __future__ import annotations

from math import ceil, log
from typing import Final

from penstock.planning.touched import Structure

__all__ = ["expired_kept", "memory_bytes"]

_WORD: Final = 8
_TUPLE_WORDS: Final = 4
_BUCKET_WORDS: Final = 3
_T_NODE_WORDS: Final = 4
_LEAF_WORDS: Final = 3
_CHILD_WORDS: Final = 2
_FULL: Final = log(2)

# As in penstock.kernels.
_RECORD_BYTES: Final = 24
_SMALLEST_RING: Final = 64
_BUCKET_BYTES: Final = 4
_NODE_BYTES: Final = 2048
_ENTRY_BYTES: Final = 16  # of a directory that two windows share
_SMALLEST_DIRECTORY: Final = 16
_SHARE: Final = 8  # one key for every N tuples, at the least
_LEAF_LEAST: Final = 62
_INNER_LEAST: Final = 41
_T_NODE_LEAST: Final = 110


def memory_bytes(structure: Structure, model: str = "kang2003", surplus: float = 0.0) -> float:
    """What a window and its index take. surplus: expired tuples that are kept besides its own."""
    tuples = structure.tuples + surplus
    if tuples == 0:
        return 0.0
    return _allocated(structure, tuples) if model == "penstock" else _laid_out(structure, tuples)


def expired_kept(structure: Structure, expire: str, pile: float) -> float:
    """Tuples that have expired and wait for their removal, at the most, when `pile` of them expire
    from one removal to the next: with hash, on probe, in every bucket."""
    if expire == "eager":
        return 0.0
    if expire == "on_probe" and structure.index in ("hash", "buckets"):
        return pile * max(structure.buckets, 1.0)
    return pile


def _laid_out(structure: Structure, tuples: float) -> float:
    words = tuples * _TUPLE_WORDS
    if structure.index in ("hash", "buckets"):
        words += tuples + _BUCKET_WORDS * structure.buckets
    elif structure.index == "t_tree":
        words += tuples + _T_NODE_WORDS * tuples / structure.node
    elif structure.index == "bplus_tree":
        leaves = tuples / (structure.node * _FULL)
        words += tuples / _FULL + leaves * (_LEAF_WORDS + _CHILD_WORDS / _FULL)
    return words * _WORD


def _allocated(structure: Structure, tuples: float) -> float:
    ring = 1 << max(ceil(tuples) - 1, _SMALLEST_RING - 1).bit_length()
    size = ring * _RECORD_BYTES
    if structure.index == "hash":
        keys = max(2 * ceil(structure.buckets) + _SMALLEST_RING // 4, ceil(tuples) * 2 // _SHARE)
        places = _SMALLEST_DIRECTORY
        while keys * 10 > places * 6:
            places *= 2
        size += places * _ENTRY_BYTES // 2
    elif structure.index == "buckets":
        size += ceil(structure.buckets) * _BUCKET_BYTES
    elif structure.index == "bplus_tree":
        leaves = ring // _LEAF_LEAST + 1
        size += (leaves + leaves // (_INNER_LEAST - 1) + 1) * _NODE_BYTES
    elif structure.index == "t_tree":
        size += (2 * (ring + _T_NODE_LEAST) // (_T_NODE_LEAST + 1) + 1) * _NODE_BYTES
    return float(size)
