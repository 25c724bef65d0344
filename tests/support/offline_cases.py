"""Joins of two streams under too little memory, small enough for trying everything.

Each of KINDS is one thing that a query or its input can have; the rest is drawn as usual. The
memory, whether it changes, and how it is divided is drawn for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import penstock as ps
from support.clauses import TERMS, keyed
from support.offline_trying import Number, Offline, Pair, Steps, Tuple, in_its_window, pair_of, the
from support.oracle import Combination, OracleStream, Row, Step, answer
from support.scenario import Scenario, table
from support.strategies import KEYS, TIME_TYPES, by_stream

NAMES = ("a", "b")

# What windows a stream can have; some are one for both.
WINDOWS: dict[str, dict[str, Sequence[Any]]] = {
    "time": {"window_us": (0, 1, 4, 10, 40, 40)},
    "unbounded": {"window_us": (inf,)},
    "since": {"window_us": (inf,), "since": (-10, 0, 4)},
    "rows": {"window_us": (inf,), "rows": (1, 2, 3, 70)},
    "rows per key": {"window_us": (inf,), "rows": (1, 2, 3, 70), "per_key": (True,)},
    "arrivals": {"window_us": (inf,), "arrivals": (1, 2, 5, 40)},
    "tumbling": {"window_us": (inf,), "slot_us": (1, 12, 30)},
}
FOR_BOTH = ("arrivals", "tumbling")

ROOM = st.sampled_from((0, 1, 1, 2, 2, 3, 4))  # about 16 tuples come

KINDS = (
    "in step", *WINDOWS, "between", "any key", "where", "windows that change", "windows of tuples",
    "values", "counted from",
)  # fmt: skip


def of_both(results: pa.Table) -> pa.Array:
    """A value that neither of the two tuples tells."""
    return pa.array((7 * results["a_id"].to_numpy() + 3 * results["b_id"].to_numpy()) % 5)


def in_quarters(results: pa.Table) -> Any:
    """As numpy's array, and fractions."""
    return np.asarray(of_both(results)) / 4


# What a user says that a result is worth, and what that is.
VALUES: dict[str, tuple[Any, Callable[[Mapping[str, Any], Mapping[str, Any]], Number]]] = {
    "of a": ("a.id % 3", lambda a, b: a["id"] % 3),
    "of b": ("b.id * 2 + 1", lambda a, b: b["id"] * 2 + 1),
    "of both": (of_both, lambda a, b: (7 * a["id"] + 3 * b["id"]) % 5),
    "fractions": (in_quarters, lambda a, b: (7 * a["id"] + 3 * b["id"]) % 5 / 4),
    "nothing": ("a.id * 0", lambda a, b: 0),
}


