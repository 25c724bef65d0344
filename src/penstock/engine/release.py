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

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals, Intake
from penstock.engine.promises.marked_rows import Marked
from penstock.engine.residual import holds
from penstock.engine.words import tuple_words
from penstock.kernels.arena import Flags, Words
from penstock.model.binding import Binding
from penstock.model.window import ALWAYS
from penstock.windows.payload.storage import as_kept, take_rows

__all__ = ["Breaks", "Released", "alone_in", "release", "taken_back"]


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


Breaks = Callable[[int, Arrivals], Flags]


def alone_in(released: Mapping[int, Released]) -> dict[int, Arrivals]:
    """Those of all streams that come out without having been in a window."""
    return {s: each.alone for s, each in released.items() if each.alone is not None}


def release(
    binding: Binding, stream: int, intake: Intake, watermark: int, breaks: Breaks | None = None
) -> Released:
    """Split a batch of one stream at the watermark and order what is in time.

    breaks: which arrivals, in any order, break a promise.
    """
    batch, ts, late = intake.batch, intake.ts, None
    if intake.earliest < watermark:
        behind = ts < watermark
        late = take_rows(batch, np.flatnonzero(behind))
        batch, ts = take_rows(batch, np.flatnonzero(~behind)), ts[~behind]
    filtered = 0
    begin = binding.query.windows[stream].begin_us
    if begin > ALWAYS and intake.earliest < begin:
        after = ts >= begin
        filtered = int(len(ts) - after.sum())
        batch, ts = take_rows(batch, np.flatnonzero(after)), ts[after]
    if binding.query.filters and not (kept := _pass(binding, stream, batch)).all():
        filtered += int(len(ts) - kept.sum())
        batch, ts = take_rows(batch, np.flatnonzero(kept)), ts[kept]
    columns = {name: as_kept(batch.column(name)) for name in binding.kept[stream]}
    words, keyed, ordered = tuple_words(binding, stream, columns, len(ts))
    arrivals = Arrivals(ts, words, columns)
    keyless, alone, broken = 0, None, None
    if breaks is not None and len(ts):
        heard = None if keyed is None or keyed.all() else np.flatnonzero(keyed)
        bad = np.flatnonzero(breaks(stream, arrivals if heard is None else arrivals.take(heard)))
        bad = bad if heard is None else heard[bad]
        if len(bad):
            broken = take_rows(batch, bad)
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


def taken_back(
    binding: Binding, stream: int, ts: Words, columns: Mapping[str, pa.Array]
) -> Arrivals:
    """Tuples that were saved, as they were when they had been released."""
    words, keyed, _ = tuple_words(binding, stream, columns, len(ts))
    mute = ~keyed if binding.query.counts and keyed is not None else None
    return Arrivals(ts, words, columns, mute)


def _pass(binding: Binding, stream: int, batch: pa.RecordBatch) -> Flags:
    """Which rows hold all predicates over their stream alone, and over none."""
    kept = np.ones(len(batch), np.bool_)
    for predicate in binding.query.filters_of(stream):
        kept &= holds(
            predicate, lambda _, name: as_kept(batch.column(name)), len(batch), binding.schemas
        )
    return kept
