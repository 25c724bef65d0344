"""`optimum`: the most results that any policy could have given, and what it would have kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.errors import PlanError, QueryError
from penstock.kernels.arena import Words
from penstock.lab.optimum.by_arrival import is_by_arrival, met_by_arrival
from penstock.lab.optimum.by_match import met_by_match
from penstock.lab.optimum.flow import FlowRangeError, best_by_flow, flow_size
from penstock.lab.optimum.holding import earned, held, pooled
from penstock.lab.optimum.matched_pairs import Matches, matches_of
from penstock.lab.optimum.met import Met
from penstock.lab.optimum.price_bounds import priced
from penstock.lab.optimum.rooms import parse_rooms
from penstock.lab.optimum.step_function import parse_time
from penstock.lab.optimum.timeline import Timeline, timeline_of
from penstock.lab.optimum.values import Floats, Value, result_values, scaled
from penstock.model.query import Query

__all__ = ["Optimum", "optimum"]

METHODS: Final = ("auto", "per_arrival", "per_match", "prices")
# Nodes of graphs that a flow is looked for in, by their form: some seconds to a minute.
_LARGEST_FLOW: Final = {"per_arrival": 120_000, "per_match": 150_000}
# The part of a sum of values that may be rounded in a bound that counts as exact.
_ROUNDED: Final = 1e-9


@dataclass(frozen=True)
class Optimum:
    """The best that could have been done.

    produced: the most results, or the most value, that what is kept brings. upper: what no policy
    can exceed; the same, unless `method` is 'prices', or values have so many digits that rounding
    them counts. total: of the exact join. kept: by stream,
    for each row of its table until when it is kept, null if it goes at once. method: 'per_arrival',
    'per_match' or 'prices'.
    """

    produced: float
    upper: float
    total: float
    kept: Mapping[str, pa.Array]
    method: str

    @property
    def is_exact(self) -> bool:
        """Whether nothing better is possible, but for a billionth of values that are not whole."""
        return self.produced == self.upper

    @property
    def recall(self) -> float:
        """The part of the exact answer that is produced."""
        return self.produced / self.total if self.total else 1.0

    @property
    def recall_upper(self) -> float:
        """The part of it that no policy can exceed."""
        return self.upper / self.total if self.total else 1.0

    def __str__(self) -> str:
        counts = all(isinstance(each, int) for each in (self.produced, self.upper, self.total))
        form, what = (",", " results") if counts else (",.6g", "")
        most = f"{self.produced:{form}} of {self.total:{form}}"
        if self.is_exact:
            return f"at most {most}{what} ({self.recall:.1%})"
        share = f"{self.recall:.1%} to {self.recall_upper:.1%}"
        return f"at most {self.upper:{form}}, at least {most}{what} ({share})"


def optimum(  # noqa: PLR0913  # by keyword only
    query: Query,
    tables: Mapping[str, Any],
    *,
    memory: Any,
    pool: Any = "shared",
    value: Value | None = None,
    windows: Mapping[str, Any] | None = None,
    counted_from: Any = None,
    method: str = "auto",
) -> Optimum:
    """The most results that any policy could have given within a memory, knowing all that comes.

    query: an inner join of two streams. tables: of each stream, in order of time.
    memory: tuples that may be kept after each instant, 1000 or '1000 rows'; or, where it changes,
        times and tuples, [(time, 1000), (time, 500)], each from its time on.
    pool: 'shared', one memory for both; 'fixed', an equal part for each; or {'a': 3, 'b': 1}, parts
        in this proportion.
    value: what a result is worth: an expression over columns of one stream, such as 'a.price', or
        a function from the table of results to numbers. Without, each counts 1.
    windows: by stream, for windows of time that are not of one length: the column that has the
        length of each tuple's own, in microseconds or as a duration; or times and windows,
        [(time, '5 minutes')], each from its time on. A shorter one ends tuples for good.
    counted_from: results before this time count nothing.
    method: 'per_arrival', a flow over the arrivals of keys, where only keys and order count;
        'per_match', a flow over all matches; 'prices', bounds from both sides for what is large;
        'auto', the first of them that fits.
    """
    if not isinstance(query, Query):
        raise QueryError(f"query must be a WindowJoin, got a {type(query).__name__}")
    if method not in METHODS:
        raise PlanError(f"method must be one of {METHODS}, got {method!r}")
    timeline = timeline_of(query, tables, windows)
    rooms = parse_rooms(query, memory, pool).pools(timeline.times)
    start = _first_instant(timeline, counted_from)
    by_arrival = value is None and method != "per_match" and is_by_arrival(timeline)
    if method == "per_arrival" and not by_arrival:
        raise PlanError(
            "method='per_arrival' is for results that count alike, of equal keys within windows "
            "in which the newest tuples stay longest, got "
            f"{'a value' if value is not None else 'other predicates or windows'}; "
            "use method='auto'"
        )
    matches, worths = None, None
    if by_arrival:
        met = met_by_arrival(timeline, start)
    else:
        matches = matches_of(timeline)
        if value is not None:
            at_an_instant = int(np.bincount(timeline.instant_of).max(initial=1))
            values = result_values(query, value, matches)
            # What does not count must not make the units of what does coarse.
            counted = np.maximum(*matches.places) >= np.searchsorted(timeline.instant_of, start)
            worths = scaled(np.where(counted, values, 0.0), at_an_instant)
        met = met_by_match(
            timeline,
            matches,
            np.ones(len(matches.times), np.int64) if worths is None else worths.units,
            start,
        )
    solved = _solved(met, rooms, "per_arrival" if by_arrival else "per_match", method)
    instants = _kept_until(timeline, met, solved.until)
    produced: float = met.at_once + solved.earned
    upper: float = met.at_once + solved.upper
    total: float = met.total
    if matches is not None and worths is not None and not worths.is_whole:
        produced, total = _worth(timeline, matches, worths.values, instants, start)
        # Units were rounded up: so what they come to is above all that values can.
        upper = max(produced, min(total, upper * worths.unit))
        upper = produced if upper - produced <= _ROUNDED * upper else upper
    kept = {
        name: _times(timeline, stream, instants[stream]) for stream, name in enumerate(query.names)
    }
    return Optimum(produced, upper, total, kept, solved.method)


def _first_instant(timeline: Timeline, counted_from: Any) -> int:
    if counted_from is None:
        return 0
    return int(np.searchsorted(timeline.times, parse_time(counted_from, "counted_from")))


class _Solved(NamedTuple):
    """until: by stream, how far its tuples go. earned, upper: by all of them, and at most."""

    until: tuple[Words, Words]
    earned: int
    upper: int
    method: str


def _solved(met: Met, rooms: Sequence[Words], form: str, method: str) -> _Solved:
    """The best decision of each pool, one for both streams or one for each."""
    shared = len(rooms) == 1
    parts = [met.streams] if shared else [(each,) for each in met.streams]
    holdings = [pooled(part, room) for part, room in zip(parts, rooms, strict=True)]
    is_large = any(flow_size(each) > _LARGEST_FLOW[form] for each in holdings)
    decided, upper, total = None, 0, 0
    if method != "prices" and not (method == "auto" and is_large):
        try:
            decided = [best_by_flow(each) for each in holdings]
        except FlowRangeError:
            if method != "auto":
                raise
    if decided is None:
        bounds = [priced(each) for each in holdings]
        decided, upper = [each.until for each in bounds], sum(each.upper for each in bounds)
        form = "prices"
    for each, until in zip(holdings, decided, strict=True):
        # Whoever decided: the decision must be possible.
        if (held(each, until) > each.room).any() or (until > each.end).any():
            raise AssertionError(f"a decision of {form!r} that cannot be kept")
        total += earned(each, until)
    if shared:  # those of the second stream are numbered on
        tuples, meetings = len(met.streams[0].at), len(met.streams[0].meets)
        decided = [decided[0][:tuples], decided[0][tuples:] - meetings]
    return _Solved((decided[0], decided[1]), total, max(total, upper), form)


def _kept_until(timeline: Timeline, met: Met, until: tuple[Words, Words]) -> tuple[Words, Words]:
    """By stream, for each row of its table the last instant it is kept for; -1 if it is not."""
    instants = []
    for stream, (meetings, rows) in enumerate(zip(met.streams, met.rows, strict=True)):
        last = np.full(len(timeline.tables[stream]), -1, np.int64)
        stays = until[stream] > meetings.first
        last[rows[stays]] = meetings.meets[until[stream][stays] - 1]
        instants.append(last)
    return instants[0], instants[1]


def _worth(
    timeline: Timeline,
    matches: Matches,
    values: Floats,
    kept: tuple[Words, Words],
    start: int,
) -> tuple[float, float]:
    """What comes of what is kept, and what the exact join gives, in values as they are."""
    left, right = (timeline.instant_of[places] for places in matches.places)
    comes = np.maximum(left, right)
    earlier_kept = np.where(left < right, kept[0][matches.rows[0]], kept[1][matches.rows[1]])
    there = (left == right) | (earlier_kept >= comes)
    counted = comes >= start
    return float(values[there & counted].sum()), float(values[counted].sum())


def _times(timeline: Timeline, stream: int, instants: Words) -> pa.Array:
    """Instants as the times that the stream's table has, in the finer unit of both."""
    types = [
        table.schema.field(each.time_column).type
        for table, each in zip(timeline.tables, timeline.query.streams, strict=True)
    ]
    data_type = types[stream]
    if pa.types.is_timestamp(data_type):
        unit = max((each.unit for each in types), key=("s", "ms", "us", "ns").index)
        data_type = pa.timestamp(unit, data_type.tz)
    goes = instants < 0
    if not len(timeline.times):
        return pa.nulls(len(instants), data_type)
    whole = pa.array(timeline.times[np.where(goes, 0, instants)], mask=goes)
    if not pa.types.is_timestamp(data_type):
        return whole
    whole = whole.cast(pa.timestamp("us", data_type.tz))
    try:
        return whole.cast(data_type)
    except pa.ArrowInvalid:  # after 2262, where nanoseconds end
        return whole
