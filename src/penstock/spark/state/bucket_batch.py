"""One batch through the engine of a bucket: what of it is in time, what it promises, what it joins.

Rows come in any order. So that what breaks a promise does not depend on it, those of a stream that
promises something are put in the order of their contents first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals, Intake
from penstock.engine.intake import event_times
from penstock.engine.promises.promises import Promise, Promises
from penstock.engine.promises.told import Propagated
from penstock.engine.release import Released, alone_in, closings_in, release, release_all
from penstock.model.binding import Binding
from penstock.runtime.promised import check_kept
from penstock.spark.rows.shared_rows import has_shared_rows, patterns_in, tuples_in
from penstock.spark.state.bucket_engine import BucketEngine
from penstock.windows.contents import by_contents
from penstock.windows.payload.storage import take_rows

__all__ = ["Batch", "BatchStep", "intake_of", "kept", "take_batch"]


class Batch(NamedTuple):
    """What came to a bucket: rows that stay in it, and what it is to know of others."""

    bucket: int
    home: Mapping[int, Sequence[pa.RecordBatch]]
    others: Mapping[int, Sequence[pa.RecordBatch]]


class BatchStep(NamedTuple):
    """What became of a batch. arrivals: of those that stay. over: keys that are over since then.
    discarded, purged: tuples that promises let go."""

    results: pa.Table
    released: Mapping[int, Released]
    arrivals: Mapping[int, Arrivals]
    over: Sequence[Propagated] = ()
    discarded: int = 0
    purged: int = 0


def take_batch(engine: BucketEngine, batch: Batch, late_before: int, watermark: int) -> BatchStep:
    """Join a batch. late_before: what is before it is late. watermark: of when it is over."""
    binding, promises = engine.driver.binding, engine.driver.promises
    query, plan = binding.query, engine.driver.windows.plan
    closings: list[Promise] = []
    if promises is not None:
        closings = _heard(binding, promises, batch, late_before)
    intakes = {stream: intake_of(binding, stream, parts) for stream, parts in batch.home.items()}
    released = release_all(binding, intakes, late_before, promises)
    if plan.promising.refuses:
        check_kept(query, released)
    arrivals = {s: kept(binding, s, each.arrivals) for s, each in released.items()}
    everyone = arrivals if query.keys[0] else _with_guests(binding, arrivals, batch, late_before)
    before = _gone(promises)
    closings += closings_in(released)
    results = engine.run(everyone, watermark, alone_in(released), closings)
    if promises is None:
        return BatchStep(results, released, arrivals)
    discarded, purged = np.subtract(_gone(promises), before).tolist()
    return BatchStep(results, released, arrivals, promises.told.drained(), discarded, purged)


def _gone(promises: Promises | None) -> tuple[int, int]:
    return (0, 0) if promises is None else (sum(promises.discarded), sum(promises.purged))


def _heard(binding: Binding, promises: Promises, batch: Batch, late_before: int) -> list[Promise]:
    """Take note of what comes elsewhere; what is promised there about keys of all buckets."""
    closings: list[Promise] = []
    for stream, parts in batch.others.items():
        if not has_shared_rows(binding, stream):
            continue
        shared = pa.concat_batches(parts)
        there = tuples_in(binding, stream, shared, batch.bucket, late_before)
        if len(there):
            promises.derived.hear(binding, stream, there)
        closings += patterns_in(binding, stream, shared, batch.bucket)
    return closings


def _with_guests(
    binding: Binding, arrivals: Mapping[int, Arrivals], batch: Batch, late_before: int
) -> dict[int, Arrivals]:
    """Arrivals by stream, with the guests among them that came in these blobs."""
    everyone = dict(arrivals)
    for stream, parts in batch.others.items():
        others = release(binding, stream, intake_of(binding, stream, parts), late_before).arrivals
        home = everyone.get(stream, others.slice(0, 0))
        everyone[stream] = home.with_guests(others)
    return everyone


def intake_of(binding: Binding, stream: int, parts: Sequence[pa.RecordBatch]) -> Intake:
    """The rows of a stream that came in several blobs."""
    batch = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
    intake = event_times(binding.query, stream, batch)
    return _in_contents_order(intake) if binding.query.streams[stream].promised else intake


def _in_contents_order(intake: Intake) -> Intake:
    order = np.argsort(intake.ts, kind="stable")
    rows, ts = take_rows(intake.batch, order), intake.ts[order]
    tied = by_contents(ts, dict(zip(rows.schema.names, rows.columns, strict=True)))
    return intake._replace(batch=rows if tied is None else take_rows(rows, tied), ts=ts)


def kept(binding: Binding, stream: int, arrivals: Arrivals) -> Arrivals:
    """Those that are more than a row without a key that nobody counts."""
    query = binding.query
    if query.keeps_keyless(stream) or query.counts_arrivals:
        return arrivals
    return arrivals.with_keys()
