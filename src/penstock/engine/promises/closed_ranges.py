"""Ranges of keys that a stream has closed: from when on each key is, as steps over their order.

A cut stands before a value or behind it. Between two cuts all keys are closed from the same time
on, or not at all. Of promises that overlap the earliest counts:

    closed from 30:       |---------|
    closed from 20:            |---------|
    at               never | 30 | 20     | never

To find a key takes two searches for a value, however many ranges there are. Neighbours that are
closed from one time on become one, and those that hold already.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from penstock.kernels.arena import Words
from penstock.kernels.punctuation.key_rows import NEVER
from penstock.model.punctuation import Range

__all__ = ["ClosedRanges"]

_BEFORE: Final = 0
_BEHIND: Final = 1
_GREATEST: Final = (2**63 - 1, 2**64 - 1)  # integers that no other of their type is behind
_MOST: Final = 1 << 10  # ranges that are remembered
_PART: Final = 8  # one in N of these is forgotten at once

Cut = tuple[Any, int]


class ClosedRanges:
    """Those of one stream, over a key of one column."""

    def __init__(self) -> None:
        self._cuts: list[Cut] = []
        self._at = [NEVER]  # before the first cut, and behind each
        self._made = [0]  # the number of the promise that it is from
        self._arrays: dict[pa.DataType, tuple[Words, ...]] = {}  # of the cuts and steps, by type

    def __len__(self) -> int:
        return sum(at < NEVER for at in self._at)

    def add(self, closed: Range, at: int, passed: int) -> int:
        """Take a promise; returns how many ranges are forgotten for it. O(ranges)."""
        number = max(self._made) + 1
        begin = 0 if closed.low is None else self._cut_at((closed.low, _BEFORE))
        end = len(self._at) if closed.high is None else self._cut_at(_behind(closed.high))
        for each in range(begin, end):
            if at < self._at[each]:
                self._at[each], self._made[each] = at, number
        self._join(passed)
        return self._forget(passed)

    def _cut_at(self, cut: Cut) -> int:
        """Have a cut there; the number of what begins with it."""
        place = bisect_left(self._cuts, cut)
        if place == len(self._cuts) or self._cuts[place] != cut:
            self._cuts.insert(place, cut)
            self._at.insert(place, self._at[place])
            self._made.insert(place, self._made[place])
        return place + 1

    def _join(self, passed: int) -> None:
        """Leave out cuts between neighbours that are the same, or hold both."""
        cuts, ats, mades = list[Cut](), self._at[:1], self._made[:1]
        for cut, at, made in zip(self._cuts, self._at[1:], self._made[1:], strict=True):
            if at == ats[-1] or (at <= passed and ats[-1] <= passed):
                ats[-1], mades[-1] = max(at, ats[-1]), max(made, mades[-1])
            else:
                cuts.append(cut)
                ats.append(at)
                mades.append(made)
        self._cuts, self._at, self._made = cuts, ats, mades
        self._arrays = {}

    def _forget(self, passed: int) -> int:
        """Forget the oldest beyond a number; how many."""
        count = len(self)
        if count <= _MOST:
            return 0
        by_age = sorted(
            (made, each) for each, made in enumerate(self._made) if self._at[each] < NEVER
        )
        oldest = by_age[: count - _MOST + _MOST // _PART]
        for _, each in oldest:
            self._at[each] = NEVER
        self._join(passed)
        return len(oldest)

    def at(self, column: pa.Array) -> Words:
        """From when on each key is closed; NEVER if it is not."""
        befores, behinds, ats = self._as_arrays(column.type)
        keys = column.to_numpy(zero_copy_only=False)
        passed = np.searchsorted(befores, keys, "right") + np.searchsorted(behinds, keys, "left")
        return ats[passed]

    def _as_arrays(self, kind: pa.DataType) -> tuple[Words, ...]:
        if kind not in self._arrays:
            sides = (
                pa.array([value for value, side in self._cuts if side == which], kind)
                for which in (_BEFORE, _BEHIND)
            )
            befores, behinds = (each.to_numpy(zero_copy_only=False) for each in sides)
            self._arrays[kind] = befores, behinds, np.array(self._at)
        return self._arrays[kind]

    def save(self, kind: pa.DataType) -> pa.Table:
        """Everything in it. kind: the type of the stream's key."""
        if pt.is_integer(kind) and not pt.is_uint64(kind):
            kind = pa.int64()  # one behind the greatest may not fit into a smaller type
        return pa.table(
            {
                "value": pa.array([None, *(value for value, _ in self._cuts)], kind),
                "side": pa.array([0, *(side for _, side in self._cuts)], pa.int64()),
                "at": pa.array(self._at, pa.int64()),
                "made": pa.array(self._made, pa.int64()),
            }
        )

    @classmethod
    def load(cls, saved: pa.Table) -> ClosedRanges:
        """What was saved."""
        ranges = cls()
        values, sides = (saved[name].to_pylist()[1:] for name in ("value", "side"))
        ranges._cuts = list(zip(values, sides, strict=True))
        ranges._at, ranges._made = (saved[name].to_pylist() for name in ("at", "made"))
        return ranges


def _behind(high: Any) -> Cut:
    """A cut behind a value. Of integers it is before the next one, so that ranges that follow each
    other touch."""
    if isinstance(high, int) and not isinstance(high, bool) and high not in _GREATEST:
        return high + 1, _BEFORE
    return high, _BEHIND
