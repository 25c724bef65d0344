"""Tuples of a stream in order of time: which clusters their keys form, and which go back.

Tuples of one time have no order: they stand in all clusters of that time.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.arena import Flags, Words

__all__ = ["come_back", "go_back", "last_of_clusters"]


def come_back(ts: Words, words: Words) -> Flags:
    """Which tuples come after the cluster of their key has ended."""
    times = _numbered(ts)
    order = np.lexsort((times, words))
    same = words[order][1:] == words[order][:-1]
    gaps = np.concatenate([[0], same & (np.diff(times[order]) > 1)])
    begins = np.concatenate([[True], ~same])
    # Since the first of its key, how many gaps there have been.
    since = np.cumsum(gaps)
    of_first = np.maximum.accumulate(np.where(begins, np.arange(len(words)), 0))
    back = np.zeros(len(words), np.bool_)
    back[order] = since > since[of_first]
    return back


def go_back(ts: Words, words: Words) -> Flags:
    """Which tuples have a key below that of one with an earlier time."""
    greatest = np.maximum.accumulate(words)
    before = np.searchsorted(ts, ts) - 1  # the last with an earlier time
    back: Flags = (before >= 0) & (words < greatest[before])
    return back


def last_of_clusters(ts: Words, words: Words) -> tuple[Words, Words]:
    """Tuples after which no other of their key comes at the next time there is, and that time."""
    if not len(ts):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    times = _numbered(ts)
    order = np.lexsort((times, words))
    goes_on = np.zeros(len(ts), np.bool_)
    goes_on[:-1] = (words[order][1:] == words[order][:-1]) & (np.diff(times[order]) <= 1)
    last = order[~goes_on]
    last = np.sort(last[times[last] < times[-1]])
    first_at = np.searchsorted(times, np.arange(times[-1] + 1))
    return last, ts[first_at[times[last] + 1]]


def _numbered(ts: Words) -> Words:
    """Times in order as numbers: equal ones have one, those after them the next."""
    return np.cumsum(np.diff(ts, prepend=ts[:1]) != 0)