@dataclass(frozen=True)
class Case:
    """What `ps.optimum` is asked. Times are whole microseconds, and given so, or `written` as
    a datetime or as text.

    scenario: of one step, its rows in order of time. changes: lengths of windows, in
    microseconds. own: the streams whose tuples bring the length of their window, `w`. value: of
    VALUES.
    """

    scenario: Scenario
    memory: int | Steps
    pool: Any = "shared"
    changes: Mapping[str, Steps] = field(default_factory=dict)
    own: Collection[str] = ()
    value: str | None = None
    counted_from: int | None = None
    written: str = "microseconds"

    @property
    def rows(self) -> Mapping[str, Sequence[Row]]:
        (step,) = self.scenario.steps
        return step.rows

    @property
    def tables(self) -> dict[str, pa.Table]:
        tables = {}
        for stream in self.scenario.streams:
            rows = self.rows[stream.name]
            tables[stream.name] = table(self.scenario.schema(stream), rows)
            if stream.name in self.own:
                # The one is given as a number, the other as a length of time.
                kind = pa.int64() if stream.name == "a" else pa.duration("us")
                own = pa.array([row["w"] for row in rows], pa.int64()).cast(kind)
                tables[stream.name] = tables[stream.name].append_column("w", own)
        return tables

    @property
    def plain(self) -> bool:
        """Whether tuples of one stream and key differ by nothing but when they come and go."""
        low, high = self.scenario.between or (0, 0)
        lagged = low > 0 or high < 0  # they would also have to wait
        return not (
            self.scenario.where or self.scenario.counted or self.own or self.value or lagged
        )

    def instant(self, ts: int) -> Any:
        """As a user gives it."""
        if self.written == "microseconds":
            return ts
        moment = replace(self.scenario, time_type=TIME_TYPES[1]).instant(ts)
        assert not isinstance(moment, int)
        return moment if self.written == "datetime" else moment.isoformat()

    def optimum(self, method: str = "auto", **others: Any) -> ps.Optimum:
        memory, value = self.memory, self.value
        windows: dict[str, Any] = dict.fromkeys(self.own, "w")
        for name, steps in self.changes.items():
            lengths = [(ts, timedelta(microseconds=length)) for ts, length in steps]
            windows[name] = [(self.instant(ts), length) for ts, length in lengths]
        given = {
            "memory": memory
            if isinstance(memory, int)
            else [(self.instant(ts), rows) for ts, rows in memory],
            "pool": self.pool,
            "value": None if value is None else VALUES[value][0],
            "windows": windows or None,
            "counted_from": None if self.counted_from is None else self.instant(self.counted_from),
        }
        return ps.optimum(self.scenario.query, self.tables, **{**given, **others}, method=method)

    @property
    def offline(self) -> Offline:
        """The same as something to try."""
        return Offline(
            NAMES,
            {(name, row["id"]): row["ts"] for name in NAMES for row in self.rows[name]},
            [self.pair(each) for each in self.answer()],
            [(0, self.memory)] if isinstance(self.memory, int) else self.memory,
            self.pool,
        )

    def pair(self, combination: Combination) -> Pair:
        (a, b), ts = combination
        value = 1 if self.value is None else VALUES[self.value][1](the(a), the(b))
        counts = self.counted_from is None or ts >= self.counted_from
        return pair_of(NAMES, combination, value if counts else 0)

    def answer(self) -> list[Combination]:
        """The exact one."""
        scenario = self.scenario
        streams = [
            replace(each, window_us=inf) if each.name in (*self.changes, *self.own) else each
            for each in scenario.streams
        ]
        terms = list(scenario.where.values())
        outcomes = answer(streams, scenario.steps, scenario.between, terms)
        return [
            (rows, ts)
            for outcome in outcomes
            for rows, ts in outcome.results
            if all(map(self.in_window, NAMES, rows, [ts] * 2))
        ]

    def in_window(self, name: str, row: Row | None, now: int) -> bool:
        """Whether a tuple is, of windows that the oracle does not know."""
        row = the(row)
        if name in self.own:
            return bool(now <= row["ts"] + row["w"])
        if name in self.changes:
            window_us = int(self.scenario.streams[NAMES.index(name)].window_us)
            return in_its_window(row["ts"], now, window_us, self.changes[name])
        return True

    def kept(self, optimum: ps.Optimum) -> dict[Tuple, int | None]:
        """Until when each tuple is kept."""
        return {
            (name, row["id"]): until
            for name in NAMES
            for row, until in zip(
                self.rows[name], optimum.kept[name].cast(pa.int64()).to_pylist(), strict=True
            )
        }


