"""A sample of the keys of a recording, in groups that show how far it can be trusted.

A hash of their 64-bit words says which keys are in it, so that a key is in the sample of all
streams or of none, whatever type a stream has it in. The keys of a few may make most of the
results, and no sample without them is like the whole: these heavy ones are always in. The others
fall into disjoint groups of equal chance:

    group    -1: not in the sample    0: heavy    1 to GROUPS: the others

What is counted of group 0 is so in the whole recording; what is counted of the others stands for
as many times more as there are rows of them in the recording. Each group left out in turn gives
another estimate, and from how these differ comes the interval (`intervals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.errors import PlanError
from penstock.kernels.arena import Words
from penstock.kernels.hashing import fold_words
from penstock.model.binding import Binding
from penstock.stats.heavy_keys import HeavyKeys
from penstock.windows.key_words import key_words
from penstock.windows.payload.storage import take_rows

__all__ = [
    "GROUPS", "Floats", "Groups", "KeySample", "check_divisible", "chosen_sample", "keys_of",
    "sample_weights",
]  # fmt: skip

GROUPS: Final = 16
_HEAVY: Final = 0.005  # of all rows or, about, of all results: a key with more is heavy
_RATHER_HEAVY: Final = 0.001  # and one with more than this is, while there is room
_LEAST_LIGHT: Final = 0.5  # of the tuples asked for: the least part for keys that are not heavy
_HASHES: Final = 2.0**64

Floats = npt.NDArray[np.float64]
Groups = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class KeySample:
    """share: of the keys that are not heavy, how large a part is in it. heavy: the words of those
    that are, in order. seed: another one, other keys."""

    share: float
    heavy: Words = field(default_factory=lambda: np.empty(0, np.int64))
    seed: int = 0

    def groups(self, words: Words) -> Groups:
        """The group of each of these keys."""
        hashes = np.full(len(words), self.seed, np.uint64)
        fold_words(hashes, np.ascontiguousarray(words).view(np.uint64))
        place = hashes / _HASHES
        groups = (1 + np.minimum(place / self.share, 1.0) * GROUPS).astype(np.int8)
        groups[place >= self.share] = -1
        groups[groups > GROUPS] = GROUPS
        groups[np.isin(words, self.heavy)] = 0
        return groups

    def groups_of(self, binding: Binding, stream: int, batch: pa.RecordBatch) -> Groups:
        """The group of each row; of those without a key, which meet nothing, -1."""
        words, present = keys_of(binding, stream, batch)
        groups = self.groups(words)
        if present is not None:
            groups[~present] = -1
        return groups

    def rows_of(self, binding: Binding, stream: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are in it."""
        return take_rows(batch, np.flatnonzero(self.groups_of(binding, stream, batch) >= 0))


def keys_of(
    binding: Binding, stream: int, batch: pa.RecordBatch
) -> tuple[Words, npt.NDArray[np.bool_] | None]:
    """The words of keys, and which rows have one (None: all)."""
    columns = [batch.column(name) for name in binding.query.keys[stream]]
    return key_words(columns, binding.key_kinds, len(batch))


def check_divisible(query: Any) -> None:
    """Refuse joins whose rows cannot be divided by key."""
    if not query.keys[0]:
        raise PlanError(
            "there is no column that is equal in all streams, so keys cannot be sampled; "
            "use all rows, or give such columns"
        )


def chosen_sample(streams: Sequence[HeavyKeys], tuples: int, seed: int = 0) -> KeySample:
    """The sample to take of streams with these frequent keys.

    tuples: about how many there should be; more, where heavy keys alone are more.
    """
    heavy, heavy_tuples = _heavy(streams, (1 - _LEAST_LIGHT) * tuples)
    light = sum(each.rows for each in streams) - heavy_tuples
    room = max(tuples - heavy_tuples, _LEAST_LIGHT * tuples)
    return KeySample(min(1.0, room / max(light, 1)), heavy, seed)


def _heavy(streams: Sequence[HeavyKeys], room: float) -> tuple[Words, int]:
    """The heavy keys, and how many tuples these have. room: for how many of them there is room. A
    key has about as many results as the product of how often it comes in each stream."""
    words = np.unique(np.concatenate([each.words for each in streams]))
    found = np.stack([each.counts_of(words) for each in streams]).astype(np.float64)
    if not found.any():
        return words[:0], 0
    tuples, results = found.sum(axis=0), found.prod(axis=0)
    weight = np.maximum(
        tuples / sum(each.rows for each in streams), results / max(results.sum(), 1.0)
    )
    order = np.argsort(-weight, kind="stable")
    fits = (np.cumsum(tuples[order]) <= room) & (weight[order] > _RATHER_HEAVY)
    chosen = order[fits | (weight[order] > _HEAVY)]
    return np.sort(words[chosen]), int(tuples[chosen].sum())


def sample_weights(tuples: npt.NDArray[Any], in_all: int) -> Floats:
    """By estimate and group, what a tuple or a result counts for. The first estimate is from all
    groups, each other one leaves a group out.

    tuples: of each group. in_all: those of the whole recording.
    """
    light = tuples[1:]
    if np.count_nonzero(light) < 2:
        raise PlanError(
            f"the sample has {light.sum():,} tuples of keys that are not heavy, too few to tell "
            "how far it can be trusted; take a larger one, or all rows"
        )
    kept = np.ones((GROUPS + 1, GROUPS))
    kept[1:] -= np.eye(GROUPS)
    counts_for = max(in_all - tuples[0], light.sum()) / (kept @ light)
    return np.hstack([np.ones((GROUPS + 1, 1)), kept * counts_for[:, None]])
