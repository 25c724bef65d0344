"""Counters: what a join counts, declared once.

What is saved of them, carried over and shown goes by these fields: another counter is a field here
and the place that counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["BucketCounts", "StreamCounts", "columns_of", "restored"]


@dataclass
class StreamCounts:
    """What has come of a stream: all tuples, those without a key, those that were filtered
    out, late ones, late ones that nobody fetched, and those beyond `max_jump`; punctuations, those
    of them that say nothing about a key, tuples that the stream had promised not to bring, and
    those of them that nobody fetched."""

    arrived: int = 0
    keyless: int = 0
    filtered: int = 0
    late: int = 0
    late_forgotten: int = 0
    jumps: int = 0
    punctuations: int = 0
    unusable: int = 0
    broken: int = 0
    broken_forgotten: int = 0


@dataclass(frozen=True)
class BucketCounts:
    """What a bucket on Spark has done in a batch. These are summed over all buckets; None is for
    what is not counted.

    live, bytes: tuples and memory in its windows. rebuilt: whether these had to be filled from
    segments. lost: results, for want of tuples that were shed; lost_variance: what that adds to the
    variance of their sum. shed: tuples that were; ghosts: those that are remembered. unprobed:
    tuples that did not look for partners.

    Of promises, punctuations: rows that were; unusable: those that name no key. broken: tuples that
    their stream had promised not to bring. discarded: tuples that did not stay after they had
    looked for partners; purged: those that left before their window ended. propagated: keys that
    are over.
    """

    produced: int
    late: int
    live: int
    bytes: int
    rebuilt: int
    lost: float | None
    lost_variance: float | None
    shed: int
    ghosts: int
    unprobed: int
    punctuations: int
    unusable: int
    broken: int
    discarded: int
    purged: int
    propagated: int


def columns_of(counts: Sequence[StreamCounts]) -> dict[str, list[int]]:
    """The counters of all streams, by name."""
    return {
        field.name: [getattr(each, field.name) for each in counts] for field in fields(StreamCounts)
    }


def restored(columns: Mapping[str, Sequence[Any]], stream: int) -> StreamCounts:
    """The counters of a stream, from those of all; one that was not counted yet is zero."""
    there = [field.name for field in fields(StreamCounts) if field.name in columns]
    return StreamCounts(**{name: columns[name][stream] for name in there})
