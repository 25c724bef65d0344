"""The definition: what a sliding-window join answers, as plain nested loops.

A combination takes one tuple of each stream. It is in the answer when all predicates hold
and every tuple is in its window at the latest of them. Equal tuples count as often as they
came. A tuple behind the join's watermark at the start of the step that brings it is late, and
in no combination. Nothing else decides the answer: not the batches, not the order of arrival
but among tuples of one stream and one time. A combination comes out with the last of its
tuples; where rows or arrivals are counted, once nothing that comes can be before it.

Of two streams, outer joins give out tuples in no combination too, alone, when they have left
their window for good; one without a key at once. A semi join gives out the left tuples that are
in some combination, with the first of them, and an anti join those in none.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from math import inf
from typing import Any, NamedTuple

Row = Mapping[str, Any]  # event times are whole microseconds, null is None
Bounds = tuple[int, int]  # on the difference between the second stream's time and the first's
Term = tuple[tuple[str, ...], Callable[..., bool | None]]  # of which streams' rows, what
Combination = tuple[tuple[Row | None, ...], int]  # a row of each stream, and the event time

PRESERVED = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}


@dataclass(frozen=True)
class OracleStream:
    """A tuple is in its window at the latest tuple of a combination when it is at most
    `window_us` before it, in its slot, not before `since`, among the last `rows` of its stream
    (or of its key), and within `arrivals` of it among the tuples of all streams; what is not
    given does not count. The order that rows and arrivals are counted in is that of time;
    then of streams; then of arrival."""

    name: str
    window_us: float = inf
    slot_us: int | None = None
    since: float = -inf
    rows: int | None = None
    per_key: bool = False
    arrivals: int | None = None
    key: tuple[str, ...] = ("k",)
    time: str = "ts"
    lateness_us: int = 0
    idle_timeout_s: float = inf
    max_jump_us: float = inf  # a gap in its times that is longer counts as one of this length


@dataclass(frozen=True)
class Step:
    """One call: a batch of rows by stream, watermarks set by hand, or windows that get another
    length, `window_us` or `rows`; `at` is wall time."""

    rows: Mapping[str, Sequence[Row]]
    advance: Mapping[str, int] = field(default_factory=dict)
    resize: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    at: float = 0.0


@dataclass
class Outcome:
    """What a step brings, and what is so after it. Live is what can still match."""

    late: dict[str, list[Row]] = field(default_factory=dict)
    results: list[Combination] = field(default_factory=list)
    watermark: float = -inf
    live: dict[str, int] = field(default_factory=dict)
    jumps: dict[str, int] = field(default_factory=dict)  # rows behind such a gap so far


class Arrival(NamedTuple):
    """A row that is not late; which step brought it; its place among all of all streams."""

    row: Row
    ts: int
    step: int
    place: int


def answer(
    streams: Sequence[OracleStream],
    steps: Sequence[Step],
    between: Bounds | None = None,
    where: Sequence[Term] = (),
    how: str = "inner",
) -> list[Outcome]:
    """What each step brings; where tuples wait or come out alone, also what the end brings.

    A term over one stream alone decides which of its tuples enter the window at all.
    """
    outcomes, admitted = run_clock(streams, steps, [term for term in where if len(term[0]) == 1])
    names = [stream.name for stream in streams]
    counted = any(stream.rows or stream.arrivals for stream in streams)
    if counted or how in PRESERVED:
        outcomes.append(Outcome(watermark=inf))
    met: dict[int, int] = {}  # by place: the step of a tuple's first combination
    sized = windows_by_step(streams, steps, len(outcomes))
    for arrivals in product(*(admitted[stream.name] for stream in streams)):
        latest = max(arrivals, key=lambda arrival: arrival.place)
        rows = [arrival.row for arrival in arrivals]
        by_name = dict(zip(names, rows, strict=True))
        if not (equal_keys(streams, rows) and all(holds(term, by_name) for term in where)):
            continue
        step = max(arrival.step for arrival in arrivals)
        while counted and outcomes[step].watermark <= latest.ts:
            step += 1
        near = (
            all(
                in_window(stream, arrival, latest, admitted[stream.name])
                for stream, arrival in zip(sized[step], arrivals, strict=True)
            )
            and not any(
                gone(sized[before][which], arrival, outcomes[before].watermark, admitted)
                for which, arrival in enumerate(arrivals)
                for before in range(arrival.step, step)
                if sized[before] != sized[step]
            )
            if between is None
            else between[0] <= arrivals[1].ts - arrivals[0].ts <= between[1]
        )
        if near:
            for arrival in arrivals:
                met[arrival.place] = min(step, met.get(arrival.place, step))
            if how not in ("semi", "anti"):
                outcomes[step].results.append((tuple(rows), latest.ts))
    for which, stream in enumerate(streams):
        for each in admitted[stream.name]:
            if how == "semi" and which == 0 and each.place in met:
                outcomes[met[each.place]].results.append(((each.row,), each.ts))
            takes_part = each.ts >= stream.since
            if which in PRESERVED.get(how, ()) and takes_part and each.place not in met:
                step = each.step
                while not gone(sized[step][which], each, outcomes[step].watermark, admitted):
                    step += 1
                alone = [each.row if which == number else None for number in range(2)]
                outcomes[step].results.append((tuple(alone[: 1 if how == "anti" else 2]), each.ts))
    for last, outcome in enumerate(outcomes):
        for stream in streams:
            there = [each for each in admitted[stream.name] if each.step <= last]
            outcome.live[stream.name] = sum(
                equal_keys([stream] * 2, [each.row] * 2)
                and each.ts >= stream.since
                and ends(stream, each.ts) >= outcome.watermark
                for each in there
            )
    return outcomes


def windows_by_step(
    streams: Sequence[OracleStream], steps: Sequence[Step], count: int
) -> list[list[OracleStream]]:
    """The streams as they are in each step, and after the last."""
    sized, now = [], list(streams)
    for step in steps:
        now = [replace(stream, **step.resize.get(stream.name, {})) for stream in now]
        sized.append(now)
    return sized + [now] * (count - len(sized))


def equal_keys(streams: Sequence[OracleStream], rows: Sequence[Row]) -> bool:
    """Column by column. Null equals nothing, NaN equals nothing, not even itself."""
    keys = [[row[column] for column in s.key] for s, row in zip(streams, rows, strict=True)]
    columns = zip(*keys, strict=True)
    return all(a is not None and a == b for values in columns for a, b in pairwise(values))


def holds(term: Term, rows: Mapping[str, Row]) -> bool:
    """SQL's: what is null is not true."""
    names, function = term
    return function(*(rows[name] for name in names)) is True


