"""The pairs of the exact answer, as the engine gives them: which rows of the tables, and when."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.errors import PlanError
from penstock.kernels.arena import Words
from penstock.lab.optimum.timeline import Timeline
from penstock.model.query import Query
from penstock.model.window import TimeWindow
from penstock.planning.case import plan_for
from penstock.runtime.join import Join

__all__ = ["Matches", "matches_of"]

_PIECE: Final = 1_000  # tuples pushed at once
_MOST: Final = 25_000_000  # results: they take some 200 bytes each until all is decided


class Matches(NamedTuple):
    """tables: as they were given. rows: of each pair, in them. places: of both in the order of all
    tuples. times: when it comes, in microseconds."""

    tables: tuple[pa.Table, pa.Table]
    rows: tuple[Words, Words]
    places: tuple[Words, Words]
    times: Words


def matches_of(timeline: Timeline) -> Matches:
    """All pairs of a timeline."""
    query = timeline.query
    for stream, lengths in enumerate(timeline.lengths):
        if lengths is not None:
            query = query.resized(stream, TimeWindow(lengths.longest_us))
    found = _found(query, timeline)
    rows = [found[name].to_numpy() for name in ("0", "1")]
    places = [_by_row(timeline, stream, "place")[rows[stream]] for stream in range(2)]
    if any(timeline.lengths):
        # What is in the longest window may have left its own.
        lasts = [_by_row(timeline, stream, "last")[rows[stream]] for stream in range(2)]
        in_window = np.where(places[0] < places[1], places[1] <= lasts[0], places[0] <= lasts[1])
        rows, places = ([each[in_window] for each in pair] for pair in (rows, places))
    tables = [
        table.drop_columns([column])
        for table, column in zip(timeline.tables, timeline.number_columns, strict=True)
    ]
    times = timeline.times[timeline.instant_of[np.maximum(*places)]]
    return Matches((tables[0], tables[1]), (rows[0], rows[1]), (places[0], places[1]), times)


def _found(query: Query, timeline: Timeline) -> pa.Table:
    """What the engine gives, a piece of time after the other: so too many are seen before they are
    all there."""
    cuts = np.unique(timeline.times[timeline.instant_of[_PIECE::_PIECE]])
    ends = [[*np.searchsorted(times, cuts).tolist(), len(times)] for times in timeline.row_times]
    begins = [[0, *each[:-1]] for each in ends]
    pieces, number = [], 0
    with Join(query, plan_for(query, None, None, None, None), None, None) as join:
        for piece in range(len(cuts) + 1):
            given = {
                name: table.slice(begin[piece], end[piece] - begin[piece])
                for name, table, begin, end in zip(
                    query.names, timeline.tables, begins, ends, strict=True
                )
            }
            pieces.append(join.push(given))
            number += len(pieces[-1])
            if number > _MOST:
                raise PlanError(
                    f"the join has more than {_MOST:,} results, too many to weigh each of them, "
                    f"got these from the first {piece + 1:,} of {len(cuts) + 1:,} pieces of the "
                    "recording; give a part of it, or, where it is by equal keys alone, no value="
                )
        pieces.append(join.finish())
    return pa.concat_tables(pieces)


def _by_row(timeline: Timeline, stream: int, what: str) -> Words:
    """A column of a stream's tuples, by rows of its table."""
    tuples = timeline.streams[stream]
    column = np.full(len(timeline.tables[stream]), -1, np.int64)
    column[tuples.row] = getattr(tuples, what)
    return column
