"""Two streams in step under a budget: what a policy produces of what is due and of what could be.

The settings are those of Das, Gehrke and Riedewald (section 5.2): one tuple of each stream at
every instant, 5,600 of each, 50 keys, windows of w instants, nothing counted before 2w. Runs and
optima are cached: tables and tests ask for the same ones again and again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa

import penstock as ps
from benchmarks.subject import join_within
from penstock.samples import zipf_pair
from penstock.samples.key_laws import ShuffledKeys, UniformKeys

__all__ = ["Pair", "Run", "best", "exact", "run", "zipf_keys"]

_KEYS: Final = 50


@dataclass(frozen=True)
class Pair:
    """The keys of both streams, one of each at every second, and the window in instants.

    laws: the frequencies that the keys were drawn with, by key, if they were.
    """

    left: tuple[object, ...]
    right: tuple[object, ...]
    window: int
    laws: tuple[tuple[tuple[int, float], ...], ...] = ()

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

    def frequencies(self, known: str) -> dict[str, dict[object, float]]:
        """What a policy is told.

        sample: how often each key comes in the whole input, which the paper's policies are told;
            that is some knowledge of what will come.
        law: the frequencies it was drawn with.
        nothing: it has to learn.
        """
        if known == "nothing":
            return {}
        if known == "sample":
            return {"left": dict(Counter(self.left)), "right": dict(Counter(self.right))}
        left, right = self.laws
        return {"left": dict(left), "right": dict(right)}


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
    work = zipf_pair(keys=_KEYS, skews=skews, shuffle=shuffle, rows=5_600, seed=seed, payload=0)
    left, right = (tuple(work.table(stream)["k"].to_pylist()) for stream in work.streams)
    places = range(_KEYS)
    names: Sequence[int] = places
    if shuffle is not None:
        middles = (np.arange(_KEYS) + 0.5) / _KEYS
        names = ShuffledKeys(UniformKeys(_KEYS), shuffle).pick(middles).tolist()
    laws = tuple(
        tuple((each[place], (place + 1) ** -skew) for place in places)
        for each, skew in zip((places, names), skews, strict=True)
    )
    return Pair(left, right, window, laws)


@cache
def run(pair: Pair, memory: int, shed: str, *, pool: str = "fixed", known: str = "sample") -> Run:
    """A policy with memory for so many tuples, told what `Pair.frequencies` says."""
    limits = ps.Limits(
        memory=f"{memory} rows", shed=shed, pool=pool, frequencies=pair.frequencies(known)
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
def exact(pair: Pair) -> int:
    """All results after the warm-up."""
    left, right = Counter[object](), Counter[object]()  # of the window
    results = 0
    for now, keys in enumerate(zip(pair.left, pair.right, strict=True)):
        if now >= pair.window:
            left[pair.left[now - pair.window]] -= 1
            right[pair.right[now - pair.window]] -= 1
        left[keys[0]] += 1
        if now >= pair.warm_up:
            results += left[keys[1]] + right[keys[0]]
        right[keys[1]] += 1
    return results


@cache
def best(pair: Pair, memory: int, *, pool: str = "fixed") -> int:
    """The most that any policy could have given after the warm-up."""
    (tables,) = pair.batches(len(pair.left))
    found = ps.optimum(
        join_within(f"{pair.window - 1} seconds"),
        tables,
        memory=memory,
        pool=pool,
        counted_from=pair.warm_up * 1_000_000,
    )
    return int(found.produced)
