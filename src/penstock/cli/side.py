"""One file on its way through a join, in rounds of rows.

A round is what a side may bring before the watermark is looked at again. Its rows are put in
order of time. So the rows of a round that are late are those behind the watermark at its
start, into whatever pieces it is cut to be pushed: nothing in a later piece is before what an
earlier one has brought. Rounds depend on the files and on how many rows are read at a time, not
on limits or on how many results there are; and so does what is late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.files.source import Source
from penstock.windows.payload.storage import take_rows

__all__ = ["Side", "begin_round", "take_pieces"]

_FIRST_PIECE_ROWS: Final = 256

Times = npt.NDArray[np.int64]


@dataclass
class Side:
    """One file on its way through the join.

    most_rows: of a round. rest: what was read but is in no round yet. ready: what is left of the
    round, in order of time; ready_us: its times. piece_rows: how much of it to push next.
    newest_us: the highest event time so far. disorder_us: the furthest that a row was
    behind an earlier one; with this lateness none would be late.
    """

    name: str
    time: str
    source: Source
    most_rows: int
    rows: int = 0
    late: int = 0
    newest_us: int | None = None
    disorder_us: int = 0
    ended: bool = False
    rest: pa.RecordBatch | None = None
    ready: pa.RecordBatch | None = None
    ready_us: Times | None = None
    round_rows: int = _FIRST_PIECE_ROWS
    piece_rows: int = _FIRST_PIECE_ROWS

    def read(self) -> bool:
        """See to it that there are rows for a round; whether there are any more."""
        self.rest = self.rest or next(self.source.batches, None)
        return self.rest is not None

    def next_us(self) -> Times:
        """The times of the rows that the next round may have."""
        assert self.rest is not None, "asked for after reading"
        return _times_us(self.rest.slice(0, self.round_rows).column(self.time))

    def begin_round(self, rows: int, times: Times) -> None:
        """Take rows, the times of which these are, out of the rest and put them in order."""
        assert self.rest is not None, "asked for after reading"
        batch, self.rest = self.rest.slice(0, rows), self.rest.slice(rows)
        self.round_rows = min(2 * self.round_rows, self.most_rows)
        if rows and self._note_disorder(times):
            order = np.argsort(times, kind="stable")
            batch, times = take_rows(batch, order), times[order]
        self.ready, self.ready_us = batch, times

    def take(self, rows: int) -> pa.RecordBatch:
        """The next rows of the round, for good."""
        assert self.ready is not None, "asked for in a round"
        assert self.ready_us is not None, "as long as what is ready"
        piece = self.ready.slice(0, rows)
        self.ready, self.ready_us = self.ready.slice(rows), self.ready_us[rows:]
        self.rows += piece.num_rows
        return piece

    def _note_disorder(self, times: Times) -> bool:
        """Account for the next rows of the file; whether they are out of order among themselves."""
        highest = np.maximum.accumulate(times)
        is_disordered = bool((times < highest).any())
        if self.newest_us is not None:
            highest = np.maximum(highest, self.newest_us)
        self.newest_us = int(highest[-1])
        self.disorder_us = max(self.disorder_us, int((highest - times).max()))
        return is_disordered


def begin_round(sides: Sequence[Side]) -> None:
    """Give each the next rows of its file, up to a time that the next rows of all reach.

    What one side is ahead by would be kept in its window, and under limits take memory from what
    can match now.
    """
    ahead = [side.next_us() for side in sides]
    reached = min((int(times.max()) for times in ahead), default=0)
    for side, times in zip(sides, ahead, strict=True):
        rows = _rows_until(times, reached)
        side.begin_round(rows, times[:rows])


def take_pieces(sides: Sequence[Side]) -> list[tuple[Side, pa.RecordBatch]]:
    """The next rows of a round, in step with their times: nothing, when it is at its end."""
    ahead = [
        (side, side.ready_us[: side.piece_rows], len(side.ready_us) > side.piece_rows)
        for side in sides
        if side.ready_us is not None and len(side.ready_us)
    ]
    ends = [int(times[-1]) for _, times, has_more in ahead if has_more]
    pieces = []
    for side, times, _ in ahead:
        rows = _rows_until(times, min(ends)) if ends else len(times)
        if rows:
            pieces.append((side, side.take(rows)))
    return pieces


def _rows_until(times: Times, reached: int) -> int:
    """How many there are before the first that is later."""
    later = times > reached
    return int(later.argmax()) if later.any() else len(times)


def _times_us(column: pa.Array) -> Times:
    """The times of rows that the join has not checked: what it will refuse is not refused here."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    times: Times = column.fill_null(0).to_numpy(zero_copy_only=False)
    return times
