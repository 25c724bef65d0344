"""How long tuples stay in their windows, with promises and without: an exact count, no join is run.

A tuple of stream i, key k and time t leaves its window at its end, or by promises (engine.promises)
at the earlier of

    all others have closed k                          max of closes_j(k) over all streams j but i
    k is over: all streams have closed it             max of closes_j(k) over all streams j
               or one has, and holds none of it       min over j of max(closes_j(k), last_end_j(k))

and not before t. closes_j(k) is the time at which j closes k, last_end_j(k) that at which its last
tuple of k leaves by its window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from penstock.engine.arrivals import Arrivals
from penstock.engine.promises.lines import last_of_clusters
from penstock.kernels.arena import Words
from penstock.model.window import ALWAYS, FOREVER, Window

__all__ = ["MOST_TUPLES", "Lifetimes", "Line", "ends_of"]

MOST_TUPLES: Final = 1 << 20  # of a stream, that are looked at


class Line:
    """The first tuples of a stream: their times, and the words of their keys."""

    def __init__(self, most: int = MOST_TUPLES) -> None:
        self._most = most
        self._parts: list[tuple[Words, Words]] = []
        self._rows = 0
        self.is_cut = False

    def add(self, tuples: Arrivals) -> None:
        """Take as many as there is room for."""
        room = self._most - self._rows
        self.is_cut |= len(tuples) > room
        self._parts.append((tuples.ts[:room], tuples.keys[:room]))
        self._rows += min(len(tuples), room)

    def __len__(self) -> int:
        return self._rows

    def in_time_order(self) -> tuple[Words, Words]:
        """Times and words."""
        if not self._parts:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        ts, words = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        order = np.argsort(ts, kind="stable")
        return ts[order], words[order]


class Lifetimes:
    """Those of the tuples of all streams of a join, between the first and the last time at which
    all streams are known."""

    def __init__(self, lines: Sequence[Line], windows: Sequence[Window]) -> None:
        known = [line.in_time_order() for line in lines]
        self._ts = [ts for ts, _ in known]
        self._words = [words for _, words in known]
        self._keys, whose = np.unique(np.concatenate(self._words), return_inverse=True)
        self._whose = np.split(whose, np.cumsum([len(words) for words in self._words])[:-1])
        self._ends = [ends_of(window, ts) for window, ts in zip(windows, self._ts, strict=True)]
        self._last_ends = [
            _by_key(np.maximum, whose, ends, len(self._keys), ALWAYS)
            for whose, ends in zip(self._whose, self._ends, strict=True)
        ]
        times = [ts for ts in self._ts if len(ts)]
        self._first = min((int(ts[0]) for ts in times), default=0)
        # Of a stream that was cut nothing is known behind its last tuple.
        cut = [ts for ts, line in zip(self._ts, lines, strict=True) if line.is_cut]
        self._last = min(
            (int(ts[-1]) for ts in cut), default=max((int(ts[-1]) for ts in times), default=0)
        )

    @property
    def spans_time(self) -> bool:
        """Whether an average over time can be taken."""
        return self._last > self._first

    def average_live(self, promised: Mapping[int, Sequence[str]] | None = None) -> float:
        """How many tuples all windows hold, on average over time. promised: by stream, which of
        'unique', 'clustered' and 'increasing' it promises, and keeps."""
        closes = np.full((len(self._ts), len(self._keys)), FOREVER)
        for stream, names in (promised or {}).items():
            for name in names:
                np.minimum(closes[stream], self._closes(stream, name), out=closes[stream])
        over = np.minimum(closes.max(axis=0), np.maximum(closes, self._last_ends).min(axis=0))
        total = 0.0
        for stream, (ts, whose) in enumerate(zip(self._ts, self._whose, strict=True)):
            by_others = np.delete(closes, stream, axis=0).max(axis=0)
            let_go = np.maximum(np.minimum(by_others, over)[whose], ts)
            leaves = np.minimum(np.minimum(self._ends[stream], let_go), self._last)
            total += float(np.maximum(leaves - ts, 0).sum(dtype=np.float64))
        return total / (self._last - self._first)

    def _closes(self, stream: int, promise: str) -> Words:
        """When a stream closes each key, by a promise that it keeps."""
        ts, words, whose = self._ts[stream], self._words[stream], self._whose[stream]
        if promise == "unique":
            return _by_key(np.minimum, whose, ts, len(self._keys), FOREVER)
        if promise == "clustered":
            last, at = last_of_clusters(ts, words)
            return _by_key(np.minimum, whose[last], at, len(self._keys), FOREVER)
        greatest = np.maximum.accumulate(words)
        passed = np.searchsorted(greatest, self._keys, side="right")
        return np.append(ts, FOREVER)[passed]


def _by_key(which: np.ufunc, whose: Words, times: Words, keys: int, none: int) -> Words:
    """The extreme of the times of each key."""
    found = np.full(keys, none)
    which.at(found, whose, times)
    return found


def ends_of(window: Window, ts: Words) -> Words:
    """The last time at which each tuple is in its window."""
    return window.ends(ts)  # type: ignore[arg-type, return-value]  # of each of them
