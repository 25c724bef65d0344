"""The pairs of the exact answer, as the engine gives them: which rows of the tables, and when."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.model.window import TimeWindow
from penstock.offline.recording import Recording
from penstock.planning.case import plan_for
from penstock.runtime.join import Join
from penstock.state.arena import Words

__all__ = ["Matches", "matches_of"]


class Matches(NamedTuple):
    """tables: as they were given. rows: of each pair, in them. places: of both in the order of all
    tuples. times: when it comes, in microseconds."""

    tables: tuple[pa.Table, pa.Table]
    rows: tuple[Words, Words]
    places: tuple[Words, Words]
    times: Words


def matches_of(recording: Recording) -> Matches:
    """All pairs of a recording."""
    query = recording.query
    for stream, lengths in enumerate(recording.lengths):
        if lengths is not None:
            query = query.resized(stream, TimeWindow(lengths.longest_us))
    with Join(query, plan_for(query, None, None, None, None), None, None) as join:
        given = dict(zip(query.names, recording.tables, strict=True))
        found = pa.concat_tables([join.push(given), join.finish()])
    rows = [found[name].to_numpy() for name in ("0", "1")]
    places = [_by_row(recording, stream, "place")[rows[stream]] for stream in range(2)]
    if any(recording.lengths):
        # What is in the longest window may have left its own.
        lasts = [_by_row(recording, stream, "last")[rows[stream]] for stream in range(2)]
        in_window = np.where(places[0] < places[1], places[1] <= lasts[0], places[0] <= lasts[1])
        rows, places = ([each[in_window] for each in pair] for pair in (rows, places))
    tables = [
        table.drop_columns([column])
        for table, column in zip(recording.tables, recording.number_columns, strict=True)
    ]
    times = recording.times[recording.instant_of[np.maximum(*places)]]
    return Matches((tables[0], tables[1]), (rows[0], rows[1]), (places[0], places[1]), times)


def _by_row(recording: Recording, stream: int, what: str) -> Words:
    """A column of a stream's tuples, by rows of its table."""
    tuples = recording.streams[stream]
    column = np.full(len(recording.tables[stream]), -1, np.int64)
    column[tuples.row] = getattr(tuples, what)
    return column
