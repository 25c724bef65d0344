"""Windows of time that are not all of one length: the tuple's own, or changing as time goes on.

A window that becomes shorter ends tuples for good, as `join.resize` does: a tuple is in its window
at a time when it was at all times before, since it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from penstock.errors import InputError, QueryError, SchemaError
from penstock.kernels.arena import Words
from penstock.lab.optimum.step_function import StepFunction, parse_steps
from penstock.model.duration import MAX_DURATION_US
from penstock.model.query import Query
from penstock.model.window import ALWAYS, FOREVER, TimeWindow, parse_window

__all__ = ["Lengths", "parse_lengths"]


@dataclass(frozen=True)
class Lengths:
    """own_us: the length of each row's window; or steps: the length from each time on."""

    own_us: Words | None = None
    steps: StepFunction | None = None

    @property
    def longest_us(self) -> int:
        """The greatest of them."""
        lengths = self.own_us if self.steps is None else self.steps.values
        return int(lengths.max(initial=0)) if lengths is not None else 0

    def ends(self, ts: Words, row: Words) -> Words:
        """The last time at which each tuple is in its window."""
        if self.own_us is not None:
            return ts + self.own_us[row]
        if self.steps is None:
            raise AssertionError("lengths are of tuples or of times")
        ends = np.full(len(ts), -1, np.int64)
        is_open = np.ones(len(ts), np.bool_)  # so far it was in its window at all times
        begins, lengths = self.steps
        for number, length in enumerate(lengths):
            begin = begins[number]
            end = begins[number + 1] if number + 1 < len(begins) else FOREVER
            here = is_open & (ts < end)  # it has come before the step is over
            gone_before = here & (np.maximum(ts, begin) > ts + length)
            ends[gone_before] = begin - 1
            gone_within = here & ~gone_before & (ts + length < end - 1)
            ends[gone_within] = ts[gone_within] + length
            is_open &= ~(gone_before | gone_within)
        return ends


def parse_lengths(query: Query, tables: Mapping[str, pa.Table], windows: Any) -> dict[str, Lengths]:
    """By stream, from the name of a column, or from times and windows."""
    if windows is None:
        return {}
    if not isinstance(windows, Mapping):
        raise InputError(
            "windows must be a mapping from streams to a column, or to times and windows, got "
            f"{windows!r}; write for example {{{query.names[0]!r}: 'length'}}"
        )
    return {name: _lengths(query, tables, name, given) for name, given in windows.items()}


def _lengths(query: Query, tables: Mapping[str, pa.Table], name: str, given: Any) -> Lengths:
    stream = query.position(name)
    window = query.windows[stream]
    what = f"windows= of stream {name!r}"
    if not isinstance(window, TimeWindow):
        raise QueryError(
            f"{what} is for a window of time, and its window is {str(window)!r}; leave it out"
        )
    if isinstance(given, str):
        return Lengths(own_us=_own_lengths(tables[name], name, given))
    if not isinstance(given, Sequence):
        raise InputError(
            f"{what} must name a column, or be a list of times and windows, got {given!r}"
        )
    steps = parse_steps(given, what, lambda each: _length_us(each, what))
    # Before the first of them the window is that of the query.
    begins = np.concatenate([[ALWAYS], steps.begins])
    return Lengths(steps=StepFunction(begins, np.concatenate([[window.us], steps.values])))


def _length_us(given: Any, what: str) -> int:
    window = parse_window(given, what)
    if not isinstance(window, TimeWindow):
        raise QueryError(f"{what} must have windows of time, got {str(window)!r}")
    return window.us


def _own_lengths(table: pa.Table, name: str, column: str) -> Words:
    what = f"windows= of stream {name!r} needs column {column!r}, which"
    if column not in table.column_names:
        raise SchemaError(f"{what} is not there; its columns are {table.column_names}")
    lengths = table[column].combine_chunks()
    if lengths.null_count:
        raise InputError(f"{what} has {lengths.null_count:,} nulls; fill them with a length")
    if not pt.is_duration(lengths.type) and not pt.is_integer(lengths.type):
        raise SchemaError(f"{what} has type {lengths.type}; give whole microseconds, or a duration")
    try:
        if pt.is_duration(lengths.type):
            lengths = lengths.cast(pa.duration("us"))
        own: Words = lengths.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise InputError(f"{what} does not fit: {error}; give whole microseconds") from None
    if len(own) and (own.min() < 0 or own.max() > MAX_DURATION_US):
        worst = own.min() if own.min() < 0 else own.max()
        raise InputError(f"{what} has a length of {worst:,} microseconds; give 0 to 10,000 years")
    return own
