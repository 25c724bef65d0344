"""How many buckets there are, and what they are called.

The number must not change under a checkpoint. By default it is `per_partition` for each shuffle
partition. Spark says how many of these there are when a batch runs: a query that is started again
keeps the partitions of its checkpoint, whatever the session says by then. The tasks know, so they
are asked, not the session. Bucket 0 is always there and is called in every batch, so a number that
was changed by hand is refused before anything is written.

Spark sends a bucket to a partition by the hash of its name. Names are chosen so that every
partition gets as many buckets as any other: of 0 to 7, five would go to one of two.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from pyspark import TaskContext

__all__ = ["MOST_BUCKETS", "BucketCount", "partition_of", "spread_names"]

MOST_BUCKETS: Final = (1 << 15) - 1
_WORD: Final = (1 << 32) - 1
# Spark writes the partitions of the checkpoint to the first when a query is started again.
_PARTITIONS: Final = (
    "spark.sql.streaming.internal.stateStore.partitions",
    "spark.sql.shuffle.partitions",
)


@dataclass(frozen=True)
class BucketCount:
    """given: by the user. partitions: the session's, for when no task is running.
    per_partition: how many for each of these, when none are given."""

    given: int | None
    partitions: int = 1
    per_partition: int = 4

    def here(self) -> int:
        """The number, in this task."""
        if self.given is not None:
            return self.given
        return min(self.per_partition * self.partitions_here(), MOST_BUCKETS)

    def names(self) -> tuple[int, ...]:
        """What they are called, in this task; the first of them is 0."""
        return spread_names(self.here(), self.partitions_here())

    def partitions_here(self) -> int:
        """The shuffle partitions of the query, in this task."""
        task = TaskContext.get()
        told = [task.getLocalProperty(each) for each in _PARTITIONS] if task is not None else []
        return next((int(each) for each in told if each is not None), self.partitions)


@functools.cache
def spread_names(count: int, partitions: int) -> tuple[int, ...]:
    """Return `count` names, at most one more of them in one partition than in another."""
    names: list[int] = []
    filled = [0] * partitions
    fair, extra = divmod(count, partitions)
    name = 0
    while len(names) < count:
        partition = partition_of(name, partitions)
        if filled[partition] < fair or (filled[partition] == fair and extra):
            extra -= filled[partition] == fair
            filled[partition] += 1
            names.append(name)
        name += 1
    return tuple(names)


def partition_of(name: int, partitions: int) -> int:
    """Where Spark sends an int: its 32-bit MurmurHash3 with seed 42, modulo the partitions."""
    word = _rotated(name * 0xCC9E_2D51, 15) * 0x1B87_3593 & _WORD
    mixed = (_rotated(42 ^ word, 13) * 5 + 0xE654_6B64) & _WORD
    mixed ^= 4  # the length in bytes
    for shift, factor in ((16, 0x85EB_CA6B), (13, 0xC2B2_AE35), (16, 1)):
        mixed = (mixed ^ mixed >> shift) * factor & _WORD
    signed = mixed - (mixed >> 31 << 32)
    return signed % partitions


def _rotated(word: int, bits: int) -> int:
    word &= _WORD
    return (word << bits | word >> (32 - bits)) & _WORD
