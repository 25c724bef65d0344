"""A bucket: the share of the join that one group of keys makes, one batch after another.

A step reads the manifest, gets the windows from the hot state or fills them from segments,
joins the batch, writes segments and manifest, and offers the windows as hot state again.
Everything a step depends on is in the store; everything it changes there is written before
it returns. So a step that fails, is repeated, or runs twice at once leaves what the store
commits: the answer does not depend on which attempt that is.

The watermark is the query's, the same for all buckets. It is the one at the start of the
batch, both for what is late and for what expires. If tuples wait for their turn, it is also
the one that lets them go: all that go were committed by earlier batches, for what comes now and
is not late has its turn after it.

In a join without a key every bucket gets all rows. Each stays in one bucket, its home, and is a
guest in the others: it is joined there with what stays, and then forgotten. What is written and
counted of a row, and given out because it is late, is at home only. Of two rows the later finds
the other where that one stays: later in the batch by time and stream, or in a later batch. So that
all buckets agree on it, a step is a whole batch, which Spark hands to a bucket in one call.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.engine.promises.told import Propagated
from penstock.engine.release import Released, release
from penstock.kernels.arena import Words
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.model.counters import BucketCounts
from penstock.model.plan import Plan
from penstock.model.window import FOREVER
from penstock.shedding.shedder import Shedder
from penstock.spark.bucket_count import spread_names
from penstock.spark.state.bucket_batch import Batch, intake_of, kept, take_batch
from penstock.spark.state.cold_state import ColdState
from penstock.spark.state.hot import HotState
from penstock.spark.state.manifest import Manifest, Store
from penstock.spark.state.segment_bytes import table_of
from penstock.spark.state.segments import Segments

__all__ = ["Bucket", "BucketStep"]

_NO_OTHERS: Final[Mapping[int, Sequence[pa.RecordBatch]]] = {}


@dataclass(frozen=True)
class BucketStep:
    """What one batch brought to a bucket.

    results: the joined rows. released: the rows of each stream, those that are late or break a
    promise among them. over: keys that are over since. discarded, purged: tuples that promises let
    go. rebuilt: whether the windows had to be filled from segments.

    Under limits, ghosts: how many it has. shed, lost, lost_variance: what this step adds to the
    tuples that were shed, to the results lost without them, and to the variance of these; None
    when they are not counted. unprobed: to the tuples that did not look for partners.
    """

    results: pa.Table
    released: Mapping[int, Released]
    over: Sequence[Propagated]
    discarded: int
    purged: int
    manifest: Manifest
    live: int
    bytes: int
    rebuilt: bool
    ghosts: int = 0
    shed: int = 0
    lost: float | None = 0.0
    lost_variance: float | None = 0.0
    unprobed: int = 0

    @property
    def late(self) -> dict[int, pa.RecordBatch]:
        """Rows behind the watermark, by stream."""
        return {s: each.late for s, each in self.released.items() if each.late is not None}

    @property
    def broken(self) -> dict[int, pa.RecordBatch]:
        """Rows that their stream had promised not to bring, by stream."""
        return {s: each.broken for s, each in self.released.items() if each.broken is not None}

    @property
    def counts(self) -> BucketCounts:
        """What Spark sums up of it."""
        marked = [each.marked for each in self.released.values() if each.marked is not None]
        return BucketCounts(
            produced=self.results.num_rows,
            late=sum(len(rows) for rows in self.late.values()),
            live=self.live,
            bytes=self.bytes,
            rebuilt=int(self.rebuilt),
            lost=self.lost,
            lost_variance=self.lost_variance,
            shed=self.shed,
            ghosts=self.ghosts,
            unprobed=self.unprobed,
            punctuations=sum(each.rows for each in marked),
            unusable=sum(each.unusable for each in marked),
            broken=sum(len(rows) for rows in self.broken.values()),
            discarded=self.discarded,
            purged=self.purged,
            propagated=sum(len(each.at) for each in self.over),
        )


class Bucket:
    """Works on buckets of one query, one at a time."""

    def __init__(
        self, binding: Binding, plan: Plan, hot: HotState, division: tuple[int, int] = (1, 1)
    ) -> None:
        self._division = division  # how many buckets there are, over how many partitions
        self._binding = binding
        self._plan = plan
        self._hot = hot

    def step(
        self,
        bucket: str,
        store: Store,
        batches: Mapping[int, Sequence[pa.RecordBatch]],
        watermark: int,
        others: Mapping[int, Sequence[pa.RecordBatch]] = _NO_OTHERS,
    ) -> BucketStep:
        """Join one batch, whose rows have the columns of blobs, into a bucket.

        others: what it is to know of rows that stay in other buckets.
        """
        manifest, is_new = self._manifest(store)
        plan = self._plan_of(bucket)
        watermark = max(manifest.watermark, watermark)
        hot = None if is_new else self._hot.claim(bucket, manifest.token, self._binding, plan)
        rebuilt = hot is None and manifest.token != ""
        engine = hot or self._hot.make(self._binding, plan)
        cold = ColdState(engine, store, manifest)
        if hot is None:
            cold.restore(watermark)
        manifest.watermark = watermark
        engine.gate.numbered = manifest.numbered
        produced = engine.driver.produced
        done = take_batch(engine, Batch(int(bucket), batches, others), watermark, watermark)
        manifest.produced += engine.driver.produced - produced
        manifest.numbered = engine.gate.numbered
        for stream, each in done.released.items():
            manifest.arrived[stream] += sum(len(part) for part in batches[stream])
            manifest.late[stream] += 0 if each.late is None else len(each.late)
            cold.append(stream, done.arrivals[stream])
        was = replace(manifest)
        cold.settle()
        self._set_timer(store, manifest, engine.earliest)
        manifest.token = secrets.token_hex(16)
        store.write_manifest(manifest.pack())
        windows = engine.driver.windows
        live = sum(windows.live(stream) for stream in range(windows.streams))
        held = windows.state_bytes + windows.payload_bytes
        gone = (done.over, done.discarded, done.purged)
        step = BucketStep(done.results, done.released, *gone, manifest, live, held, rebuilt)
        if engine.driver.shedder.limits is not None:
            step = _with_losses(step, was, engine.driver.shedder)
        self._hot.publish(bucket, manifest.token, engine)
        return step

    def _plan_of(self, bucket: str) -> Plan:
        """That of one bucket, which under limits has a share of them."""
        if self._plan.limits is None:
            return self._plan
        names = spread_names(*self._division)
        limits = self._plan.limits.share(names.index(int(bucket)), len(names))
        return replace(self._plan, limits=limits)

    def wake(self, bucket: str, store: Store, watermark: int) -> BucketStep | None:
        """The step of a timer; None when a step at this watermark has seen to everything."""
        data = store.read_manifest()
        if data is not None:
            manifest = Manifest.unpack(data, self._binding, self._division)
            if manifest.token and manifest.watermark >= watermark:
                return None
        return self.step(bucket, store, {}, watermark)

    def begin(
        self,
        store: Store,
        batches: Mapping[int, Sequence[pa.RecordBatch]],
        newest: Mapping[int, int],
    ) -> None:
        """Take in history, as tuples of a batch whose results are known already.

        newest: the newest times of the whole history by stream, the same in all buckets.
        History may come in parts; then what its parts say together holds.
        """
        manifest, _ = self._manifest(store)
        for stream, ts in newest.items():
            lateness = self._binding.query.streams[stream].lateness_us
            manifest.reached[stream] = max(manifest.reached[stream], ts - lateness)
        # A stream without history has reached nothing, and nothing is late yet.
        manifest.watermark = min(manifest.reached)
        earliest = []
        for stream, parts in batches.items():
            intake = intake_of(self._binding, stream, parts)
            arrivals = release(self._binding, stream, intake, BEGINNING).arrivals
            manifest.arrived[stream] += sum(len(part) for part in parts)
            arrivals = kept(self._binding, stream, arrivals)
            begin = self._first_needed(stream, manifest.watermark)
            needed = arrivals.slice(int(np.searchsorted(arrivals.ts, begin)), len(arrivals))
            segments = Segments(self._binding, store, manifest, stream)
            segments.append([table_of(needed.ts, needed.columns)])
            earliest += self._first_due(stream, needed.ts[:1], manifest.watermark)
        self._set_timer(store, manifest, min(earliest, default=None))
        store.write_manifest(manifest.pack())

    def _first_needed(self, stream: int, watermark: int) -> int:
        """The time from which on tuples of a history are still in their window, or show which of
        the other stream's that are have matched."""
        query = self._binding.query
        window = query.windows[stream]
        needed = [window.oldest(watermark)]
        needed += [
            window.oldest(query.windows[other].oldest(watermark))
            for other in query.marked
            if other != stream
        ]
        return max(BEGINNING, min(needed))

    def _first_due(self, stream: int, first: Words, watermark: int) -> list[int]:
        """The time that the watermark must be past for something to happen to the first tuple."""
        query = self._binding.query
        if query.counts:
            return [int(ts) for ts in first]
        if stream not in query.preserved:
            return []
        return [max(query.windows[stream].ends(int(ts)), watermark) for ts in first]

    def _manifest(self, store: Store) -> tuple[Manifest, bool]:
        data = store.read_manifest()
        if data is None:
            return Manifest.of(self._binding, self._division), True
        return Manifest.unpack(data, self._binding, self._division), False

    def _set_timer(self, store: Store, manifest: Manifest, earliest: int | None) -> None:
        """Have the bucket woken, in case nothing comes: when the first that waits has its turn or
        the first that may come out alone has expired, else when all that it holds now has."""
        if manifest.timer is not None and manifest.timer <= manifest.watermark:
            manifest.timer = None
        if earliest is not None:
            moment = earliest + 1
            if manifest.timer is None or moment < manifest.timer:
                manifest.timer = moment
                store.wake_at(moment)
            return
        windows = self._binding.query.windows
        ends = [
            window.ends(segment.newest)
            for window, segments in zip([*windows, *windows], manifest.segments, strict=True)
            for segment in segments
            if window.length_us < FOREVER
        ]
        if ends and manifest.timer is None:
            manifest.timer = max(ends) + 1
            store.wake_at(manifest.timer)


def _with_losses(step: BucketStep, was: Manifest, shedder: Shedder) -> BucketStep:
    """The same, with what it adds to the losses there were."""
    now = step.manifest
    is_counted = shedder.limits.loss != "off"
    return replace(
        step,
        ghosts=shedder.ghosts.held,
        shed=now.shed - was.shed,
        unprobed=now.unprobed - was.unprobed,
        lost=now.lost - was.lost if is_counted else None,
        lost_variance=now.lost_variance - was.lost_variance if is_counted else None,
    )
