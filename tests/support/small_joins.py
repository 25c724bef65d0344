"""Small random joins over the whole product of options, each a function of its seed.

    PYTHONPATH=tests python -m support.small_joins SEED

shows one of them, and what penstock and both oracles make of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any

import pyarrow as pa

import penstock as ps
from support.second_intake import key_columns
from support.second_question import Question, Side, Window
from support.second_terms import (
    NOT_DISTINCT,
    Column,
    Comparison,
    Function,
    Term,
    text,
)
from support.small_calls import draw_calls
from support.small_columns import KEYS, MANY, Columns, Kind
from support.small_join import NAMES, UNIT_US, SmallJoin, window_text
from support.small_terms import TermMaker

INDEXES = ("hash", "hash", "buckets", "buckets(1)", "buckets(7)", "bplus_tree", "t_tree", "scan")
JOIN_TYPES = ("inner", "inner", "left", "right", "full", "semi", "anti")


def small_join(seed: int) -> SmallJoin:
    return _Maker(Random(seed)).join(seed)


class _Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.how = rng.choice(JOIN_TYPES)
        self.count = 2 if self.how != "inner" else rng.choice((2, 2, 3, 4))
        self.names = NAMES[: self.count]
        self.columns = Columns(rng, self.count)
        self.terms = TermMaker(rng, self.columns)
        self.is_large = self.count == 2 and rng.random() < 0.02

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def join(self, seed: int) -> SmallJoin:
        rng = self.rng
        arrives = [False] * self.count
        if self.chance(0.08):
            arrives = [self.chance(0.6) for _ in self.names]
        time_types = self.time_types(any(arrives))
        units = [UNIT_US[t.unit] if pa.types.is_timestamp(t) else 1 for t in time_types]
        unit = max(units)
        if any(arrives):
            unit = 1_000_000  # the wall clock's, so that windows and silences are alike
        on, on_argument, where = self.predicates(any(arrives))
        bounds, closed, windows = self.windows(unit, has_key=self.has_key(on, where))
        idle = self.chance(0.15) or any(arrives)
        sides = tuple(
            Side(
                windows[stream],
                0 if arrives[stream] else rng.choice((0, 0, 0, 2, 8, 40)) * unit,
                rng.choice((3_000_000, 5_000_000, None)) if idle else None,
                arrives[stream],
            )
            for stream in range(self.count)
        )
        effective = bounds
        if bounds is not None:
            low, high = bounds
            effective = (
                low + (closed in ("right", "neither")),
                high - (closed in ("left", "neither")),
            )
        question = Question(sides, on, where, self.how, effective)
        calls = draw_calls(rng, self.columns, question, unit, self.is_large)
        restarts = sum(call.kind == "restart" for call in calls)
        return SmallJoin(
            seed,
            question,
            calls,
            tuple(self.stream_arguments(s, sides[s], bounds) for s in range(self.count)),
            self.arguments(on_argument, where, bounds, closed, windows),
            tuple(self.schema(s, None if arrives[s] else time_types[s]) for s in range(self.count)),
            self.chance(0.5),
            tuple(self.plan() for _ in range(restarts + 1)),
            self.probe_orders(),
        )

    # what is joined

    def time_types(self, some_arrive: bool) -> list[pa.DataType]:
        if some_arrive:
            return [pa.timestamp("us", "UTC")] * self.count
        form = self.rng.choice(("integer", "integer", "plain", "zone"))
        if form == "integer":
            return [pa.int64()] * self.count
        zone = "UTC" if form == "zone" else None
        finest = self.rng.choice((("us", "ns"), ("us",), ("s", "ms", "us", "ns")))
        return [pa.timestamp(self.rng.choice(finest), zone) for _ in self.names]

    def key_kind(self) -> Kind:
        return MANY if self.is_large else KEYS[self.rng.choice(tuple(KEYS))]

    def predicates(self, some_arrive: bool) -> tuple[Any, Any, tuple[Term, ...]]:
        """Key columns, `on=` as it is written, and terms."""
        rng, on, argument = self.rng, None, None
        where: list[Term] = []
        form = rng.choice(("on", "on", "on", "where", "where", "none"))
        if self.is_large:
            form = "on"
        width = rng.choice((1, 1, 1, 2, 2, 3)) if not self.is_large else 1
        own_names = self.chance(0.3)
        keys = [
            [f"k{part}{name if own_names else ''}" for name in self.names] for part in range(width)
        ]
        if form in ("on", "where"):
            for names in keys:
                self.columns.add_to_all(names, self.key_kind())
        if form == "on":
            on = tuple(tuple(names[s] for names in keys) for s in range(self.count))
            argument = self.on_argument(on, own_names)
        elif form == "where":
            for names in keys:
                sign = NOT_DISTINCT if self.chance(0.25) else "="
                for stream in range(1, self.count):
                    other = rng.randrange(stream)
                    where.append(
                        Comparison(sign, Column(other, names[other]), Column(stream, names[stream]))
                    )
            if self.chance(0.2):  # a second column of a stream must equal the key
                first, last = Column(0, keys[0][0]), Column(self.count - 1, "k9")
                data_type, values = self.columns.of[last.stream][keys[0][last.stream]]
                self.columns.add(last.stream, last.name, Kind((data_type,), values))
                where.append(Comparison("=", first, last))
        elif self.count > 2:
            # Streams linked by different attributes, in a chain or a star.
            for stream in range(1, self.count):
                other, name = rng.randrange(stream), f"u{stream}"
                kind = KEYS[rng.choice(("integer", "text", "one integer"))]
                for one in (other, stream):
                    self.columns.add(one, name, kind)
                sign = NOT_DISTINCT if self.chance(0.2) else "="
                where.append(Comparison(sign, Column(other, name), Column(stream, name)))
        else:
            where.append(self.terms.order())
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            where.append(self.terms.filter() if self.chance(0.35) else self.terms.between_streams())
        if some_arrive:
            where = [term for term in where if "ts" not in repr(term)]
        rng.shuffle(where)
        return on, argument, tuple(where)

    def has_key(self, on: Any, where: tuple[Term, ...]) -> bool:
        """Whether `rows per key` has something to count by."""
        sides = (Side(Window("unbounded")),) * self.count
        return bool(key_columns(Question(sides, on, where))[0])

    def on_argument(self, on: tuple[tuple[str, ...], ...], own_names: bool) -> Any:
        single = len(on[0]) == 1
        if own_names or self.chance(0.2):
            return {
                name: on[s][0] if single and self.chance(0.5) else list(on[s])
                for s, name in enumerate(self.names)
            }
        return on[0][0] if single and self.chance(0.7) else list(on[0])

    def windows(self, unit: int, has_key: bool) -> tuple[Any, str, list[Window]]:
        rng = self.rng
        if self.count == 2 and self.chance(0.25):
            low, high = sorted(rng.choices((-40, -8, -3, -1, 0, 1, 2, 9, 41), k=2))
            closed = rng.choice(("both", "both", "left", "right", "neither"))
            if closed == "both" or low + 1 < high:
                return (low * unit, high * unit), closed, [Window("time")] * 2
        form = rng.choice(("time", "time", "mixed", "mixed", "rows", "tumbling", "arrivals"))
        if form == "tumbling":
            return None, "both", [Window("tumbling", rng.choice((1, 7, 20)) * unit)] * self.count
        if form == "arrivals":
            return None, "both", [Window("arrivals", rng.choice((1, 2, 5, 40)))] * self.count
        kinds = ["rows", "rows per key"] if form == "rows" else ["time"]
        if form == "mixed":
            kinds = ["time", "unbounded", "since", "rows", "rows per key"]
        if not has_key and "rows per key" in kinds:
            kinds.remove("rows per key")
        return None, "both", [self.window(rng.choice(kinds), unit) for _ in self.names]

    def window(self, kind: str, unit: int) -> Window:
        rng = self.rng
        if kind == "time":
            return Window(kind, rng.choice((0, 1, 3, 8, 8, 40)) * unit)
        if kind == "since":
            return Window(kind, rng.choice((-5, 5, 20)) * unit)
        return Window(kind, 0 if kind == "unbounded" else rng.choice((1, 2, 2, 5)))

    # how it is written

    def stream_arguments(self, stream: int, side: Side, bounds: Any) -> dict[str, Any]:
        name = self.names[stream]
        own = bounds is None and side.window.kind not in ("tumbling", "arrivals")
        return {
            "name": name,
            "time": ps.ARRIVAL if side.takes_arrival_time else "ts",
            "window": window_text(side.window) if own else None,
            "lateness": timedelta(microseconds=side.lateness_us),
            "idle_timeout": side.idle_us and timedelta(microseconds=side.idle_us),
        }

    def arguments(
        self, on: Any, where: Sequence[Term], bounds: Any, closed: str, windows: list[Window]
    ) -> dict[str, Any]:
        parts: list[Any] = [
            ps.udf(term.arrow, [text(column, self.names) for column in term.columns])
            if isinstance(term, Function)
            else text(term, self.names)
            for term in where
        ]
        clause: Any = parts or None
        if parts and all(isinstance(part, str) for part in parts) and self.chance(0.6):
            clause = " AND ".join(parts)
        arguments = {"on": on, "where": clause, "how": self.how}
        if self.chance(0.1):
            given_out = self.names[: 1 if self.how in ("semi", "anti") else None]
            columns = {f"{name}_id": f"{name}.id" for name in given_out}
            arguments["select"] = columns if self.chance(0.5) else list(columns.values())
        if bounds is not None:
            arguments["between"] = tuple(timedelta(microseconds=bound) for bound in bounds)
            arguments["closed"] = closed
        elif windows[0].kind in ("tumbling", "arrivals"):
            arguments["within"] = window_text(windows[0])
        return arguments

    def schema(self, stream: int, time_type: pa.DataType | None) -> pa.Schema:
        columns = [(name, data_type) for name, (data_type, _) in self.columns.of[stream].items()]
        time = [] if time_type is None else [("ts", time_type)]
        return pa.schema([*time, *columns, ("id", pa.int32())])

    def plan(self) -> dict[str, str] | None:
        if self.chance(0.2):
            return None
        return {name: self.rng.choice(INDEXES) for name in self.names}

    def probe_orders(self) -> dict[str, list[str]] | None:
        if self.chance(0.5):
            return None
        others = {name: [other for other in self.names if other != name] for name in self.names}
        return {name: self.rng.sample(rest, len(rest)) for name, rest in others.items()}


if __name__ == "__main__":
    from support.small_judge import replay

    sys.exit(replay(int(sys.argv[1])))
