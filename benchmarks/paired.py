"""Two streams in step under a budget: what a policy produces of what is due and of what could be.

The settings are those of Das, Gehrke and Riedewald (section 5.2): one tuple of each stream at
every instant, 5,600 of each, 50 keys, windows of w instants, nothing counted before 2w. Runs and
optima are cached: tables and tests ask for the same ones again and again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

import penstock as ps
from benchmarks.subject import join_within
from penstock.workloads import zipf_pair
from tests.optimum import optimum

__all__ = ["Pair", "Run", "best", "run", "zipf_keys"]


@dataclass(frozen=True)
class Pair:
    """The keys of both streams, one of each at every second, and the window in instants."""

    left: tuple[object, ...]
    right: tuple[object, ...]
    window: int

    @property
    def warm_up(self) -> int:
        """Instants before results count."""
        return 2 * self.window

    def batches(self, rows: int) -> Iterator[dict[str, pa.Table]]:
        """All tuples, so many instants at a time."""
        seconds = np.arange(len(self.left)).astype("datetime64[s]").astype("datetime64[us]")
        for start in range(0, len(self.left), rows):
            yield {
                name: pa.table(
                    {"ts": seconds[start : start + rows], "k": keys[start : start + rows]}
                )
                for name, keys in (("left", self.left), ("right", self.right))
            }

    def frequencies(self) -> dict[str, dict[object, int]]:
        """How often each key comes in the whole input, which the paper's policies are given."""
        return {"left": dict(Counter(self.left)), "right": dict(Counter(self.right))}


@dataclass(frozen=True)
class Run:
    """What came out and what did not, after the warm-up, by window; and who had the memory."""

    produced: tuple[int, ...]
    lost: tuple[int, ...]
    share: float  # of the left stream, in the tuples kept

    @property
    def total(self) -> int:
        """Results."""
        return sum(self.produced)

    @property
    def recall(self) -> float:
        """Results over those of the exact join."""
        return self.total / (self.total + sum(self.lost))

    def recall_of(self, window: int) -> float:
        """The same for one window after the warm-up, counted from 0; or from the end."""
        produced, lost = self.produced[window], self.lost[window]
        return produced / (produced + lost)


@cache
def zipf_keys(
    skews: tuple[float, float], *, shuffle: int | None = None, window: int = 400, seed: int = 1
) -> Pair:
    """Streams of the paper: correlated, unless `shuffle` is the seed of a permutation."""
    work = zipf_pair(keys=50, skews=skews, shuffle=shuffle, rows=5_600, seed=seed, payload=0)
    left, right = (tuple(work.table(stream)["k"].to_pylist()) for stream in work.streams)
    return Pair(left, right, window)


@cache
def run(pair: Pair, memory: int, shed: str, *, pool: str = "fixed", given: bool = True) -> Run:
    """A policy with memory for so many tuples; `given`: it knows the frequencies."""
    limits = ps.Limits(
        memory=f"{memory} rows",
        shed=shed,
        pool=pool,
        frequencies=pair.frequencies() if given else {},
    )
    counts = [(0, 0)]
    shares = []
    with join_within(f"{pair.window - 1} seconds").start(limits=limits) as join:
        for batch in pair.batches(pair.window):
            join.push(batch)
            metrics = join.metrics
            if metrics.live > memory:
                raise AssertionError(f"{metrics.live} tuples in memory for {memory}")
            counts.append((metrics.produced, metrics.lost))
            shares.append(metrics.streams["left"].live / metrics.live)
    first = pair.warm_up // pair.window
    produced, lost = np.diff(np.array(counts)[first:], axis=0).T.tolist()
    return Run(tuple(produced), tuple(lost), float(np.mean(shares[first:])))


@cache
def best(pair: Pair, memory: int, *, pool: str = "fixed") -> int:
    """The most that any policy could have given after the warm-up."""
    left, right = list(enumerate(pair.left)), list(enumerate(pair.right))
    units = memory if pool == "shared" else (memory // 2, memory // 2)
    return optimum(left, right, (pair.window - 1,) * 2, units, pair.warm_up)
