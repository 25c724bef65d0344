"""Scenarios for Hypothesis: small, but with everything that has ever broken a join.

Times come nearly in order with ties, disorder and leaps; keys from tiny domains, so that
most tuples match; batches cut anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import inf, nan
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import penstock as ps
from penstock.model.plan import parse_index
from support.oracle import Bounds, OracleStream, Row, Step
from support.scenario import Indexes, Scenario

INDEXES = ("hash", "buckets", "buckets(1)", "buckets(7)", "bplus_tree", "t_tree", "scan")
DAY = date(1969, 7, 20)
NAMES = ("a", "b", "c", "d")


def mix(seed: int, word: int) -> int:
    """How penstock folds a word into a hash: MurmurHash3's finaliser of seed * golden + word."""
    value = (seed * GOLDEN + word) & WORD
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & WORD
    return value ^ value >> 33


def colliding(first: Sequence[int], second: int) -> list[int]:
    """For each first word a second one, so that the hashes of all the pairs are equal."""
    wanted = mix(0, first[0]) * GOLDEN + second
    return [(wanted - mix(0, word) * GOLDEN) & WORD for word in first]


GOLDEN, WORD = 0x9E3779B97F4A7C15, (1 << 64) - 1
FIRST = (1, 2)
SECOND = colliding(FIRST, 4)
BLOBS_OF_ONE_HASH = [
    a.to_bytes(8, "little") + b.to_bytes(8, "little") for a, b in zip(FIRST, SECOND, strict=True)
]

