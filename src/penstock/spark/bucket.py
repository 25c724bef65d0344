"""A bucket: the share of the join that one group of keys makes, one batch after another.

A step reads the manifest, gets the windows from the hot state or fills them from segments,
joins the batch, writes segments and manifest, and offers the windows as hot state again.
Everything a step depends on is in the store; everything it changes there is written before
it returns. So a step that fails, is repeated, or runs twice at once leaves what the store
commits: the answer does not depend on which attempt that is.

The watermark is the query's, the same for all buckets. It is the one at the start of the
batch, both for what is late and for what expires.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals
from penstock.engine.clock import BEGINNING
from penstock.engine.driver import Driver
from penstock.engine.release import Released, release
from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.model.window import FOREVER
from penstock.runtime.intake import event_times
from penstock.spark.cold import Manifest, Segment, Store, read_segment, write_segment
from penstock.spark.hot import HotState

__all__ = ["MANY_SEGMENTS", "Bucket", "Step", "release_parts"]

MANY_SEGMENTS: Final = 24  # of a stream; beyond it, neighbours of like size become one


@dataclass(frozen=True)
class Step:
    """What one batch brought to a bucket.

    results: the joined rows. late: rows behind the watermark, by stream. rebuilt: whether
    the windows had to be filled from segments.
    """

    results: pa.Table
    late: Mapping[int, pa.RecordBatch]
    manifest: Manifest
    live: int
    bytes: int
    rebuilt: bool


def release_parts(
    binding: Binding, stream: int, parts: Sequence[pa.RecordBatch], watermark: int
) -> Released:
    """The arrivals of a stream that came in several blobs."""
    batch = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
    return release(binding, stream, event_times(binding.query, stream, batch), watermark)


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
    ) -> Step:
        """Join one batch, whose rows have the columns of blobs, into a bucket."""
        manifest, is_new = self._manifest(store)
        watermark = manifest.watermark = max(manifest.watermark, watermark)
        released = {
            stream: release_parts(self._binding, stream, parts, watermark)
            for stream, parts in batches.items()
        }
        driver = None
        if not is_new:
            driver = self._hot.claim(bucket, manifest.token, self._binding, self._plan)
        rebuilt = driver is None and manifest.token != ""
        if driver is None:
            driver = self._fill(store, manifest, watermark)
        before = driver.produced
        results = driver.run({s: each.arrivals for s, each in released.items()}, watermark)
        manifest.produced += driver.produced - before
        for stream, each in released.items():
            manifest.arrived[stream] += sum(len(part) for part in batches[stream])
            manifest.late[stream] += 0 if each.late is None else len(each.late)
            self._append(store, manifest, stream, each.arrivals)
        self._forget(store, manifest, watermark)
        for stream in range(len(manifest.segments)):
            self._merge(store, manifest, stream)
        self._set_timer(store, manifest, watermark)
        manifest.token = secrets.token_hex(16)
        store.write_manifest(manifest.pack())
        live = sum(driver.windows.live(stream) for stream in range(len(manifest.segments)))
        held = driver.windows.state_bytes + driver.windows.payload_bytes
        self._hot.publish(bucket, manifest.token, driver)
        late_rows = {s: each.late for s, each in released.items() if each.late is not None}
        return Step(results, late_rows, manifest, live, held, rebuilt)

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
        for stream, parts in batches.items():
            arrivals = release_parts(self._binding, stream, parts, BEGINNING).arrivals
            manifest.arrived[stream] += sum(len(part) for part in parts)
            self._append(store, manifest, stream, self._alive(stream, arrivals, manifest.watermark))
        self._set_timer(store, manifest, manifest.watermark)
        store.write_manifest(manifest.pack())

    def _alive(self, stream: int, arrivals: Arrivals, watermark: int) -> Arrivals:
        begin = self._binding.query.windows[stream].oldest(watermark)
        return arrivals.slice(int(np.searchsorted(arrivals.ts, begin)), len(arrivals))

    def _manifest(self, store: Store) -> tuple[Manifest, bool]:
        data = store.read_manifest()
        if data is None:
            return Manifest.of(self._binding, self._division), True
        return Manifest.unpack(data, self._binding, self._division), False

    def _fill(self, store: Store, manifest: Manifest, watermark: int) -> Driver:
        """The windows, from segments."""
        driver = self._hot.make(self._binding, self._plan)
        for stream, segments in enumerate(manifest.segments):
            for segment in segments:
                arrivals = self._read(store, stream, segment, watermark)
                if len(arrivals):
                    driver.refill(stream, arrivals)
        return driver

    def _read(self, store: Store, stream: int, segment: Segment, watermark: int) -> Arrivals:
        """The tuples of a segment that have not expired."""
        after = self._binding.query.windows[stream].oldest(watermark)
        data = store.read_segment(stream, segment.number)
        return read_segment(self._binding, stream, data, after)

    def _append(self, store: Store, manifest: Manifest, stream: int, arrivals: Arrivals) -> None:
        if len(arrivals):
            newest = int(arrivals.ts[-1])  # arrivals are in order of time
            segment = self._written(store, manifest, stream, arrivals, newest)
            manifest.segments[stream].append(segment)

    def _written(
        self, store: Store, manifest: Manifest, stream: int, arrivals: Arrivals, newest: int
    ) -> Segment:
        number = manifest.next_segment
        manifest.next_segment += 1
        store.write_segment(stream, number, write_segment(arrivals.ts, arrivals.columns))
        return Segment(number, len(arrivals), newest)

    def _forget(self, store: Store, manifest: Manifest, watermark: int) -> None:
        """Remove the segments whose tuples have all expired."""
        for stream, segments in enumerate(manifest.segments):
            window = self._binding.query.windows[stream]
            gone = [each for each in segments if window.ends(each.newest) < watermark]
            for segment in gone:
                store.remove_segment(stream, segment.number)
            if gone:
                manifest.segments[stream] = [each for each in segments if each not in gone]

    def _set_timer(self, store: Store, manifest: Manifest, watermark: int) -> None:
        """Have the bucket woken when all it holds now has expired, in case nothing comes."""
        if manifest.timer is not None and manifest.timer <= watermark:
            manifest.timer = None
        ends = [
            window.ends(segment.newest)
            for segments, window in zip(manifest.segments, self._binding.query.windows, strict=True)
            for segment in segments
            if window.length_us < FOREVER
        ]
        if ends and manifest.timer is None:
            manifest.timer = max(ends) + 1
            store.wake_at(manifest.timer)

    def _merge(self, store: Store, manifest: Manifest, stream: int) -> None:
        """Write the two neighbours with the fewest rows as one, while there are too many."""
        segments = manifest.segments[stream]
        while len(segments) > MANY_SEGMENTS:
            rows = [older.rows + newer.rows for older, newer in pairwise(segments)]
            at = rows.index(min(rows))
            pair = segments[at : at + 2]
            parts = [self._read(store, stream, each, manifest.watermark) for each in pair]
            newest = max(each.newest for each in pair)
            merged = self._written(store, manifest, stream, Arrivals.concatenated(parts), newest)
            for each in pair:
                store.remove_segment(stream, each.number)
            segments[at : at + 2] = [merged]
