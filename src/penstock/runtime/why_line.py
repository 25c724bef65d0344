"""The tuples of a stream that a join still has, in order, so that one can be looked up by value.

Those in the window come first, then those that wait for their turn: where rows or arrivals are
counted, that is the order in which they are. Made for a question of a user, who asks about a
tuple or two: it takes columns whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.engine.padding import microseconds
from penstock.state.arena import Flags, Words

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["Line", "line_of"]


@dataclass(frozen=True)
class Line:
    """ts: event times. places: among the arrivals of all streams, where these are counted.
    live: how many of them are in the window. columns: of those asked for, the ones kept."""

    ts: Words
    places: Words
    live: int
    columns: Mapping[str, pa.Array]

    def same(self, row: Mapping[str, pa.Array]) -> Flags:
        """Which tuples have these values, in the columns that are kept."""
        same = np.ones(len(self.ts), np.bool_)
        for name, value in row.items():
            if name in self.columns:
                wanted = value[0].as_py()
                same &= np.array(
                    [each == wanted for each in self.columns[name].to_pylist()], np.bool_
                )
        return same

    def index(self, ts: int | None, row: Mapping[str, pa.Array]) -> int | None:
        """Where such a tuple is: the newest in the window, else the first that waits."""
        same = self.same(row)
        if ts is not None:
            same &= self.ts == ts
        live, waiting = np.flatnonzero(same[: self.live]), np.flatnonzero(same[self.live :])
        if len(live):
            return int(live[-1])
        return self.live + int(waiting[0]) if len(waiting) else None


def line_of(join: Join, stream: int, names: Collection[str]) -> Line:
    """That of a stream, with its columns of these names."""
    query, windows = join.query, join.driver.windows
    live, payload = windows.live_sequences(stream), windows.payloads[stream]
    waiting = join.waiting.arrivals(stream) if query.counts else None
    inside = windows.timestamps(stream, live)
    columns: dict[str, list[pa.Array]] = {}
    places = inside
    if payload is not None:
        columns = {name: [payload.take(name, live)] for name in names if name in payload.columns}
        if query.counts_arrivals:  # the windows have places for times
            inside = microseconds(payload.take(query.streams[stream].time_column, live))
    ts = [inside]
    if waiting is not None:
        ts.append(waiting.ts)
        places = np.concatenate([places, join.waiting.places(stream)])
        for name, parts in columns.items():
            parts.append(waiting.columns[name])
    whole = {name: pa.concat_arrays(parts) for name, parts in columns.items()}
    return Line(np.concatenate(ts), places, len(live), whole)