@st.composite
def cases(draw: st.DrawFn, kind: str) -> Case:
    """kind: one of KINDS."""
    key_types, domains = KEYS["few"]
    if kind == "any key":
        key_types, domains = KEYS[draw(st.sampled_from(sorted(KEYS)))]
    columns = ("k", "l", "m")[: len(key_types)]
    where, between = {}, None
    if kind == "where":
        fitting = [text for text, (over, _) in TERMS.items() if set(over) <= set(NAMES)]
        chosen = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=2, unique=True))
        where = {text: TERMS[text] for text in chosen}
        key_types, domains, columns = (pa.int64(),) * 2, ((0, 1, 1, 2, 3, None),) * 2, ("x", "y")
    if kind == "between":
        low, high = sorted(draw(st.tuples(*[st.sampled_from((-40, -8, -1, 0, 2, 9, 41))] * 2)))
        between = (low, high)
    rows = draw(tables(kind, columns, domains))
    scenario = Scenario(
        draw(streams(kind, columns)),
        [Step(rows)],
        key_types,
        draw(st.sampled_from(TIME_TYPES)),
        between=between,
        where=where,
        as_udf=draw(st.sets(st.sampled_from(list(where)))) if where else (),
    )
    scenario = keyed(scenario) if where else scenario
    times = [row["ts"] for each in rows.values() for row in each] or [0]
    moments = st.integers(min(times) - 2, max(times) + 2)
    changing = draw(st.sets(st.sampled_from(NAMES), min_size=1))
    lengths = st.sampled_from((0, 1, 4, 10, 40))
    return Case(
        scenario,
        draw(ROOM | steps(moments, ROOM)),
        draw(st.sampled_from(("shared", "shared", "fixed", {"a": 3, "b": 1}, {"a": 0, "b": 0.5}))),
        changes={name: draw(steps(moments, lengths)) for name in sorted(changing)}
        if kind == "windows that change"
        else {},
        own=sorted(changing) if kind == "windows of tuples" else (),
        value=draw(st.sampled_from(sorted(VALUES))) if kind == "values" else None,
        counted_from=draw(moments) if kind == "counted from" else None,
        written=draw(st.sampled_from(("microseconds", "datetime", "text"))),
    )


@st.composite
def streams(draw: st.DrawFn, kind: str, key: tuple[str, ...]) -> list[OracleStream]:
    """With windows of a kind, or of time; of a clause of any."""
    mixed = [each for each in WINDOWS if each not in FOR_BOTH]
    for_both = {name: draw(st.sampled_from(each)) for name, each in WINDOWS.get(kind, {}).items()}
    made = []
    for name in NAMES:
        window = kind if kind in WINDOWS else "time"
        if kind == "where" or (kind in mixed and name == "b" and draw(st.booleans())):
            window = draw(st.sampled_from(mixed))
        drawn = {each: draw(st.sampled_from(of)) for each, of in WINDOWS[window].items()}
        made.append(OracleStream(name, key=key, **(for_both if kind in FOR_BOTH else drawn)))
    return made


@st.composite
def tables(
    draw: st.DrawFn, kind: str, columns: Sequence[str], domains: Sequence[Sequence[Any]]
) -> dict[str, list[Row]]:
    """The rows of both streams in order of time: one of each at every instant, or as they come,
    several or none at one."""
    values = st.tuples(*(st.sampled_from(domain) for domain in domains))
    # A few of the domain, so that most match.
    keys = st.sampled_from(draw(st.lists(values, min_size=2, max_size=4)))
    gaps = st.sampled_from((0, 0, 1, 1, 1, 2, 5, 17))
    in_step = kind == "in step" or draw(st.integers(0, 3)) == 0
    now = draw(st.sampled_from((0, 0, -20, 1_700_000_000_000_000)))
    comes = []
    fewest = draw(st.sampled_from((14, 14, 14, 14, 5, 0)))
    for number in range(draw(st.integers(fewest, fewest + 4))):
        name = NAMES[number % 2] if in_step else draw(st.sampled_from(NAMES))
        now += number % 2 == 0 if in_step else draw(gaps)
        row = {"ts": int(now), **dict(zip(columns, draw(keys), strict=True))}
        row |= {"id": number, "note": None, "w": draw(st.sampled_from((0, 1, 4, 10, 40)))}
        comes.append((name, row))
    return by_stream(comes, NAMES)


def steps(
    moments: st.SearchStrategy[int], values: st.SearchStrategy[int]
) -> st.SearchStrategy[list[tuple[int, int]]]:
    """From some moments on so much."""
    chosen = st.dictionaries(moments, values, min_size=1, max_size=4)
    return chosen.map(lambda each: sorted(each.items()))
