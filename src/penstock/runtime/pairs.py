"""How many pairs of tuples of two streams match, by a part of each.

If columns must be equal, sketches of the keys of both parts show how many pairs have equal ones:
by the true frequencies of keys, and by which of them are in both. What else `where=` asks for is
tried on the pairs of two small samples: on those with equal keys, if there are keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals
from penstock.engine.residual import holds
from penstock.kernels.arena import Words
from penstock.model.binding import Binding
from penstock.model.query import Query
from penstock.stats.key_sketch import KeySketch

__all__ = ["Part", "are_linked", "pair_selectivity", "sampled_streams"]

_SAMPLE: Final = 256  # tuples of a part, of each stream: 65,536 pairs


def sampled_streams(query: Query) -> set[int]:
    """Those of which whole tuples are needed, not only keys."""
    return {column.stream for each in query.residuals for column in each.columns}


@dataclass
class Part:
    """Some tuples of a stream. sketches: of their words, for each path. sample: of them, each as
    likely to be in it as any other. lots: what these drew."""

    sketches: list[KeySketch]
    draw: np.random.Generator
    has_sample: bool
    sample: Arrivals | None = None
    lots: np.ndarray[tuple[int], np.dtype[np.float64]] = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, query: Query, stream: int, seed: int) -> Part:
        """Of a stream of a query; nothing yet."""
        sketches = [KeySketch(seed=seed) for _ in query.access.words[stream]]
        return cls(sketches, np.random.default_rng(seed), stream in sampled_streams(query))

    def add(self, tuples: Arrivals) -> None:
        """Take tuples in."""
        for sketch, words in zip(self.sketches, tuples.words, strict=True):
            sketch.add(words)
        self.sample_from(tuples)

    def sample_from(self, tuples: Arrivals) -> None:
        """Take tuples into the sample only, perhaps."""
        if not self.has_sample:
            return
        lots = self.draw.random(len(tuples))
        chosen = np.argsort(lots)[:_SAMPLE]
        drawn = tuples.take(chosen)
        if self.sample is not None:
            drawn = Arrivals.concatenated([self.sample, drawn])
        self.lots = np.concatenate([self.lots, lots[chosen]])
        if len(drawn) > _SAMPLE:
            best = np.argsort(self.lots)[:_SAMPLE]
            drawn, self.lots = drawn.take(best), self.lots[best]
        self.sample = drawn


def are_linked(query: Query, left: int, right: int) -> bool:
    """Whether a predicate is over both streams."""
    return any(left in group and right in group for group in query.access.groups) or any(
        {column.stream for column in each.columns} == {left, right} for each in query.residuals
    )


def pair_selectivity(
    binding: Binding, left: int, right: int, parts: Sequence[tuple[Part, Part]]
) -> float | None:
    """The share of the pairs of two streams' tuples that match, by parts of them that may meet;
    None if too few do to estimate it."""
    share = 1.0
    links = [
        (group[left], group[right])
        for group in binding.query.access.groups
        if left in group and right in group
    ]
    for own, its in links:
        equal = sum(a.sketches[own].meets(b.sketches[its]) for a, b in parts)
        pairs = sum(a.sketches[own].rows * b.sketches[its].rows for a, b in parts)
        if not equal:
            return None
        share *= equal / pairs
    tried = held = 0
    for one, other in parts:
        if one.sample is not None and other.sample is not None:
            found = _tried(binding, (left, right), links, (one.sample, other.sample))
            tried, held = tried + found[0], held + found[1]
    if tried:
        # Of none at all it is only known that they are rare.
        share *= max(held, 0.5) / tried
    elif not links:
        return None
    return min(share, 1.0)


def _tried(
    binding: Binding,
    streams: tuple[int, int],
    links: Sequence[tuple[int, int]],
    samples: tuple[Arrivals, Arrivals],
) -> tuple[int, int]:
    """How many pairs have equal keys, and of how many of these the rest holds, too."""
    left, right = samples
    alike = np.ones((len(left), len(right)), np.bool_)
    for own, its in links:
        alike &= left.words[own][:, None] == right.words[its][None, :]
    rows: dict[int, Words] = dict(zip(streams, np.nonzero(alike), strict=True))
    sides = dict(zip(streams, samples, strict=True))

    def column(stream: int, name: str) -> pa.Array:
        return sides[stream].columns[name].take(pa.array(rows[stream]))

    count = len(rows[streams[0]])
    good = np.ones(count, np.bool_)
    for predicate in binding.query.residuals:
        if {each.stream for each in predicate.columns} == set(streams):
            good &= holds(predicate, column, count, binding.schemas)
    return count, int(good.sum())