def ends(stream: OracleStream, ts: int) -> float:
    """The last time at which a tuple is in its window."""
    if stream.slot_us:
        return (ts // stream.slot_us + 1) * stream.slot_us - 1
    return ts + stream.window_us


def in_window(
    stream: OracleStream, arrival: Arrival, latest: Arrival, admitted: Sequence[Arrival]
) -> bool:
    return (
        latest.ts <= ends(stream, arrival.ts)
        and arrival.ts >= stream.since
        and not is_outnumbered(stream, arrival, (o for o in admitted if o.place <= latest.place))
        and (stream.arrivals is None or latest.place - arrival.place <= stream.arrivals)
    )


def is_outnumbered(stream: OracleStream, each: Arrival, admitted: Iterable[Arrival]) -> bool:
    """Whether so many of its stream, or of its key, came after a tuple that it has left."""
    if stream.rows is None:
        return False
    newer = [
        other
        for other in admitted
        if each.place < other.place
        and (not stream.per_key or equal_keys([stream] * 2, [each.row, other.row]))
    ]
    return len(newer) >= stream.rows


def gone(
    stream: OracleStream, each: Arrival, watermark: float, admitted: Mapping[str, list[Arrival]]
) -> bool:
    """Whether a tuple can meet nothing more: it has no key, or all that comes finds it gone."""
    if watermark == inf or not equal_keys([stream] * 2, [each.row] * 2):
        return True
    if stream.rows:
        released = [other for other in admitted[stream.name] if other.ts < watermark]
        return is_outnumbered(stream, each, released)
    if stream.arrivals:
        everything = [other for rows in admitted.values() for other in rows]
        numbered = sum(other.ts < watermark for other in everything)
        return numbered > each.place + stream.arrivals
    return ends(stream, each.ts) < watermark


def reached_after(stream: OracleStream, before: float, times: Sequence[int]) -> float:
    """How far a stream is in time after a step with these times, in order.

    Of a first step it is its median that counts as known before.
    """
    if before == -inf and times:
        before = times[(len(times) - 1) // 2]
    for ts in times:
        if ts > before + stream.max_jump_us:
            return before + stream.max_jump_us
        before = max(before, ts)
    return before


def run_clock(
    streams: Sequence[OracleStream], steps: Sequence[Step], filters: Sequence[Term]
) -> tuple[list[Outcome], dict[str, list[Arrival]]]:
    """The late rows of each step; and the others, as arrivals."""
    watermark, own = -inf, {stream.name: -inf for stream in streams}
    heard = {stream.name: 0.0 for stream in streams}  # the wall time of its last tuple
    jumps = {stream.name: 0 for stream in streams}
    line: list[tuple[int, int, int, int, Row]] = []  # ts, stream, arrival, step, row
    outcomes: list[Outcome] = []

    def lowest(at: float) -> float:
        awake = [own[s.name] for s in streams if at - heard[s.name] <= s.idle_timeout_s]
        return max(watermark, min(awake, default=watermark))  # it never goes back

    for number, step in enumerate(steps):
        watermark = lowest(step.at)  # this one holds for the whole step
        outcomes.append(outcome := Outcome())
        for which, s in enumerate(streams):
            rows = step.rows.get(s.name, ())
            outcome.late[s.name] = [row for row in rows if row[s.time] < watermark]
            for row in rows:
                passes = all(holds(term, {s.name: row}) for term in filters if term[0] == (s.name,))
                if row[s.time] >= watermark and passes:
                    line.append((row[s.time], which, len(line), number, row))
            times = sorted(row[s.time] for row in rows)
            reached = reached_after(s, own[s.name] + s.lateness_us, times) - s.lateness_us
            jumps[s.name] += sum(ts > reached + s.lateness_us for ts in times)
            own[s.name] = max(reached, step.advance.get(s.name, -inf))
            heard[s.name] = step.at if rows else heard[s.name]
        outcome.watermark = watermark = lowest(step.at)
        outcome.jumps = dict(jumps)
    admitted: dict[str, list[Arrival]] = {stream.name: [] for stream in streams}
    for place, (ts, which, _, number, row) in enumerate(sorted(line, key=lambda each: each[:3])):
        admitted[streams[which].name].append(Arrival(row, ts, number, place))
    return outcomes, admitted
