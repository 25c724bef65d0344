"""Two files pushed through a join in step with their event time.

Both files go in rounds, up to a time that both have reached: see side.py. So neither window
holds more than its length and a round or so, and rows in order are never late. A side that has
ended no longer holds back the watermark.

A common key can make millions of results out of a round, and they all come at once. So a
round is pushed in pieces, small at first, that grow while few results come of them. Lost
results count too, so that the pieces do not grow with what memory is short of. Under limits
pieces are also small beside what is held, which shows more closely how much memory would have been
enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from penstock.cli.side import Side, begin_round, take_pieces
from penstock.engine.intake import MAX_TS
from penstock.files.output import Output
from penstock.runtime.join import Join

__all__ = ["Totals", "join_files"]

_LIMITED_PIECE_ROWS: Final = (64, 1024)  # fewer are slow, more are hardly faster
_LIMITED_PIECE_PART: Final = 16  # of what is held
_RESULTS_AT_ONCE: Final = 1 << 20


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
        for side in running:
            if not side.read():
                side.ended = True
                took(join.advance(side.name, MAX_TS))
        running = [side for side in running if not side.ended]
        begin_round(running)
        while True:
            if is_limited:
                _keep_small(running, totals.held)
            pieces = take_pieces(running)
            if not pieces:
                break
            rows = sum(len(piece) for _, piece in pieces)
            totals.enough_rows = max(totals.enough_rows, totals.held + rows)
            before = totals.due
            took(join.push({side.name: piece for side, piece in pieces}))
            for side, piece in pieces:
                right_size = len(piece) * _RESULTS_AT_ONCE // max(totals.due - before, 1)
                side.piece_rows = max(1, min(2 * side.piece_rows, right_size, side.most_rows))
    took(join.finish())
    return totals


def _keep_small(sides: Sequence[Side], held: int) -> None:
    """The next pieces, beside what is held."""
    low, high = _LIMITED_PIECE_ROWS
    most_rows = min(max(held // _LIMITED_PIECE_PART, low), high)
    for side in sides:
        side.piece_rows = min(side.piece_rows, most_rows)
