"""The cold state of a bucket: segments that follow its windows, and fill them again.

A segment holds tuples of one stream, in the window or still waiting for it: those wait that the
watermark has not passed, so letting them in writes nothing. Which of its tuples remain is known

    by time     if all stay until their window ends: from the watermark or, in windows that do not
                end by time, from the oldest tuple inside (`Manifest.floors`). Arrivals are written
                as they came.
    by number   if some may leave early (`BucketEngine.leaves_early`). The tuples of a stream are
                numbered, and stand in their window in that order. Those that a step has left of
                its arrivals are written from there. Beside the segments each step writes a record
                of the numbers that remain, so a tuple that leaves later costs its number only.

The record has tables: `left N`, the numbers in window N as differences, `marks N`, the marks there,
if they may be others than when the segments were written, `matched N`, which of those that may come
out alone have matched, and `promises *`, what is known of promises. Under limits it also has
what the shedder knows (shedding/saved.py), with the ledger, so that a result is counted as lost
once, whoever goes on; and ghosts have windows, numbers and segments as tuples have.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals
from penstock.engine.driver import NUMBER as ENGINE_NUMBER
from penstock.errors import SnapshotError
from penstock.kernels.arena import Flags, Words
from penstock.kernels.sentinels import BEGINNING
from penstock.runtime.sections import pack_sections, unpack_sections
from penstock.shedding import saved
from penstock.shedding.shedder import Shedder
from penstock.spark.state.bucket_engine import BucketEngine
from penstock.spark.state.manifest import Manifest, Store
from penstock.spark.state.segment_bytes import (
    NUMBER,
    read_flags,
    table_of,
    tuples_in,
    write_flags,
)
from penstock.spark.state.segments import Remaining, Segments
from penstock.windows.payload.pieces import in_pieces

__all__ = ["ColdState"]

_RECORD: Final = (-1, 0)  # where it is among the segments
_PROMISES: Final = "promises "  # before the names of what is known of them
_Record = dict[str, pa.Table]


class ColdState:
    """That of an engine's bucket. The manifest is changed, and written by others; until windows
    have been filled, its watermark is that of the last step, or of a history."""

    def __init__(self, engine: BucketEngine, store: Store, manifest: Manifest) -> None:
        self._engine = engine
        self._store = store
        self._manifest = manifest
        self._binding = engine.driver.binding
        self._query = self._binding.query
        self._windows = windows = engine.driver.windows
        self._shedder = engine.driver.shedder
        self._streams = range(windows.streams)
        listed = range(windows.count)  # those of ghosts are behind those of the streams
        self._segments = [Segments(self._binding, store, manifest, each) for each in listed]
        engine.next_numbers = [self._segments[stream].last + 1 for stream in self._streams]

    # Filling windows.

    def restore(self, watermark: int) -> None:
        """Fill windows that are empty, for a step at this watermark."""
        manifest, query, engine = self._manifest, self._query, self._engine
        limits = self._shedder.limits
        manifest.check_loss(None if limits is None else limits.loss)
        if manifest.recorded:
            self._fill_by_number(watermark)
        elif manifest.token or not (query.counts or query.marked or engine.leaves_early):
            self._fill_by_time(watermark)
        else:
            # The results of a history up to its watermark are known, but not what of it is still
            # in its window, or has matched.
            engine.run(self._history(), manifest.watermark)
            manifest.numbered = engine.gate.numbered
            if self._shedder.limits is not None:
                self._shedder.losses.forget()
        if engine.leaves_early and not manifest.recorded:
            for segments in self._segments:
                segments.replace_all([])  # `settle` writes all anew, with numbers
        if self._shedder.limits is not None:
            self._shedder.enforce(watermark)  # the limits may be others

    def _tuples(self, stream: int, remaining: Remaining) -> Iterator[Arrivals]:
        for table in self._segments[stream].read(remaining):
            for batch in table.to_batches():
                arrivals = tuples_in(self._binding, stream, batch)
                if remaining.numbers is not None:
                    arrivals = self._engine.renumbered(arrivals, batch[NUMBER].to_numpy())
                yield arrivals

    def _history(self) -> dict[int, Arrivals]:
        """All that there is, in order of time."""
        parts = {stream: list(self._tuples(stream, Remaining())) for stream in self._streams}
        return {s: Arrivals.concatenated(each).in_time_order() for s, each in parts.items() if each}

    def _fill_by_time(self, watermark: int) -> None:
        manifest, query, engine = self._manifest, self._query, self._engine
        if query.counts:
            self._fill_in_turn()
        else:
            for stream in self._streams:
                # Which have matched is known of those that were there after the last step.
                at = manifest.watermark if stream in query.marked else watermark
                for arrivals in self._tuples(stream, self._in_time(stream, at)):
                    engine.driver.refill(stream, arrivals)
        ends = manifest.numbered if query.counts_arrivals else manifest.watermark
        for stream in query.marked:
            engine.restore_matched(stream, ends, partial(read_flags, manifest.matched[stream]))

    def _fill_in_turn(self) -> None:
        """Fill windows with what has had its turn; the rest waits."""
        gate, released = self._engine.gate, self._manifest.watermark
        inside: dict[int, Arrivals] = {}
        for stream in self._streams:
            # Of the last step: what enters in this one can meet all that was there before it.
            parts = list(self._tuples(stream, self._in_time(stream, released)))
            if not parts:
                continue
            arrivals = gate.in_turn(Arrivals.concatenated(parts))
            arrivals = gate.identified(self._binding, stream, arrivals)
            end = int(np.searchsorted(arrivals.ts, released))
            inside[stream] = arrivals.slice(0, end)
            gate.add(stream, arrivals.slice(end, len(arrivals)))
        # The newest of those inside was the last to be numbered.
        gate.numbered = self._manifest.numbered - sum(map(len, inside.values()))
        for stream, arrivals in gate.entering(inside).items():
            if len(arrivals):
                self._engine.driver.refill(stream, arrivals)

    def _fill_by_number(self, watermark: int) -> None:
        data = self._store.read_segment(*_RECORD)
        if data is None:
            raise SnapshotError(
                "what a bucket of the checkpoint has learned and lost is missing from the state "
                "store; restore the checkpoint from a copy"
            )
        record, windows = unpack_sections(data, "bucket"), self._windows
        if self._shedder.limits is not None:
            saved.load(self._shedder, record)
        for stream in self._streams:
            left, done = _left(record, stream), 0
            matched = _matched(record, stream)
            for arrivals in self._tuples(stream, Remaining(numbers=left)):
                end = done + len(arrivals)
                self._engine.driver.refill(
                    stream, arrivals, None if matched is None else matched[done:end]
                )
                done = end
            if self._shedder.limits is not None:
                windows.set_numbers(stream, windows.live_sequences(stream), left)
            if f"marks {stream}" in record:
                windows.add_marks(stream, record[f"marks {stream}"]["marks"].to_numpy())
        if self._shedder.limits is not None:
            saved.load_numbers(self._shedder, record["numbers"])  # filling has counted on
            self._fill_ghosts(self._shedder, record, watermark)
        promises = self._engine.driver.promises
        if promises is not None:
            promises.load(_of_promises(record))

    def _fill_ghosts(self, shedder: Shedder, record: _Record, watermark: int) -> None:
        first = len(self._streams)
        left = [_left(record, first + stream) for stream in self._streams]
        saved.check_ghosts(shedder, sum(map(len, left)))
        for stream, segments in enumerate(self._segments[first:]):
            self._windows.state.quotas["laid"][stream] = segments.last + 1
            if not len(left[stream]):
                continue
            ghosts = pa.concat_tables(segments.read(Remaining(numbers=left[stream])))
            if f"marks {first + stream}" in record:
                marks = record[f"marks {first + stream}"]["marks"]
                ghosts = ghosts.drop_columns("marks").append_column("marks", marks)
            saved.load_ghosts(shedder, stream, ghosts, watermark)

    # In a step, and after it.

    def append(self, stream: int, arrivals: Arrivals) -> None:
        """Write tuples, which are in order of time; if some may leave early, `settle` does it."""
        if not self._engine.leaves_early:
            self._segments[stream].append([table_of(arrivals.ts, arrivals.columns)])

    def settle(self) -> None:
        """After a step: write what is new, forget what is gone, and keep the rest in few pieces."""
        engine, record = self._engine, _Record()
        if not engine.leaves_early:
            self._note_floors()
            self._note_matched()
        for window, segments in enumerate(self._segments):
            if engine.leaves_early:
                remaining = self._note_left(window, record)
            else:
                remaining = self._in_time(window, self._manifest.watermark)
            segments.forget_all_but(remaining)
            # One tuple that stays can keep a segment for ever, if tuples leave in any order: early,
            # or from a window of rows, which a rare key does not leave.
            if engine.leaves_early or self._query.windows[window].rows:
                waiting = engine.gate.rows(window) if self._query.counts else 0
                if segments.are_half_empty(self._windows.live(window) + waiting):
                    segments.replace_all(self._whole(window))
            segments.merge(remaining)
        if self._shedder.limits is not None:
            record |= saved.save(self._shedder)
            self._manifest.note_losses(self._shedder)
        promises = engine.driver.promises
        if promises is not None:
            record |= {f"{_PROMISES}{name}": table for name, table in promises.save().items()}
        if engine.leaves_early:
            self._store.write_segment(*_RECORD, pack_sections(record, "bucket", "zstd"))
            self._manifest.recorded = True

    def _in_time(self, stream: int, watermark: int) -> Remaining:
        """Those that are in a window at a watermark, or wait for it."""
        oldest = self._query.windows[stream].oldest(watermark)
        return Remaining(max(oldest, self._manifest.floors[stream]))

    def _note_floors(self) -> None:
        """Find how far back windows reach that do not end by time."""
        floors = self._manifest.floors
        for stream, window in enumerate(self._query.windows):
            if window.rows or window.arrivals:
                oldest = self._engine.oldest(stream)
                floors[stream] = self._manifest.watermark if oldest is None else oldest
        if self._query.counts_arrivals:
            # Numbers are counted back from the newest: what is between must be there.
            floors[:] = [min(floors)] * len(floors)

    def _note_matched(self) -> None:
        for stream in self._query.marked:
            # Those that are counted enter in order, and so leave: all that live are in the window.
            in_time = self._in_time(stream, self._manifest.watermark)
            begin = BEGINNING if self._query.counts else in_time.begin
            self._manifest.matched[stream] = write_flags(self._engine.matched(stream, begin))

    def _note_left(self, window: int, record: _Record) -> Remaining:
        """Record what is in a window, and write what of it is in no segment yet."""
        windows, segments, shedder = self._windows, self._segments[window], self._shedder
        live = windows.live_sequences(window)
        numbers = self._engine.numbers(window, live)
        segments.append(self._taken(window, live[numbers > segments.last]))
        # Differences are small, and so take little room.
        record[f"left {window}"] = pa.table({"step": np.diff(numbers, prepend=0)})
        # In semi joins they say what has met something, and in a sample the chances of ghosts.
        is_met = self._query.is_semi and window % len(self._streams) == 0
        is_sample = shedder.limits is not None and shedder.losses.threshold < 1.0
        if is_met or (is_sample and window not in self._streams):
            record[f"marks {window}"] = pa.table({"marks": windows.marks(window, live)})
        if window in self._query.marked:
            matched = self._engine.matched(window, BEGINNING)
            record[f"matched {window}"] = pa.table({"matched": matched})
        return Remaining(numbers=numbers)

    def _whole(self, window: int) -> Iterator[pa.Table]:
        """All that is in a window or waits for it."""
        yield from self._taken(window, self._windows.live_sequences(window))
        waiting = self._engine.gate.arrivals(window) if self._query.counts else None
        if waiting is not None:
            yield table_of(waiting.ts, waiting.columns)

    def _taken(self, window: int, sequences: Words) -> Iterator[pa.Table]:
        """Tuples or ghosts of a window, in as many pieces as their types need."""
        windows, shedder = self._windows, self._shedder

        def table(some: Words) -> pa.Table:
            if shedder.limits is not None and window not in self._streams:
                return saved.save_ghosts(shedder, window - len(self._streams), some)
            ts, payload = windows.timestamps(window, some), windows.payloads[window]
            assert payload is not None, "on Spark every stream is bound"
            numbers = self._engine.numbers(window, some) if self._engine.leaves_early else None
            columns = payload.take_all(some)
            columns.pop(ENGINE_NUMBER, None)
            return table_of(ts, columns, numbers)

        return in_pieces(sequences, table)


def _of_promises(record: _Record) -> dict[str, pa.Table]:
    parts = [name for name in record if name.startswith(_PROMISES)]
    return {name.removeprefix(_PROMISES): record[name] for name in parts}


def _matched(record: _Record, window: int) -> Flags | None:
    """Which of those left in a window have matched, if that counts there."""
    if f"matched {window}" not in record:
        return None
    flags: Flags = record[f"matched {window}"]["matched"].to_numpy()
    return flags


def _left(record: _Record, window: int) -> Words:
    """The numbers of what is left in a window; of ghosts there may have been none."""
    steps = record[f"left {window}"]["step"].to_numpy() if f"left {window}" in record else []
    return np.cumsum(steps, dtype=np.int64)