# Types of the key columns, and a domain for each of them.
KEYS: dict[str, tuple[tuple[pa.DataType, ...], tuple[Sequence[Any], ...]]] = {
    "one": ((pa.int64(),), ((7,),)),
    "few": ((pa.int64(),), ((1, 2, 3, None),)),
    # Whatever an index takes of an integer, its low bits, its high bits or their mix, some
    # of these share it.
    "far": (
        (pa.int64(),),
        ((0, -1, 1 << 10, 1 << 20, 1 << 32, 1 << 62, -(1 << 63), (1 << 63) - 1, 0x9E3779B9),),
    ),
    "unsigned": ((pa.uint64(),), ((0, 1, 1 << 63, (1 << 64) - 1, None),)),
    # Different keys of equal hash: only their values tell them apart.
    "colliding bytes": ((pa.binary(),), ((*BLOBS_OF_ONE_HASH, b"", None),)),
    "colliding pairs": ((pa.int64(), pa.uint64()), (FIRST, SECOND)),
    "float": ((pa.float64(),), ((0.0, -0.0, 1.5, nan, None),)),
    "string": ((pa.string(),), (("", "x", "xx", "x\0", "é", None),)),
    "bool": ((pa.bool_(),), ((True, False, None),)),
    "pair": ((pa.int64(), pa.string()), ((1, 2, None), ("", "x", None))),
    "swapped": ((pa.int32(), pa.int32()), ((1, 2), (1, 2))),
    "triple": ((pa.string(), pa.float64(), pa.date32()), (("a", "ab"), (1.0, nan), (DAY, None))),
}
TIME_TYPES = (pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
SPLITS = ("one push", "a stream a push", "cuts", "cuts, a stream a push", "cuts", "a row a push")

Arrival = tuple[str, Row]  # to which stream comes what


def indexes(names: Sequence[str]) -> st.SearchStrategy[Indexes]:
    return st.fixed_dictionaries({name: st.sampled_from(INDEXES) for name in names})


def serving(query: ps.WindowJoin, name: str) -> list[str]:
    """The indexes that can be asked for something by which a window is found."""
    words = query.access.words[query.position(name)]
    return [index for index in INDEXES if any(parse_index(index).serves(word) for word in words)]


@st.composite
def streams(
    draw: st.DrawFn,
    key: tuple[str, ...],
    *,
    in_time: bool = False,
    idle: bool = False,
    jumps: bool = False,
) -> tuple[OracleStream, ...]:
    """2 to 4 streams; when `in_time`, their lateness covers all disorder `arrivals` makes."""
    return tuple(
        OracleStream(
            name,
            window_us=draw(st.sampled_from((0, 1, 3, 8, 8, 40, 40))),
            key=key,
            lateness_us=1 << 40 if in_time else draw(st.sampled_from((0, 0, 0, 2, 8, 40))),
            idle_timeout_s=draw(st.sampled_from((3.5, 9.5, inf))) if idle else inf,
            max_jump_us=draw(st.sampled_from((1, 4, 20, inf))) if jumps else inf,
        )
        for name in NAMES[: draw(st.integers(2, 4))]
    )


@st.composite
def other_windows(
    draw: st.DrawFn, joined: Sequence[OracleStream], *, counted: bool = True
) -> tuple[OracleStream, ...]:
    """The same streams with windows of every other kind, mixed where that is allowed.

    counted: of rows and arrivals, too.
    """
    kind = draw(st.sampled_from(("mixed", "mixed", "mixed", "tumbling", *["arrivals"] * counted)))
    slot, places = draw(st.sampled_from((1, 7, 20))), draw(st.sampled_from((1, 2, 5, 40)))
    changed = []
    for stream in joined:
        windows: dict[str, dict[str, Any]] = {
            "time": {},
            "unbounded": {"window_us": inf},
            "since": {"window_us": inf, "since": draw(st.sampled_from((-5, 5, 20)))},
            "rows": {"window_us": inf, "rows": draw(st.sampled_from((1, 2, 5, 70)))},
            "per key": {
                "window_us": inf,
                "rows": draw(st.sampled_from((1, 2, 5, 70))),
                "per_key": True,
            },
            "tumbling": {"window_us": inf, "slot_us": slot},
            "arrivals": {"window_us": inf, "arrivals": places},
        }
        mixed = list(windows)[: 5 if counted else 3]
        one = draw(st.sampled_from(mixed)) if kind == "mixed" else kind
        changed.append(replace(stream, **windows[one]))
    return tuple(changed)


@st.composite
def arrivals(
    draw: st.DrawFn, names: Sequence[str], key: tuple[str, ...], domains: Sequence[Sequence[Any]]
) -> list[Arrival]:
    """Rows in the order they come, in time up to some disorder."""
    everything = st.tuples(*(st.sampled_from(domain) for domain in domains))
    # A few keys of the domain, or combinations of many columns and streams would never match.
    keys = draw(st.lists(everything, min_size=1, max_size=4))
    moves = st.tuples(
        st.sampled_from(names),
        st.sampled_from((0, 0, 0, 1, 1, 2, 5, 30)),  # how far time goes on
        st.sampled_from((0, 0, 1, 3, 12, 25)),  # how far behind it this row is
        st.sampled_from(keys),
    )
    now = draw(st.sampled_from((0, -20, 1_700_000_000_000_000)))
    result: list[Arrival] = []
    fewest = draw(st.sampled_from((18, 18, 0)))
    comes = draw(st.lists(moves, min_size=fewest, max_size=36))
    for number, (name, ahead, behind, values) in enumerate(comes):
        now += ahead
        note = (None, "", f"note {number}")[number % 3]
        row = {"ts": now - behind, **dict(zip(key, values, strict=True))}
        result.append((name, {**row, "id": number, "note": note}))
    return result


def by_stream(chunk: Sequence[Arrival], names: Sequence[str]) -> dict[str, list[Row]]:
    """A batch of some rows; streams without one are in it too, empty."""
    return {name: [row for owner, row in chunk if owner == name] for name in names}


@st.composite
def batches(
    draw: st.DrawFn, comes: Sequence[Arrival], names: Sequence[str]
) -> list[dict[str, list[Row]]]:
    """The rows, cut into pushes."""
    split = draw(st.sampled_from(SPLITS))
    if split == "a row a push":
        chunks = [[arrival] for arrival in comes]
    elif split.startswith("cuts"):
        cuts = sorted(draw(st.lists(st.integers(0, len(comes)), min_size=1, max_size=6)))
        chunks = [
            list(comes[start:end])
            for start, end in zip([0, *cuts], [*cuts, len(comes)], strict=True)
        ]
    else:
        chunks = [list(comes)]
    pushes = [by_stream(chunk, names) for chunk in chunks]
    if split.endswith("a stream a push"):
        order = draw(st.permutations(names))
        pushes = [{name: push[name]} for push in pushes for name in order]
    if draw(st.booleans()):  # leave empty batches in, or out
        pushes = [{name: rows for name, rows in push.items() if rows} for push in pushes]
    return [push for push in pushes if push]


@dataclass(frozen=True)
class LongScenario:
    """Hundreds of rows: rings wrap, grow and get holes, indexes are built anew. The seed
    decides the rows: Hypothesis could neither shrink nor print so many."""

    seed: int
    n: int
    windows_us: tuple[int, ...]
    lateness_us: int
    disorder: int
    keys: int
    text: bool
    batch_rows: int
    between: Bounds | None = None  # for two streams; one may have to come before the other
    in_turn: bool = False  # each push is of one stream
    default_indexes: bool = False
    rows: int | None = None

    def scenario(self) -> Scenario:
        rng = np.random.default_rng(self.seed)
        names = NAMES[: self.n]
        rows = self.rows or {2: 520, 3: 135}[self.n]
        times = np.cumsum(rng.integers(0, 3, rows)) - rng.integers(0, self.disorder + 1, rows)
        comes: list[Arrival] = []
        for number, (ts, key) in enumerate(
            zip(times, rng.integers(0, self.keys, rows), strict=True)
        ):
            row = {"ts": int(ts), "k": f"key {key}" if self.text else int(key)}
            note = None if number % 5 == 0 else "x" * (number % 40)
            comes.append((str(rng.choice(names)), {**row, "id": number, "note": note}))
        starts = range(0, rows, self.batch_rows)
        pushes = [by_stream(comes[at : at + self.batch_rows], names) for at in starts]
        if self.in_turn:
            pushes = [{name: push[name]} for push in pushes for name in reversed(names)]
        steps = [Step(push) for push in pushes]
        bounds = self.between if self.n == 2 else None
        windows_us = (bounds[1], -bounds[0]) if bounds else self.windows_us
        plans = [{name: str(rng.choice(INDEXES)) for name in names} for _ in range(3)]
        return Scenario(
            [
                OracleStream(name, window_us, lateness_us=self.lateness_us)
                for name, window_us in zip(names, windows_us, strict=False)
            ],
            steps,
            (pa.string() if self.text else pa.int64(),),
            indexes=None if self.default_indexes else plans[0],
            restarts={int(rng.integers(0, len(steps))): plan for plan in plans[1:]},
            between=bounds,
        )


LAGGED: tuple[Bounds, ...] = ((-90, -40), (40, 90), (-300, -1), (1, 300), (-60, -59))


def long_scenarios(**fixed: st.SearchStrategy[Any]) -> st.SearchStrategy[LongScenario]:
    """fixed: what to draw some of the fields from instead."""
    drawn: dict[str, st.SearchStrategy[Any]] = {
        "seed": st.integers(0, 1 << 32),
        "n": st.sampled_from((2, 3)),
        "windows_us": st.tuples(*[st.sampled_from((0, 12, 100))] * 3),
        "lateness_us": st.sampled_from((0, 5, 80, 5000)),
        "disorder": st.sampled_from((0, 5, 80)),
        "keys": st.sampled_from((2, 30, 300, 10_000)),
        "text": st.booleans(),
        "batch_rows": st.sampled_from((6, 35, 120, 2000)),
        "between": st.sampled_from((None, None, (-90, 3), (-3, 90), *LAGGED)),
        "in_turn": st.booleans(),
        "default_indexes": st.booleans(),
    }
    return st.builds(LongScenario, **{**drawn, **fixed})


@st.composite
def scenarios(
    draw: st.DrawFn,
    key: str | None = None,
    *,
    in_time: bool = False,
    restarts: bool = False,
    idle: bool = False,
    windows: bool = False,
    counted: bool = True,
    how: str = "inner",
    resizes: bool = False,
    jumps: bool = False,
) -> Scenario:
    """key: a row of KEYS; any of them when not given. windows: of other kinds than time;
    counted: of rows and arrivals, too. jumps: with a cap on how far a watermark goes at once."""
    key_types, domains = KEYS[key or draw(st.sampled_from(sorted(KEYS)))]
    columns = ("k", "l", "m")[: len(key_types)]
    joined = draw(streams(columns, in_time=in_time, idle=idle, jumps=jumps))
    joined = joined[: None if how == "inner" else 2]
    names = [stream.name for stream in joined]
    bounds = None
    if windows and len(joined) == 2 and draw(st.booleans()):
        low, high = sorted(draw(st.tuples(*[st.sampled_from((-40, -8, -1, 0, 2, 9, 41))] * 2)))
        bounds = (low, high)
        joined = tuple(
            replace(stream, window_us=length)
            for stream, length in zip(joined, (high, -low), strict=True)
        )
    elif windows:
        joined = draw(other_windows(joined, counted=counted))
    comes = draw(arrivals(names, columns, domains))
    steps, at, newest = [], 0.0, 0
    for push in draw(batches(comes, names)):
        at += draw(st.sampled_from((0, 1, 5))) if idle else 0
        steps.append(Step(push, at=at))
        newest = max([newest, *(row["ts"] for rows in push.values() for row in rows)])
        if not in_time and draw(st.integers(0, 5)) == 5:
            ahead = draw(st.integers(-10, 10))
            steps.append(Step({}, {draw(st.sampled_from(names)): newest + ahead}, at=at))
        if resizes and draw(st.integers(0, 2)) == 2:
            stream = draw(st.sampled_from(joined))
            if stream.rows and not stream.per_key:
                window = {"rows": draw(st.sampled_from((1, 2, 5, 70)))}
            elif stream.window_us < inf and not bounds:
                window = {"window_us": draw(st.sampled_from((0, 1, 3, 8, 40)))}
            else:
                continue
            steps.append(Step({}, resize={stream.name: window}, at=at))
    orders = {
        name: draw(st.permutations([other for other in names if other != name])) for name in names
    }
    saved: dict[int, Indexes] = {}
    if restarts and steps:
        after = st.lists(st.integers(0, len(steps) - 1), min_size=1, max_size=3)
        saved = {number: draw(indexes(names)) for number in draw(after)}
    return Scenario(
        joined,
        steps,
        key_types,
        draw(st.sampled_from(TIME_TYPES)),
        draw(indexes(names)),
        orders,
        saved,
        bounds,
        how=how,
        schemas_given=draw(st.booleans()),
    )
