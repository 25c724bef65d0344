"""Two files pushed through a join in step with their event time.

Without limits the next batch comes from the side whose newest event time is behind. So neither
window holds more than its length and a batch or so, and rows in order are never late.
A side that has ended no longer holds back the watermark.

A common key can make millions of results out of a batch, and they all come at once. So a
batch is pushed in pieces, small at first, that grow while few results come of them. Lost
results count too, so that the pieces are the same whatever memory a join is limited to.

Under limits what one side is ahead by would take memory from what can match now. So both are
pushed together there, up to a time that both have reached, and pieces are small beside what is
held, which tells the closer how much memory would have been enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.cli.output import Output
from penstock.cli.source import Source
from penstock.runtime.intake import MAX_TS
from penstock.runtime.join import Join

__all__ = ["Side", "Totals", "join_files"]

_LIMITED_PIECE_ROWS: Final = (64, 1024)  # fewer are slow, more are hardly faster
_LIMITED_PIECE_PART: Final = 16  # of what is held
_FIRST_PIECE_ROWS: Final = 256
_RESULTS_AT_ONCE: Final = 1 << 20


@dataclass
class Side:
    """One file on its way through the join.

    most_rows: to push at once. rest: what was read but not yet pushed. piece_rows: how much of
    it to push next.
    newest_us: the highest event time so far. disorder_us: the furthest that a row was
    behind an earlier one; with this lateness none would be late.
    """

    name: str
    time: str
    source: Source
    most_rows: int = _RESULTS_AT_ONCE
    rows: int = 0
    late: int = 0
    newest_us: int | None = None
    disorder_us: int = 0
    ended: bool = False
    rest: pa.RecordBatch | None = None
    piece_rows: int = _FIRST_PIECE_ROWS

    def read(self) -> bool:
        """See to it that there are rows to push; whether there are any more."""
        self.rest = self.rest or next(self.source.batches, None)
        return self.rest is not None

    def next_rows(self) -> pa.RecordBatch:
        """The rows to push next, of those that were read."""
        if self.rest is None:
            raise AssertionError("nothing was read")
        return self.rest.slice(0, self.piece_rows)

    def take(self, rows: int) -> pa.RecordBatch:
        """The next so many rows, for good."""
        piece = self.next_rows().slice(0, rows)
        self.rest = self.rest.slice(len(piece)) if self.rest else None
        return piece

    def saw(self, batch: pa.RecordBatch, results: int) -> None:
        """Account for rows that the join has taken, and for what came of them."""
        self.rows += batch.num_rows
        right_size = batch.num_rows * _RESULTS_AT_ONCE // max(results, 1)
        self.piece_rows = max(1, min(2 * self.piece_rows, right_size, self.most_rows))
        times = _times_us(batch.column(self.time))
        if self.newest_us is not None:
            times = np.concatenate(([self.newest_us], times))
        highest = np.maximum.accumulate(times)
        self.newest_us = int(highest[-1])
        self.disorder_us = max(self.disorder_us, int((highest - times).max()))


@dataclass
class Totals:
    """What the join has done so far.

    due: results, and those that are lost. held: tuples in the windows, and those that would be
    there had they not been shed. enough_rows: the windows would not have held more than these,
    even in the middle of a piece.
    """

    results: int = 0
    peak_live: int = 0
    due: int = 0
    held: int = 0
    enough_rows: int = 0


def join_files(
    join: Join,
    sides: Sequence[Side],
    results: Output,
    late: Mapping[str, Output],
    report: Callable[[Totals], None],
    is_limited: bool = False,
) -> Totals:
    """Read both files to their ends; `report` is called after every piece.

    late: where the late rows of a stream go; those of a stream without an entry are dropped.
    """
    totals = Totals()

    def took(table: pa.Table) -> None:
        results.write(table)
        # Drained every time, wanted or not: the join keeps late rows until then.
        drained = join.late()
        for side in sides:
            side.late += drained[side.name].num_rows
            if side.name in late:
                late[side.name].write(drained[side.name])
        totals.results += table.num_rows
        metrics = join.metrics
        totals.peak_live = max(totals.peak_live, metrics.live)
        totals.due = totals.results + (metrics.lost or 0)
        totals.held = metrics.live + metrics.ghosts
        report(totals)

    while running := [side for side in sides if not side.ended]:
        if is_limited:
            low, high = _LIMITED_PIECE_ROWS
            most_rows = min(max(totals.held // _LIMITED_PIECE_PART, low), high)
            for side in running:
                side.most_rows = most_rows
                side.piece_rows = min(side.piece_rows, most_rows)
        else:
            running = [_behind(running)]
        for side in running:
            if not side.read():
                side.ended = True
                took(join.advance(side.name, MAX_TS))
        pieces = _pieces([side for side in running if not side.ended])
        if pieces:
            rows = sum(len(piece) for _, piece in pieces)
            totals.enough_rows = max(totals.enough_rows, totals.held + rows)
            before = totals.due
            took(join.push({side.name: piece for side, piece in pieces}))
            for side, piece in pieces:
                side.saw(piece, totals.due - before)
    took(join.finish())
    return totals


def _behind(sides: Sequence[Side]) -> Side:
    """The one whose newest event time is the least."""
    return min(sides, key=lambda side: (side.newest_us is not None, side.newest_us or 0))


def _pieces(sides: Sequence[Side]) -> list[tuple[Side, pa.RecordBatch]]:
    """The next rows of each, up to a time that the next rows of all reach."""
    if len(sides) < 2:
        return [(side, side.take(side.piece_rows)) for side in sides]
    ahead = [(side, _ahead_us(side.next_rows().column(side.time))) for side in sides]
    reached = min(int(times.max()) for _, times in ahead)
    pieces = []
    for side, times in ahead:
        later = times > reached
        rows = int(later.argmax()) if later.any() else len(times)
        if rows:
            pieces.append((side, side.take(rows)))
    return pieces


def _ahead_us(column: pa.Array) -> npt.NDArray[np.int64]:
    """The times of rows that the join has not checked: what it will refuse is not refused here."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    times: npt.NDArray[np.int64] = column.fill_null(0).to_numpy(zero_copy_only=False)
    return times


def _times_us(column: pa.Array) -> npt.NDArray[np.int64]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    times: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
    return times
