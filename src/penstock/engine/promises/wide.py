"""Promises about many keys at once: ranges, columns of a key that are left out, and streams whose
keys increase.

They are kept as they are, and become promises about single keys when such keys are there: those of
the live tuples when the promise begins to hold, and those of arrivals from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.engine.arrivals import Arrivals
from penstock.engine.promises.closed_ranges import ClosedRanges
from penstock.engine.promises.closing import Closing
from penstock.kernels.arena import Flags, Words
from penstock.kernels.punctuation.key_rows import NEVER
from penstock.model.keys import KeyKind
from penstock.model.punctuation import OneOf, Pattern, Range
from penstock.windows.key_words import as_kind

__all__ = ["Wide", "WideClosing"]

_MOST_PATTERNS: Final = 1 << 6  # that are remembered: each is compared with all that arrives


@dataclass(frozen=True)
class WideClosing:
    """A pattern of keys that a stream closes from a time on."""

    stream: int
    pattern: Pattern
    at: int

    def matches(self, key: Sequence[pa.Array], kinds: Sequence[KeyKind]) -> Flags:
        """Which keys of any stream, by column, are of the pattern."""
        matching = np.ones(len(key[0]), np.bool_)
        for name, column, kind in zip(self.pattern.columns, key, kinds, strict=True):
            if name in self.pattern.values:
                each = _matches(self.pattern.values[name], _comparable(column, kind))
                matching &= each.fill_null(False).to_numpy(zero_copy_only=False)
        return matching


def _comparable(column: pa.Array, kind: KeyKind) -> pa.Array:
    """A key column in a type that holds the values of all streams."""
    column = as_kind(column, kind)
    if pt.is_timestamp(column.type) and column.type.unit != "ns":
        return column.cast(pa.timestamp("us", column.type.tz))
    return column


def _matches(wanted: Any, column: pa.Array) -> Any:
    if isinstance(wanted, OneOf):
        return pc.is_in(column, value_set=pa.array(list(wanted.values), column.type))
    if not isinstance(wanted, Range):
        return pc.equal(column, pa.scalar(wanted, column.type))
    inside = column.is_valid()
    if wanted.low is not None:
        inside = pc.and_(inside, pc.greater_equal(column, pa.scalar(wanted.low, column.type)))
    if wanted.high is not None:
        inside = pc.and_(inside, pc.less_equal(column, pa.scalar(wanted.high, column.type)))
    return inside


class Wide:
    """Those of all streams. below: of an increasing stream, the word that its keys have reached,
    and when. ranges: by stream, over a key of one column. patterns: over one of several."""

    def __init__(self) -> None:
        self.below: dict[int, tuple[int, int]] = {}
        self.ranges: dict[int, ClosedRanges] = {}
        self.patterns: list[WideClosing] = []

    def __bool__(self) -> bool:
        return bool(self.below or self.ranges or self.patterns)

    def add(self, closing: WideClosing, passed: int) -> int:
        """Take a promise; returns how many are forgotten for it."""
        if len(closing.pattern.columns) > 1:
            self.patterns.append(closing)
            forgotten = max(len(self.patterns) - _MOST_PATTERNS, 0)
            del self.patterns[:forgotten]
            return forgotten
        (name,) = closing.pattern.columns
        closed = closing.pattern.values.get(name, Range(None, None))
        ranges = self.ranges.setdefault(closing.stream, ClosedRanges())
        return ranges.add(closed, closing.at, passed)

    def reach(self, stream: int, word: int, at: int) -> None:
        """The keys of an increasing stream have come to a word."""
        if stream not in self.below or word > self.below[stream][0]:
            self.below[stream] = word, at

    def broken(
        self, stream: int, arrivals: Arrivals, key: Sequence[pa.Array], kinds: Sequence[KeyKind]
    ) -> Words:
        """Which arrivals their stream had promised not to bring."""
        broken = np.zeros(len(arrivals), np.bool_)
        if stream in self.below:
            word, at = self.below[stream]
            broken |= (arrivals.keys < word) & (arrivals.ts >= at)
        if stream in self.ranges:
            broken |= self.ranges[stream].at(_comparable(key[0], kinds[0])) <= arrivals.ts
        for closing in self.patterns:
            if closing.stream == stream:
                broken |= closing.matches(key, kinds) & (arrivals.ts >= closing.at)
        return np.flatnonzero(broken)

    def of_keys(
        self, words: Words, key: Sequence[pa.Array], kinds: Sequence[KeyKind]
    ) -> Iterator[Closing]:
        """What is promised about these keys."""
        for stream, (word, at) in self.below.items():
            below = words < word
            if below.any():
                yield _closing(stream, words, key, below, at)
        for stream, ranges in self.ranges.items():
            closed = ranges.at(_comparable(key[0], kinds[0]))
            yield Closing(stream, words, key, closed).taken(np.flatnonzero(closed < NEVER))
        for closing in self.patterns:
            yield _closing(closing.stream, words, key, closing.matches(key, kinds), closing.at)

    def save(self, types: Sequence[Sequence[pa.DataType] | None]) -> Mapping[str, pa.Table]:
        """Everything in it, in tables. types: of the columns of each stream's key."""
        below = [(stream, *reached) for stream, reached in self.below.items()]
        tables = {
            "below": pa.table(
                {
                    name: pa.array([each[at] for each in below], pa.int64())
                    for at, name in enumerate(("stream", "word", "at"))
                }
            )
        }
        for stream, ranges in self.ranges.items():
            tables[f"ranges {stream}"] = ranges.save(_known(types[stream])[0])
        for number, closing in enumerate(self.patterns):
            columns: dict[str, Any] = {"stream": [closing.stream], "at": [closing.at]}
            kinds = _known(types[closing.stream])
            for at, (name, kind) in enumerate(zip(closing.pattern.columns, kinds, strict=True)):
                what, values = _plain(closing.pattern.values, name)
                columns[f"what {at}"] = [what]
                columns[f"values {at}"] = pa.array([values], pa.list_(kind))
            tables[f"wide {number:05}"] = pa.table(columns)
        return tables

    def load(self, saved: Mapping[str, pa.Table], keys: Sequence[Sequence[str]]) -> None:
        """What was saved. keys: the columns of each stream's key."""
        for row in saved["below"].to_pylist():
            self.below[row["stream"]] = row["word"], row["at"]
        for stream in range(len(keys)):
            if f"ranges {stream}" in saved:
                self.ranges[stream] = ClosedRanges.load(saved[f"ranges {stream}"])
        for name in sorted(each for each in saved if each.startswith("wide ")):
            (row,) = saved[name].to_pylist()
            columns = keys[row["stream"]]
            values = {
                column: _value(row[f"what {at}"], row[f"values {at}"])
                for at, column in enumerate(columns)
                if row[f"what {at}"] != "any"
            }
            self.patterns.append(WideClosing(row["stream"], Pattern(columns, values), row["at"]))


def _known(types: Sequence[pa.DataType] | None) -> Sequence[pa.DataType]:
    assert types is not None, "a stream that promises is known"
    return types


def _closing(
    stream: int, words: Words, key: Sequence[pa.Array], matching: Flags, at: int
) -> Closing:
    return Closing(stream, words, key, np.full(len(words), at)).taken(np.flatnonzero(matching))


def _plain(values: Mapping[str, Any], name: str) -> tuple[str, list[Any]]:
    if name not in values:
        return "any", []
    value = values[name]
    if isinstance(value, Range):
        return "range", [value.low, value.high]
    return ("values", list(value.values)) if isinstance(value, OneOf) else ("value", [value])


def _value(what: str, values: list[Any]) -> Any:
    if what == "value":
        return values[0]
    return Range(*values) if what == "range" else OneOf(values)
