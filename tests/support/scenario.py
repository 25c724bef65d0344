"""A scenario: a query, what is fed to it in which steps, and how it is evaluated.

`feed` gives it to penstock, `check` compares the run with the oracle's, step by step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

import pyarrow as pa

import penstock as ps
from support.oracle import (
    PRESERVED,
    Bounds,
    Combination,
    OracleStream,
    Outcome,
    Row,
    Step,
    Term,
    answer,
)

Indexes = str | Mapping[str, str] | None

EPOCH = datetime(1970, 1, 1)
INT = pa.int64()


@dataclass(frozen=True)
class Scenario:
    """`restarts` names the steps after which the join is saved and restored, and with
    which indexes it then goes on; `memory` those before which it gets another limit. Every row
    has its time, its key, `id` and `note`."""

    streams: Sequence[OracleStream]
    steps: Sequence[Step]
    key_types: Sequence[pa.DataType] = (INT,)
    time_type: pa.DataType = INT
    indexes: Indexes = None
    probe_orders: Mapping[str, Sequence[str]] | None = None
    restarts: Mapping[int, Indexes] = field(default_factory=dict)
    between: Bounds | None = None
    where: Mapping[str, Term] = field(default_factory=dict)  # by its text
    how: str = "inner"
    by_arrival: Collection[str] = ()  # streams whose times are not given, but those of `at`
    as_udf: Collection[str] = ()  # which of these texts are functions instead
    limits: ps.Limits | None = None
    memory: Mapping[int, str] = field(default_factory=dict)
    schemas_given: bool = True  # at the start; else a stream is not known until it is pushed

    @property
    def query(self) -> ps.WindowJoin:
        return ps.WindowJoin(
            [
                ps.Stream(
                    stream.name,
                    time=ps.ARRIVAL if stream.name in self.by_arrival else stream.time,
                    window=None if self.between else window_of(stream),
                    lateness=timedelta(microseconds=stream.lateness_us),
                    idle_timeout=None
                    if stream.idle_timeout_s == inf
                    else timedelta(seconds=stream.idle_timeout_s),
                    max_jump=None
                    if stream.max_jump_us == inf
                    else timedelta(microseconds=stream.max_jump_us),
                )
                for stream in self.streams
            ],
            on=None if self.where else {each.name: list(each.key) for each in self.streams},
            where=self.clause,
            how=self.how,
            between=self.between and tuple(timedelta(microseconds=each) for each in self.between),
        )

    @property
    def clause(self) -> Any:
        """The terms as a user writes them: text, functions, or both."""
        text = " AND ".join(text for text in self.where if text not in self.as_udf)
        udfs = [udf_of(self.where[text]) for text in self.where if text in self.as_udf]
        return [*([text] if text else []), *udfs] if udfs else text or None

    @property
    def counted(self) -> bool:
        """Whether rows or arrivals are, so that tuples wait."""
        return any(stream.rows or stream.arrivals for stream in self.streams)

    def limits_after(self, number: int) -> ps.Limits | None:
        """The limits that hold after a step."""
        memory = [text for step, text in sorted(self.memory.items()) if step <= number]
        return replace(self.limits, memory=memory[-1]) if self.limits and memory else self.limits

    @property
    def given_out(self) -> dict[str, pa.Schema]:
        """Those of the streams whose columns come out."""
        left_only = self.how in ("semi", "anti")
        streams = self.streams[:1] if left_only else self.streams
        return {stream.name: self.schema(stream) for stream in streams}

    def schema(self, stream: OracleStream) -> pa.Schema:
        keys = zip(("x", "y") if self.where else stream.key, self.key_types, strict=True)
        payload = [("id", pa.int64()), ("note", pa.string())]
        time = [] if stream.name in self.by_arrival else [(stream.time, self.time_type)]
        return pa.schema([*time, *keys, *payload])

    def given(self, combination: Combination) -> Combination:
        """A result with what was given of its rows, in the order of the schema."""
        rows, ts = combination
        names = [self.schema(stream).names for stream in self.streams]
        return tuple(
            row and {name: row[name] for name in columns}
            for columns, row in zip(names, rows, strict=False)  # semi joins give out one
        ), ts

    def instant(self, ts: int) -> int | datetime:
        """An event time as `advance` takes it for this type of time column."""
        if pa.types.is_integer(self.time_type):
            return ts
        return EPOCH.replace(tzinfo=self.time_type.tz and UTC) + timedelta(microseconds=ts)


def udf_of(term: Term) -> Any:
    """A term over the columns x and y of its streams as a function over whole columns."""
    names, holds = term

    def function(*columns: pa.Array) -> pa.Array:
        values = zip(*(column.to_pylist() for column in columns), strict=True)
        rows = [
            [dict(zip("xy", each[at : at + 2], strict=True)) for at in range(0, len(each), 2)]
            for each in values
        ]
        return pa.array([holds(*each) for each in rows], pa.bool_())

    return ps.udf(function, [f"{name}.{column}" for name in names for column in "xy"])


def window_of(stream: OracleStream) -> str | timedelta:
    """A window of the oracle's as a user writes it."""
    if stream.rows:
        return f"{stream.rows} rows{' per key' if stream.per_key else ''}"
    if stream.arrivals:
        return f"{stream.arrivals} arrivals"
    if stream.slot_us:
        return f"tumbling {stream.slot_us} us"
    if stream.since > -inf:
        return f"since {(EPOCH + timedelta(microseconds=int(stream.since))).isoformat()}"
    if stream.window_us == inf:
        return "unbounded"
    return timedelta(microseconds=int(stream.window_us))


