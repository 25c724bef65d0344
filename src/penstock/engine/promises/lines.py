"""Tuples of a stream in order of time: which clusters their keys form, and which go back.

Tuples of one time have no order: they stand in all clusters of that time.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.arrivals import of_one_type
from penstock.kernels.arena import Flags, Words
from penstock.kernels.punctuation import clusters
from penstock.kernels.punctuation.key_rows import FREE, Places

__all__ = ["come_back", "go_back", "last_of_clusters"]


def come_back(ts: Words, words: Words) -> Flags:
    """Which tuples come after the cluster of their key has ended."""
    back = np.empty(len(ts), np.bool_)
    clusters.come_back(*_prepared(ts, words), back)
    return back


def go_back(ts: Words, words: Words) -> Flags:
    """Which tuples have a key below that of one with an earlier time."""
    greatest = np.maximum.accumulate(words)
    before = np.searchsorted(ts, ts) - 1  # the last with an earlier time
    back: Flags = (before >= 0) & (words < greatest[before])
    return back


def last_of_clusters(ts: Words, words: Words) -> tuple[Words, Words]:
    """Tuples after which no other of their key comes at the next time there is, and that time."""
    out = np.empty((2, len(ts)), np.int64)
    count = clusters.last_of_clusters(*_prepared(ts, words), out)
    return out[0, :count], out[1, :count]


def _prepared(ts: Words, words: Words) -> tuple[Words, Words, Places, Words]:
    places = np.full(2 * len(ts), FREE, np.int32)
    return of_one_type(ts), of_one_type(words), places, np.empty(len(ts), np.int64)
