"""The cold state of a bucket under limits: the tuples and the ghosts that are left.

A tuple has a number, which counts those of its stream, and a ghost one that counts its stream's
ghosts; in a window they stand in the order of their numbers. A segment holds those that the step
which brought them has left, and knows its first and last number. Beside the segments there is one
record, written in each step: the numbers of all that is left, and what the shedder knows. So what
is shed or has expired costs its number only, until its segment goes:

    at once     when nothing of it is left
    written     anew, with all others of its window, when less than half of what is stored is left
    merged      with a neighbour, when there are many

All of this is written from the windows; segments are read only to fill these again. The numbers
of the ledger are in the record, so that a result is counted as lost once, whoever goes on.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals
from penstock.errors import SnapshotError
from penstock.kernels.arena import Words
from penstock.model.binding import Binding
from penstock.runtime.sections import pack_sections, unpack_sections
from penstock.shedding import saved
from penstock.shedding.shedder import Shedder
from penstock.spark.state import segments as sizes
from penstock.spark.state.bucket_engine import BucketEngine
from penstock.spark.state.manifest import Manifest, Segment, Store
from penstock.spark.state.segment_bytes import (
    numbers_in,
    read_rows,
    tuples_in,
    write_rows,
    write_segment,
)
from penstock.spark.state.segments import Segments
from penstock.windows.payload.pieces import in_pieces

__all__ = ["Survivors"]

_RECORD: Final = (-1, 0)  # where it is among the segments
_SHED: Final = "shed "  # before the names of what the shedder knows


class Survivors:
    """Those that a manifest and its record name, in a store."""

    def __init__(self, binding: Binding, store: Store, manifest: Manifest) -> None:
        self._binding = binding
        self._store = store
        self._manifest = manifest
        self._streams = len(binding.query.streams)
        if not manifest.ghosts:
            manifest.ghosts = [[] for _ in range(self._streams)]

    def restore(self, engine: BucketEngine, before: int, watermark: int) -> None:
        """Fill windows that are empty. before: the watermark of the last step, or of a history."""
        shedder, manifest = _shedder(engine), self._manifest
        loss = shedder.limits.loss
        if manifest.loss is None:
            self._begin(engine, before, watermark)
        elif (manifest.loss == "off") != (loss == "off"):
            raise SnapshotError(
                f"the checkpoint is of a join with loss={manifest.loss!r}, and goes on with "
                f"loss={loss!r}; what is lost cannot be counted from the middle on: "
                f"use loss={manifest.loss!r}, or a new checkpoint"
            )
        else:
            self._fill(engine, watermark)
        manifest.loss = loss
        shedder.enforce(watermark)  # the limits may be others

    def append(self, stream: int, arrivals: Arrivals) -> None:
        """Nothing: what stays of them is known when the step is over."""

    def _begin(self, engine: BucketEngine, before: int, watermark: int) -> None:
        """With what a join without limits has left, or a history, or nothing."""
        whole = Segments(self._binding, self._store, self._manifest)
        if self._manifest.token:
            whole.fill(engine, watermark)
        elif any(self._manifest.segments):
            engine.run(whole.history(), before)
            _shedder(engine).losses.forget()  # its results are known
        whole.clear()

    # Filling windows.

    def _fill(self, engine: BucketEngine, watermark: int) -> None:
        shedder, windows = _shedder(engine), engine.driver.windows
        data = self._store.read_segment(*_RECORD)
        if data is None:
            raise SnapshotError(
                "what a bucket of the checkpoint has learned and lost is missing from the state "
                "store; restore the checkpoint from a copy"
            )
        record = unpack_sections(data, "bucket")
        known = {
            name.removeprefix(_SHED): table
            for name, table in record.items()
            if name.startswith(_SHED)
        }
        saved.load(shedder, known)
        for stream in range(self._streams):
            self._fill_window(stream, engine, record)
        saved.load_numbers(shedder, known["numbers"])  # filling has counted on
        if not windows.has_ghosts:
            ghosts = range(self._streams, 2 * self._streams)
            left = [_left(record, each) for each in ghosts if f"left {each}" in record]
            saved.check_ghosts(shedder, sum(map(len, left)))
            return
        windows.state.shares["laid"] = record["laid"]["before"].to_numpy()
        for stream in range(self._streams):
            self._fill_ghosts(stream, engine, record, watermark)

    def _fill_window(self, stream: int, engine: BucketEngine, record: dict[str, pa.Table]) -> None:
        left, windows = _left(record, stream), engine.driver.windows
        for segment in self._manifest.segments[stream]:
            table = self._read(stream, segment)
            rows = np.flatnonzero(np.isin(numbers_in(table), left, assume_unique=True))
            if len(rows):
                engine.driver.refill(stream, tuples_in(self._binding, stream, table).take(rows))
        live = windows.live_sequences(stream)
        self._check(stream, len(live), len(left))
        windows.set_numbers(stream, live, left)
        if f"marks {stream}" in record:
            windows.add_marks(stream, record[f"marks {stream}"]["marks"].to_numpy())

    def _fill_ghosts(
        self, stream: int, engine: BucketEngine, record: dict[str, pa.Table], watermark: int
    ) -> None:
        window = self._streams + stream
        left = _left(record, window)
        tables = [self._read(window, each) for each in self._manifest.ghosts[stream]]
        if not tables:
            self._check(stream, 0, len(left))
            return
        table = pa.concat_tables(tables)
        rows = np.flatnonzero(np.isin(table["laid"].to_numpy(), left, assume_unique=True))
        self._check(stream, len(rows), len(left))
        table = table.take(pa.array(rows))
        if f"marks {window}" in record:
            place = table.column_names.index("marks")
            table = table.set_column(place, "marks", record[f"marks {window}"]["marks"])
        saved.load_ghosts(_shedder(engine), stream, table, watermark)

    def _check(self, stream: int, found: int, left: int) -> None:
        if found != left:
            raise SnapshotError(
                f"a bucket of the checkpoint has {found} tuples of stream "
                f"{self._binding.query.names[stream]!r} in its segments, and should have {left}; "
                "restore the checkpoint from a copy"
            )

    def _read(self, window: int, segment: Segment) -> pa.Table:
        data = self._store.read_segment(window, segment.number)
        return read_rows(self._binding, window % self._streams, data)

    # After a step.

    def settle(self, engine: BucketEngine, watermark: int) -> None:
        """Write what is new, forget what is gone, and keep the rest in few pieces."""
        shedder, windows = _shedder(engine), engine.driver.windows
        record = {f"{_SHED}{name}": table for name, table in saved.save(shedder).items()}
        count = self._streams * (2 if windows.has_ghosts else 1)
        # Marks that may be others than when a segment was written: in semi joins what has met
        # something, and of a sample of ghosts the chances.
        changing = {0, self._streams} if self._binding.query.how == "semi" else set()
        if shedder.losses.threshold < 1.0:
            changing |= set(range(self._streams, count))
        for window in range(count):
            live = windows.live_sequences(window)
            numbers = self._numbers(engine, window, live)
            self._settle(engine, window, live, numbers)
            # Differences are small, and so take little room.
            record[f"left {window}"] = pa.table({"step": np.diff(numbers, prepend=0)})
            if window in changing:
                record[f"marks {window}"] = pa.table({"marks": windows.marks(window, live)})
        if windows.has_ghosts:
            heads = windows.state.windows["head"][self._streams :]
            record["laid"] = pa.table({"before": windows.state.shares["laid"] + heads})
        self._store.write_segment(*_RECORD, pack_sections(record, "bucket", "zstd"))
        self._count(shedder)

    def _count(self, shedder: Shedder) -> None:
        manifest = self._manifest
        manifest.shed = int(shedder.losses.shed.sum())
        manifest.unprobed = int(shedder.losses.unprobed.sum())
        manifest.lost = float(shedder.losses.lost.sum())
        manifest.lost_variance = shedder.losses.variance or 0.0

    def _settle(self, engine: BucketEngine, window: int, live: Words, numbers: Words) -> None:
        segments = self._segments(window)
        last = segments[-1].last if segments else -1
        for segment in [each for each in segments if not len(_within(numbers, each, each))]:
            self._remove(window, segment)
        segments += self._written(engine, window, live[numbers > last])
        if sum(each.rows for each in segments) > 2 * len(live) + sizes.FEW_ROWS:
            self._replace(engine, window, segments[:], live)
        for _ in range(len(segments) - sizes.MANY_SEGMENTS):
            rows = [older.rows + newer.rows for older, newer in pairwise(segments)]
            at = rows.index(min(rows))
            pair = segments[at : at + 2]
            self._replace(engine, window, pair, live[_within(numbers, *pair)])

    def _replace(self, engine: BucketEngine, window: int, old: list[Segment], live: Words) -> None:
        """Write what is left of neighbours as one."""
        segments = self._segments(window)
        at = segments.index(old[0])
        segments[at : at + len(old)] = self._written(engine, window, live)
        for each in old:
            self._store.remove_segment(window, each.number)

    def _remove(self, window: int, segment: Segment) -> None:
        self._store.remove_segment(window, segment.number)
        self._segments(window).remove(segment)

    def _segments(self, window: int) -> list[Segment]:
        streams = self._streams
        if window < streams:
            return self._manifest.segments[window]
        return self._manifest.ghosts[window - streams]

    def _numbers(self, engine: BucketEngine, window: int, sequences: Words) -> Words:
        if window < self._streams:
            return engine.driver.windows.numbers(window, sequences)
        return saved.ghost_numbers(_shedder(engine), window - self._streams, sequences)

    def _written(self, engine: BucketEngine, window: int, sequences: Words) -> list[Segment]:
        """The segments of tuples or ghosts of a window: one, unless their types need more."""
        if not len(sequences):
            return []
        return list(in_pieces(sequences, lambda part: self._write(engine, window, part)))

    def _write(self, engine: BucketEngine, window: int, sequences: Words) -> Segment:
        windows = engine.driver.windows
        numbers = self._numbers(engine, window, sequences)
        ts = windows.timestamps(window, sequences)
        if window < self._streams:
            payload = windows.payloads[window]
            assert payload is not None, "on Spark every stream is bound"
            data = write_segment(ts, payload.take_all(sequences), numbers)
        else:
            stream = window - self._streams
            table = saved.save_ghosts(_shedder(engine), stream, sequences)
            data = write_rows(table.combine_chunks().to_batches()[0])
        number = self._manifest.next_segment
        self._manifest.next_segment += 1
        self._store.write_segment(window, number, data)
        return Segment(number, len(ts), int(ts.max()), int(numbers[0]), int(numbers[-1]))


def _shedder(engine: BucketEngine) -> Shedder:
    assert engine.driver.shedder is not None, "asked for under limits only"
    return engine.driver.shedder


def _left(record: dict[str, pa.Table], window: int) -> Words:
    """The numbers of what is left in a window."""
    steps: Any = record[f"left {window}"]["step"].to_numpy()
    return np.cumsum(steps, dtype=np.int64)


def _within(numbers: Words, older: Segment, newer: Segment) -> Words:
    """Which of these are from the first of one segment to the last of another."""
    begin, end = np.searchsorted(numbers, [older.first, newer.last + 1])
    return np.arange(begin, end)