def table(schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    """Rows as the batch a user would push; times are given as whole microseconds."""
    columns = []
    for column in schema:
        values = [row[column.name] for row in rows]
        plain = pa.int64() if pa.types.is_timestamp(column.type) else column.type
        columns.append(pa.array(values, plain).cast(column.type))
    return pa.Table.from_arrays(columns, schema=schema)


def rows_of(batch: pa.Table) -> list[Row]:
    """The reverse of `table`."""
    for number, column in enumerate(batch.schema):
        if pa.types.is_timestamp(column.type):
            plain = batch.column(number).cast(pa.int64())
            batch = batch.set_column(number, column.name, plain)
    rows: list[Row] = batch.to_pylist()
    return rows


def feed(scenario: Scenario) -> Iterator[tuple[ps.Join, Outcome]]:
    """What penstock makes of it, in the oracle's terms: the join after each step and at the end,
    and what the step has brought."""
    now = [0.0]
    query = scenario.query
    schemas = {stream.name: scenario.schema(stream) for stream in scenario.streams}
    given_out = scenario.given_out
    join = query.start(
        indexes=scenario.indexes,
        probe_orders=scenario.probe_orders,
        schemas=schemas if scenario.schemas_given else None,
        clock=lambda: now[0],
        limits=scenario.limits,
    )
    for number, step in enumerate(scenario.steps):
        now[0] = step.at
        if number in scenario.memory:
            join.limit(memory=scenario.memory[number])
            join.driver.check()
        if step.resize:
            ((name, window),) = step.resize.items()
            (stream,) = (each for each in scenario.streams if each.name == name)
            produced = join.resize(name, window_of(replace(stream, **window)))
        elif step.advance:
            ((name, ts),) = step.advance.items()
            produced = join.advance(name, scenario.instant(ts))
        else:
            batch = {name: table(schemas[name], rows) for name, rows in step.rows.items()}
            produced = join.push(batch)
        produced.validate(full=True)
        join.driver.check()
        results = combinations(produced, given_out)
        late = {name: rows_of(rows) for name, rows in join.late().items()}
        metrics = join.metrics
        watermark = -inf if metrics.watermark is None else metrics.watermark
        live = {name: stream.live for name, stream in metrics.streams.items()}
        jumps = {name: stream.jumps for name, stream in metrics.streams.items()}
        yield join, Outcome(late, results, watermark, live, jumps)
        if number in scenario.restarts:
            join = query.restore(
                join.snapshot(),
                indexes=scenario.restarts[number],
                clock=lambda: now[0],
                limits=scenario.limits_after(number),
            )
    yield join, Outcome({name: [] for name in schemas}, combinations(join.finish(), given_out), inf)


def run(scenario: Scenario) -> list[Outcome]:
    """All outcomes, with that of the end where tuples wait or come out alone."""
    *outcomes, end = (outcome for _, outcome in feed(scenario))
    if scenario.counted or scenario.how in PRESERVED:
        return [*outcomes, end]
    assert not end.results  # nothing waits
    return outcomes


def combinations(produced: pa.Table, schemas: Mapping[str, pa.Schema]) -> list[Combination]:
    """The rows of a result, in the oracle's terms; every tuple has an id. schemas: of the streams
    that come out; the columns of one that is not known yet are missing."""
    return [
        (
            tuple(
                None
                if row.get(f"{name}_id") is None
                else {column: row[f"{name}_{column}"] for column in schemas[name].names}
                for name in schemas
            ),
            row["event_time"],
        )
        for row in rows_of(produced)
    ]


def bag(rows: Sequence[Any]) -> list[str]:
    """For comparing without order; as text, in which NaN equals itself and -0.0 is not 0.0."""
    return sorted(map(repr, rows))


def in_order(stream: OracleStream, steps: Sequence[Step]) -> bool:
    """Whether no row of a stream is older than one of an earlier step."""
    newest = -inf
    for step in steps:
        times = [row[stream.time] for row in step.rows.get(stream.name, ())]
        if min(times, default=inf) < newest:
            return False
        newest = max([newest, *times])
    return True


def expected(scenario: Scenario) -> list[Outcome]:
    """What the oracle makes of it."""
    terms = list(scenario.where.values())
    return answer(scenario.streams, scenario.steps, scenario.between, terms, scenario.how)


def check(scenario: Scenario) -> None:
    """penstock answers a scenario as the oracle does, in every step."""
    for number, (want, got) in enumerate(zip(expected(scenario), run(scenario), strict=True)):
        where = f"in step {number}"
        assert bag(got.results) == bag([scenario.given(each) for each in want.results]), where
        assert got.watermark == want.watermark, where
        assert got.jumps == want.jumps, where
        for stream in scenario.streams:
            name = stream.name
            assert bag(got.late[name]) == bag(want.late.get(name, [])), where
            left_only = scenario.how in ("semi", "anti")  # and not even these when they match
            resized = any(step.resize for step in scenario.steps)
            skipped = scenario.counted or scenario.where or left_only or resized
            if skipped or want.watermark == inf:
                continue
            # A window lets go from its oldest arrival on: what came early may hold back others.
            assert got.live[name] >= want.live[name], where
            if in_order(stream, scenario.steps):
                assert got.live[name] == want.live[name], where
