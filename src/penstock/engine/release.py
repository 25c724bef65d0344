"""The release stage: from a batch to arrivals that may enter the loop.

Over time windows nothing has to wait: a combination is complete as soon as its tuples are
there. What is behind the watermark is late and set aside; what is before the begin of its
window, fails a predicate over its stream alone, or has no key, can meet nothing and goes no
further; the rest is put in order of time. If the join gives out what meets nothing, a tuple
without a key comes out at once.
If windows count rows or arrivals, tuples without a key count too and are passed on as mute;
`engine.gate` then says when tuples may go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals, Intake
from penstock.engine.promises.marked_rows import Marked, split
from penstock.engine.promises.promises import Promise, Promises
from penstock.engine.residual import holds
from penstock.engine.words import tuple_words
from penstock.kernels.arena import Flags, Words
from penstock.model.binding import Binding
from penstock.model.window import ALWAYS
from penstock.windows.payload.storage import as_kept, take_rows

__all__ = [
    "Breaks",
    "Released",
    "alone_in",
    "closings_in",
    "passes",
    "release",
    "release_all",
    "taken_back",
]


class Released(NamedTuple):
    """arrivals: for the loop. late: rows behind the watermark, None when there are none.
    keyless: how many in time had a null or NaN for a key, or for what is compared by order, and go
    no further. filtered: how many in time were before the begin of their window, or failed a
    predicate. alone: those without a key, if what matches nothing comes out. broken: rows in time
    that their stream had promised not to bring. marked: its punctuations, once they are known."""

    arrivals: Arrivals
    late: pa.RecordBatch | None
    keyless: int
    filtered: int
    alone: Arrivals | None = None
    broken: pa.RecordBatch | None = None
    marked: Marked | None = None


Breaks = Callable[[int, Arrivals], Words]


def alone_in(released: Mapping[int, Released]) -> dict[int, Arrivals]:
    """Those of all streams that come out without having been in a window."""
    return {s: each.alone for s, each in released.items() if each.alone is not None}


def closings_in(released: Mapping[int, Released]) -> list[Promise]:
    """What the punctuations of all streams promise."""
    marked = [each.marked for each in released.values() if each.marked is not None]
    return [closing for each in marked for closing in each.closings]


def release_all(
    binding: Binding, intakes: Mapping[int, Intake], watermark: int, promises: Promises | None
) -> dict[int, Released]:
    """Release a batch of each stream, in which punctuations may be, and what breaks promises."""
    released: dict[int, Released] = {}
    breaks: Breaks | None = None
    if promises is not None:
        promises.derived.look_at_next()
    for stream in intakes if promises is None else promises.derived.sources_first(intakes):
        if promises is not None:
            before = {each: other.arrivals for each, other in released.items()}
            breaks = partial(promises.broken, binding, before)
        intake = intakes[stream]
        marked = split(binding, stream, intake)
        of_stream = release(binding, stream, intake, watermark, breaks, marked.tuples)
        released[stream] = of_stream._replace(marked=marked)
    return released


def release(
    binding: Binding,
    stream: int,
    intake: Intake,
    watermark: int,
    breaks: Breaks | None = None,
    tuples: Words | None = None,
) -> Released:
    """Split a batch of one stream at the watermark and order what is in time.

    breaks: which arrivals, in any order, break a promise. tuples: the rows of the batch that are
    tuples, if not all are.
    """
    batch, rows = intake.batch, tuples  # rows: of the batch, that go on; None for all
    ts, late = intake.ts if rows is None else intake.ts[rows], None
    if intake.earliest < watermark:
        behind = ts < watermark
        late = take_rows(batch, _chosen(rows, behind))
        rows, ts = _chosen(rows, ~behind), ts[~behind]
    filtered = 0
    begin = binding.query.windows[stream].begin_us
    if begin > ALWAYS and intake.earliest < begin:
        after = ts >= begin
        filtered = int(len(ts) - after.sum())
        rows, ts = _chosen(rows, after), ts[after]
    if binding.query.filters:
        kept = passes(binding, stream, batch if rows is None else take_rows(batch, rows))
        if not kept.all():
            filtered += int(len(ts) - kept.sum())
            rows, ts = _chosen(rows, kept), ts[kept]
    columns = _columns(batch, binding.kept[stream], rows)
    words, keyed, ordered = tuple_words(binding, stream, columns, len(ts))
    arrivals = Arrivals(ts, words, columns)
    keyless, alone, broken = 0, None, None
    if breaks is not None and len(ts):
        heard = None if keyed is None or keyed.all() else np.flatnonzero(keyed)
        bad = breaks(stream, arrivals if heard is None else arrivals.take(heard))
        bad = bad if heard is None else heard[bad]
        if len(bad):
            broken = take_rows(batch, bad if rows is None else rows[bad])
            good = np.delete(np.arange(len(ts)), bad)
            arrivals, ts = arrivals.take(good), ts[good]
            keyed = None if keyed is None else keyed[good]
            ordered = None if ordered is None else ordered[good]
    if keyed is not None:
        keyless = int(len(ts) - keyed.sum())
        if keyless and stream in binding.query.preserved:
            alone = arrivals.take(np.flatnonzero(~keyed))
        if binding.query.counts:
            arrivals = replace(arrivals, mute=~keyed)
        else:
            arrivals = arrivals.take(np.flatnonzero(keyed))
            ordered = None if ordered is None else ordered[keyed]
    comes_out = stream in binding.query.preserved
    if ordered is not None and not comes_out and not binding.query.counts:
        # What has no place in an order meets nothing; where it comes out alone, it waits.
        keyless += int(len(ordered) - ordered.sum())
        arrivals = arrivals.take(np.flatnonzero(ordered))
    return Released(arrivals.in_time_order(), late, keyless, filtered, alone, broken)


def _chosen(rows: Words | None, which: Flags) -> Words:
    """Some of the rows of a batch that have been chosen so far."""
    return np.flatnonzero(which) if rows is None else rows[which]


def _columns(
    batch: pa.RecordBatch, names: Sequence[str], rows: Words | None
) -> dict[str, pa.Array]:
    """Columns of a batch as they are kept, of rows that go on."""
    columns = {name: as_kept(batch.column(name)) for name in names}
    if rows is None:
        return columns
    chosen = pa.array(rows)
    return {name: column.take(chosen) for name, column in columns.items()}


def taken_back(
    binding: Binding, stream: int, ts: Words, columns: Mapping[str, pa.Array]
) -> Arrivals:
    """Tuples that were saved, as they were when they had been released."""
    words, keyed, _ = tuple_words(binding, stream, columns, len(ts))
    mute = ~keyed if binding.query.counts and keyed is not None else None
    return Arrivals(ts, words, columns, mute)


def passes(binding: Binding, stream: int, batch: pa.RecordBatch) -> Flags:
    """Which rows hold all predicates over their stream alone, and over none."""
    kept = np.ones(len(batch), np.bool_)
    for predicate in binding.query.filters_of(stream):
        kept &= holds(
            predicate, lambda _, name: as_kept(batch.column(name)), len(batch), binding.schemas
        )
    return kept
