"""What streams are like as a whole, from reading them once: what a sample of them is taken by.

Of each stream the most frequent keys, and how many tuples came in each slot of time. Slots are so
much shorter than windows that they show what is live at once as well as the tuples would. Nothing
else is kept, so streams may be of any size.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals
from penstock.engine.intake import event_times
from penstock.engine.release import release
from penstock.kernels.arena import Words
from penstock.kernels.sentinels import BEGINNING
from penstock.lab.recording.need import Entering, Need, most_live
from penstock.model.binding import Binding
from penstock.model.query import Query
from penstock.stats.heavy_keys import HeavyKeys

__all__ = ["StreamSurvey", "arrivals_of", "slot_us", "surveyed_need"]

_SLOTS: Final = 256  # of the shortest window
_MOST_PENDING: Final = 1 << 20
_ANY_LENGTH_US: Final = 1_000_000


class StreamSurvey:
    """One stream. tuples: those that enter its window. frequent: their most frequent keys."""

    def __init__(self, width_us: int) -> None:
        self.frequent = HeavyKeys()
        self._width_us = width_us
        self._slots = np.empty(0, np.int64)
        self._counts = np.empty(0, np.int64)
        self._pending: list[tuple[Words, Words]] = []

    @property
    def tuples(self) -> int:
        """How many entered the window."""
        return self.frequent.rows

    def add(self, arrivals: Arrivals) -> None:
        """Take tuples in."""
        self.frequent.add(arrivals.keys)
        self.add_slots(*np.unique(arrivals.ts // self._width_us, return_counts=True))

    def add_slots(self, slots: Words, counts: Words) -> None:
        """Take in how many tuples came in some slots."""
        self._pending.append((slots, counts))
        if sum(len(each) for each, _ in self._pending) > _MOST_PENDING:
            self.slots()

    def slots(self) -> tuple[Words, Words]:
        """The beginnings of slots in order, and how many tuples came in each."""
        if self._pending:
            slots, counts = (np.concatenate(each) for each in zip(*self._pending, strict=True))
            self._pending = []
            every, places = np.unique(np.concatenate([self._slots, slots]), return_inverse=True)
            total = np.zeros(len(every), np.int64)
            np.add.at(total, places, np.concatenate([self._counts, counts]))
            self._slots, self._counts = every, total
        return self._slots * self._width_us, self._counts


def slot_us(query: Query) -> int:
    """How long slots are for a query."""
    lengths = [window.length_us for window in query.windows if not window.is_endless]
    return max(min(lengths, default=_ANY_LENGTH_US * _SLOTS) // _SLOTS, 1)


def arrivals_of(binding: Binding, stream: int, batch: pa.RecordBatch) -> Arrivals:
    """The tuples of a batch that enter the window."""
    intake = event_times(binding.query, stream, batch)
    return release(binding, stream, intake, BEGINNING).arrivals


def surveyed_need(query: Query, surveys: Iterable[StreamSurvey]) -> Need:
    """The most tuples that are live at once, to about one in 256."""
    entering, counts, known = [], [], 0
    for survey in surveys:
        starts, tuples = survey.slots()
        # Each slot is a tuple of a group of its own, which counts for all that came in it.
        entering.append(Entering(starts, np.arange(known, known + len(starts))))
        counts.append(tuples)
        known += len(starts)
    return most_live(query, entering, np.concatenate(counts).astype(np.float64)[None, :])
