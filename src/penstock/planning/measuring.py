"""What a probe and an update of one window take on this machine, by the kernels of the join.

A subject is a window of `penstock.windows`, filled, with an index. Two workloads are run on it, as
Kang, Naughton and Viglas do to get their weights: keys that are only looked for, and tuples that
only come and go. Both are the loop of the join with all else left out: the same calls, in the same
order, the same fetching ahead. So what is measured are the join's own kernels. The join looks for
an arrival's key in the directory once, both to probe and to insert; it is counted with the probe.

Times are of the processor and of this thread, and the least of several runs counts: what else the
machine does can only add to it. Some machines move that clock in steps that are longer than a run:
where it stood still, the clock on the wall counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter_ns, thread_time_ns
from typing import Final

import numpy as np

from penstock.kernels.arena import Words
from penstock.kernels.measured import OWN, fill, locate_all, probe_all, update_all
from penstock.kernels.sentinels import BEGINNING
from penstock.model.plan import Plan
from penstock.model.query import Query
from penstock.model.stream import Stream
from penstock.windows.allocator import Heap
from penstock.windows.windows import Windows

__all__ = ["Point", "Subject"]

_MOST_PROBES: Final = 8192
_LEAST_PROBES: Final = 16
_UPDATES: Final = 8192
_READ: Final = 1 << 20  # records of a scan in one run


@dataclass(frozen=True)
class Point:
    """What is measured. tuples: in the window. matches: of a key. chain: tuples of a bucket, where
    there are buckets."""

    index: str
    tuples: int
    matches: int = 1
    chain: int = 10

    @property
    def distinct(self) -> int:
        """Keys in the window."""
        return max(self.tuples // self.matches, 1)

    @property
    def buckets(self) -> int:
        """How many there are."""
        return max(self.tuples // self.chain, 1)


class Subject:
    """A window that is full: as many tuples leave as come, one an instant."""

    def __init__(self, point: Point, seed: int = 0) -> None:
        self.point = point
        self._random = np.random.default_rng(seed)
        self._now = 0
        name = f"buckets({point.buckets})" if point.index == "buckets" else point.index
        query = Query(
            [Stream("probing", time="ts"), Stream("probed", time="ts")],
            on="k",
            within=f"{max(point.tuples - 1, 1)} us",
        )
        self.windows = Windows(query, Plan.of(query, {"probing": "scan", "probed": name}), Heap())
        self._found = np.empty(1 << 12, np.int64)
        count = max(point.tuples, _UPDATES)
        self._fill(self._random.permutation(count) % point.distinct)  # every key gets its entry
        self._fill(self._keys(count))

    def _keys(self, count: int) -> Words:
        return self._random.integers(0, self.point.distinct, count)

    def _next(self, count: int) -> Words:
        """Make room for `count` more tuples, and return their times."""
        self._now += count
        self.windows.reserve({OWN: count}, BEGINNING)
        return np.arange(self._now - count, self._now)

    def _fill(self, keys: Words) -> None:
        """Let tuples of these keys in, which may have no entries yet."""
        ts, words = self._next(len(keys)), keys.reshape(1, -1)
        done = 0
        while done < len(keys):
            done = fill(self.windows.state, ts, words, done)
            if done < len(keys) or not self.windows.has_index_room:
                self.windows.make_index_room()
        self.windows.begin(self._now - 1)

    def update_ns(self) -> float:
        """What it takes to let one tuple in and one out."""
        keys = self._keys(_UPDATES)
        entries = self._located(keys)  # good until the ring grows; it has room since filled
        ts, words = self._next(_UPDATES), keys.reshape(1, -1)
        begin = _clocks()
        update_all(self.windows.state, ts, words, entries)
        taken = _ns_since(begin)
        self.windows.begin(self._now - 1)
        return taken / _UPDATES

    def _located(self, keys: Words) -> Words:
        """The entries of keys, all of which have one; the directory may have lost some that had no
        tuple for a while."""
        entries = np.empty(len(keys), np.int64)
        while True:
            locate_all(self.windows.state, keys, entries)
            lost = keys[self.windows.state.words[entries] != keys]
            if self.point.index != "hash" or not len(lost):
                return entries
            self._fill(np.unique(lost))

    def probe(self, keys: Iterable[int]) -> int:
        """How many tuples probes for these keys find."""
        return probe_all(self.windows.state, np.fromiter(keys, np.int64), self._found)

    def probe_ns(self) -> float:
        """What one probe takes."""
        probes = _MOST_PROBES // self.point.matches
        if self.point.index == "scan":
            probes = min(probes, _READ // self.point.tuples)
        keys = self._keys(max(probes, _LEAST_PROBES))
        begin = _clocks()
        probe_all(self.windows.state, keys, self._found)
        return _ns_since(begin) / len(keys)


def _clocks() -> tuple[int, int]:
    return thread_time_ns(), perf_counter_ns()


def _ns_since(begin: tuple[int, int]) -> int:
    of_thread, of_wall = (now - then for now, then in zip(_clocks(), begin, strict=True))
    return of_thread or max(of_wall, 1)
