"""The gate before the loop: what may enter it now, and what waits for its turn.

If windows count rows or arrivals, tuples enter the loop in the order (ts, stream, arrival),
whatever order they came in. A tuple can go when nothing before it is still to come: when the
watermark has passed it. At its own instant a tuple of an earlier stream may yet arrive.
If the order of arrival cannot be reproduced, tuples of one stream and one instant are ordered by
their contents (windows.contents): all of them are there when their turn comes.

If windows count arrivals, tuples are numbered in that order, and the loop works with these
numbers instead of times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from penstock.engine.arrivals import Arrivals
from penstock.engine.sorted_runs import SortedRuns
from penstock.kernels.arena import Words
from penstock.kernels.sentinels import END_OF_TIME
from penstock.model.binding import Binding
from penstock.model.query import Query
from penstock.windows.identity import Identities
from penstock.windows.windows import Windows

__all__ = ["Entry", "Gate"]


class Entry(NamedTuple):
    """What the loop works through next. watermark: that of after, in the loop's own time."""

    arrivals: Mapping[int, Arrivals]
    watermark: int


class Gate:
    """Tuples of all streams that wait. numbered: how many tuples have been numbered so far.

    by_contents: whether ties are broken by what is in tuples, not by their arrival.
    """

    def __init__(self, query: Query, *, by_contents: bool = False) -> None:
        self._query = query
        self._by_contents = by_contents
        self._runs = [SortedRuns() for _ in query.streams]
        self._identities: Identities | None = None
        self.numbered = 0

    def let_in(self, arrivals: Mapping[int, Arrivals], watermark: int) -> Entry:
        """What the loop gets of these, which are identified, and of what waits, at a watermark."""
        if not self._query.counts:
            return Entry(arrivals, watermark)
        for stream, each in arrivals.items():
            self.add(stream, each)
        due = self.due(watermark)
        # Where arrivals are counted, the loop's time is their number.
        is_number = self._query.counts_arrivals and watermark < END_OF_TIME
        return Entry(due, self.numbered if is_number else watermark)

    def rows(self, stream: int) -> int:
        """How many tuples of a stream wait, without those that are not kept for want of a key."""
        runs = self._runs[stream]
        return runs.rows if self._query.keeps_keyless(stream) else runs.keyed

    def add(self, stream: int, arrivals: Arrivals) -> None:
        """Have these wait, behind those of their instant that wait already."""
        self._runs[stream].add(arrivals)

    def identified(self, binding: Binding, stream: int, arrivals: Arrivals) -> Arrivals:
        """The same with words that no two different keys share, if windows count by key."""
        if binding.exact or not self._query.counts_by_key or not len(arrivals):
            return arrivals
        if self._identities is None:
            self._identities = Identities(binding.key_kinds)
        columns = [arrivals.columns[name] for name in self._query.keys[stream]]
        mute = np.zeros(len(arrivals), np.bool_) if arrivals.mute is None else arrivals.mute
        words = self._identities.words(columns, arrivals.keys, np.flatnonzero(~mute))
        return replace(arrivals, words=words.reshape(1, -1))

    @contextmanager
    def unless_refused(self) -> Iterator[None]:
        """Forget keys that are registered meanwhile if the batch they came with is refused."""
        before = None if self._identities is None else self._identities.copy()
        try:
            yield
        except BaseException:
            self._identities = before
            raise

    def forget_keys(self, windows: Windows) -> None:
        """Let go of identities that no tuple has, from time to time."""
        if self._identities is None or not self._identities.is_crowded:
            return
        used = [keys for runs in self._runs for keys in runs.key_words()]
        used += [windows.keys(stream) for stream in range(len(self._runs))]
        self._identities.forget_all_but(np.concatenate(used))

    def arrivals(self, stream: int) -> Arrivals | None:
        """All that wait of a stream, in order of time."""
        return self._runs[stream].whole()

    def places(self, stream: int) -> Words:
        """Which arrivals those that wait of a stream will be, as far as is known now."""
        waiting = [runs.whole() for runs in self._runs]
        of = [number for number, each in enumerate(waiting) for _ in range(len(each or ()))]
        ts = np.concatenate([each.ts for each in waiting if each is not None])
        order = np.argsort(ts, kind="stable")
        return self.numbered + np.flatnonzero(np.array(of)[order] == stream)

    @property
    def earliest(self) -> int | None:
        """The time of the first to have its turn; None when none waits."""
        times = [runs.earliest for runs in self._runs]
        return min((each for each in times if each is not None), default=None)

    def in_turn(self, arrivals: Arrivals) -> Arrivals:
        """Those of a stream in the order of their turns."""
        return arrivals.in_contents_order() if self._by_contents else arrivals.in_time_order()

    def due(self, watermark: int) -> dict[int, Arrivals]:
        """Take out what a watermark has passed."""
        taken = {}
        for stream, runs in enumerate(self._runs):
            passed = runs.take_before(watermark)
            if passed is not None:
                taken[stream] = self.in_turn(passed)
        return self.entering(taken)

    def entering(self, taken: dict[int, Arrivals]) -> dict[int, Arrivals]:
        """Those whose turn it is as the loop takes them: numbered, and without the keyless."""
        if taken and self._query.counts_arrivals:
            taken = self._in_numbers(taken)
        return {
            stream: arrivals if self._query.keeps_keyless(stream) else arrivals.with_keys()
            for stream, arrivals in taken.items()
        }

    def _in_numbers(self, taken: dict[int, Arrivals]) -> dict[int, Arrivals]:
        """The same with their place among all arrivals for a time."""
        streams = list(taken)
        ts = np.concatenate([taken[stream].ts for stream in streams])
        places = np.empty(len(ts), np.int64)
        # Stable, and the streams are in their order: so ties are broken as they should be.
        places[np.argsort(ts, kind="stable")] = np.arange(self.numbered, self.numbered + len(ts))
        self.numbered += len(ts)
        numbered, begin = {}, 0
        for stream in streams:
            arrivals = taken[stream]
            end = begin + len(arrivals)
            numbered[stream] = replace(arrivals, ts=places[begin:end])
            begin = end
        return numbered

    def dump(self) -> dict[str, Any]:
        """Everything in it but `numbered`, as plain values and record batches."""
        together = [runs.whole() for runs in self._runs]
        return {
            "parts": [None if each is None else each.dump() for each in together],
            "identities": None if self._identities is None else self._identities.dump(),
        }

    def load(self, dumped: Mapping[str, Any], binding: Binding) -> None:
        """Restore what was dumped for the same query."""
        self._runs = [SortedRuns() for _ in dumped["parts"]]
        for runs, each in zip(self._runs, dumped["parts"], strict=True):
            if each is not None:
                runs.add(Arrivals.load(each))
        if dumped["identities"] is not None:
            self._identities = Identities(binding.key_kinds)
            self._identities.load(dumped["identities"])
