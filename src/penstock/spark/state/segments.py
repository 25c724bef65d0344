"""The segments of a bucket: what is written to them, read from them, and when they go.

A segment holds tuples of one stream as a batch brought them, whether they are in the window or
still wait: those wait that the watermark has not passed, so letting them in writes nothing. It
goes when none of its tuples is in the window any more. That is a matter of time, up to which
nothing is left: by the watermark in windows of time; in others `Manifest.floors` has the time of
the oldest tuple inside.

In a window of N rows per key, a rare key can keep a segment for ever in which all else is gone.
There, when less than half of what is stored is still needed, it is written anew. So the store
holds no more than twice what the windows do, and a little.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np

from penstock.engine.arrivals import Arrivals
from penstock.errors import SnapshotError
from penstock.kernels.arena import Words
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.spark.state.bucket_engine import BucketEngine
from penstock.spark.state.manifest import Manifest, Segment, Store
from penstock.spark.state.segment_bytes import (
    read_flags,
    read_segment,
    write_flags,
    write_segment,
)
from penstock.windows.payload.pieces import in_pieces

__all__ = ["FEW_ROWS", "MANY_SEGMENTS", "Segments"]

MANY_SEGMENTS: Final = 24  # of a stream; beyond it, neighbours of like size become one
FEW_ROWS: Final = 1 << 10  # are not worth writing anew


class Segments:
    """Those that a manifest names, in a store. The manifest is changed, and written by others."""

    def __init__(self, binding: Binding, store: Store, manifest: Manifest) -> None:
        self._binding = binding
        self._store = store
        self._manifest = manifest

    def restore(self, engine: BucketEngine, before: int, watermark: int) -> None:
        """Fill windows that are empty. before: the watermark of the last step, or of a history."""
        manifest, query = self._manifest, self._binding.query
        if manifest.loss is not None:
            raise SnapshotError(
                "the checkpoint is of a join under limits, which has dropped some of its tuples; "
                "go on with limits=, or use a new checkpoint"
            )
        if manifest.token or not (query.counts or query.marked):
            self.fill(engine, watermark)
            return
        # The results of a history up to its watermark are known, but not what of it is still in
        # its window, or has matched.
        engine.run(self.history(), before)
        manifest.numbered = engine.waiting.numbered

    def append(self, stream: int, arrivals: Arrivals) -> None:
        """Keep tuples, which are in order of time."""
        if len(arrivals):
            self._manifest.segments[stream].append(self._written(stream, arrivals))

    def history(self) -> dict[int, Arrivals]:
        """All that there is, in order of time."""
        taken = {}
        for stream, segments in enumerate(self._manifest.segments):
            parts = [self._read(stream, each, BEGINNING) for each in segments]
            if parts:
                taken[stream] = Arrivals.concatenated(parts).in_time_order()
        return taken

    def clear(self) -> None:
        """Forget all."""
        for stream, segments in enumerate(self._manifest.segments):
            for segment in segments:
                self._store.remove_segment(stream, segment.number)
            segments.clear()

    def fill(self, engine: BucketEngine, watermark: int) -> None:
        """Put everything into windows that are empty, as it was."""
        if self._binding.query.counts:
            self._fill_in_turn(engine)
            return
        for stream, segments in enumerate(self._manifest.segments):
            if stream in self._binding.query.marked:
                self._fill_marked(stream, engine)
                continue
            for segment in segments:
                arrivals = self._read(stream, segment, watermark)
                if len(arrivals):
                    engine.driver.refill(stream, arrivals)

    def _fill_marked(self, stream: int, engine: BucketEngine) -> None:
        """Those that had not expired after the last step, and which of them had matched."""
        released = self._manifest.released
        parts = [self._read(stream, each, released) for each in self._manifest.segments[stream]]
        count = sum(len(part) for part in parts)
        matched = read_flags(self._manifest.matched[stream], count) if count else np.array([])
        for part in parts:
            flags, matched = matched[: len(part)], matched[len(part) :]
            if len(part) and engine.driver.shedder is None:
                engine.driver.refill(stream, part, flags)
            elif len(part):  # what has come out is not kept under limits
                engine.driver.refill(stream, part.take(np.flatnonzero(~flags)))

    def _fill_in_turn(self, engine: BucketEngine) -> None:
        manifest, waiting = self._manifest, engine.waiting
        inside: dict[int, Arrivals] = {}
        for stream, segments in enumerate(manifest.segments):
            # Of the last step: what enters in this one can meet all that was there before it.
            parts = [self._read(stream, each, manifest.released) for each in segments]
            if not parts:
                continue
            arrivals = waiting.in_turn(Arrivals.concatenated(parts))
            arrivals = waiting.identified(self._binding, stream, arrivals)
            end = int(np.searchsorted(arrivals.ts, manifest.released))
            inside[stream] = arrivals.slice(0, end)
            waiting.add(stream, arrivals.slice(end, len(arrivals)))
        # The newest of those inside was the last to be numbered.
        waiting.numbered = manifest.numbered - sum(len(each) for each in inside.values())
        ends = manifest.numbered if self._binding.query.counts_arrivals else manifest.released
        for stream, arrivals in waiting.entering(inside).items():
            if not len(arrivals):
                continue
            if stream in self._binding.query.marked:
                engine.refill_marked(
                    stream, arrivals, ends, partial(read_flags, manifest.matched[stream])
                )
            else:
                engine.driver.refill(stream, arrivals)

    def settle(self, engine: BucketEngine, watermark: int) -> None:
        """After a step: forget what is in no window any more, and keep the rest in few pieces."""
        self._note_floors(engine, watermark)
        for stream in self._binding.query.marked:
            # Those that are counted enter in order, and so leave: all that live are in the window.
            counts = self._binding.query.counts
            begin = BEGINNING if counts else self._begin(stream, watermark)
            self._manifest.matched[stream] = write_flags(engine.matched(stream, begin))
        for stream, segments in enumerate(self._manifest.segments):
            begin = self._begin(stream, watermark)
            for segment in [each for each in segments if each.newest < begin]:
                self._store.remove_segment(stream, segment.number)
                segments.remove(segment)
            if self._binding.query.windows[stream].rows:
                self._write_anew(stream, engine)
            self._merge(stream, watermark)

    def _note_floors(self, engine: BucketEngine, watermark: int) -> None:
        """Find how far back windows reach that do not end by time."""
        query, floors = self._binding.query, self._manifest.floors
        for stream, window in enumerate(query.windows):
            if window.rows or window.arrivals:
                oldest = engine.oldest(stream)
                floors[stream] = watermark if oldest is None else oldest
        if query.counts_arrivals:
            # Numbers are counted back from the newest: what is between must be there.
            floors[:] = [min(floors)] * len(floors)

    def _begin(self, stream: int, watermark: int) -> int:
        """The time before which no tuple is in the window, nor waits for it."""
        oldest = self._binding.query.windows[stream].oldest(watermark)
        return max(oldest, self._manifest.floors[stream])

    def _read(self, stream: int, segment: Segment, watermark: int) -> Arrivals:
        """The tuples of a segment that have not expired."""
        data = self._store.read_segment(stream, segment.number)
        return read_segment(self._binding, stream, data, self._begin(stream, watermark))

    def _written(self, stream: int, arrivals: Arrivals) -> Segment:
        number = self._manifest.next_segment
        self._manifest.next_segment += 1
        data = write_segment(arrivals.ts, arrivals.columns)
        self._store.write_segment(stream, number, data)
        return Segment(number, len(arrivals), int(arrivals.ts.max()))

    def _write_anew(self, stream: int, engine: BucketEngine) -> None:
        """Replace segments of which less than half is needed by what is."""
        segments = self._manifest.segments[stream]
        needed = engine.driver.windows.live(stream) + engine.waiting.rows(stream)
        if sum(each.rows for each in segments) <= 2 * needed + FEW_ROWS:
            return
        live = engine.driver.windows.live_sequences(stream)
        whole = list(self._taken(stream, engine, live)) if len(live) else []
        waiting = engine.waiting.arrivals(stream)
        if waiting is not None:
            whole.append(waiting)
        for each in segments:
            self._store.remove_segment(stream, each.number)
        segments[:] = [self._written(stream, arrivals) for arrivals in whole]

    def _taken(self, stream: int, engine: BucketEngine, live: Words) -> Iterator[Arrivals]:
        """Tuples of a window, in as many pieces as their types need."""
        windows = engine.driver.windows
        payload = windows.payloads[stream]
        assert payload is not None, "on Spark every stream is bound"

        def arrivals(sequences: Words) -> Arrivals:
            ts = windows.timestamps(stream, sequences)
            return Arrivals(ts, sequences.reshape(1, -1), payload.take_all(sequences))

        return in_pieces(live, arrivals)

    def _merge(self, stream: int, watermark: int) -> None:
        """Write the two neighbours with the fewest rows as one, while there are too many."""
        segments = self._manifest.segments[stream]
        while len(segments) > MANY_SEGMENTS:
            rows = [older.rows + newer.rows for older, newer in pairwise(segments)]
            at = rows.index(min(rows))
            pair = segments[at : at + 2]
            parts = [self._read(stream, each, watermark) for each in pair]
            merged = self._written(stream, Arrivals.concatenated(parts))
            for each in pair:
                self._store.remove_segment(stream, each.number)
            segments[at : at + 2] = [merged]
