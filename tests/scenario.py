"""A scenario: a query, what is fed to it in which steps, and how it is evaluated.

`run` feeds it to penstock, `check` compares the run with the oracle's, step by step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

import pyarrow as pa

import penstock as ps
from oracle import Combination, OracleStream, Outcome, Row, Step, answer

Indexes = str | Mapping[str, str] | None

EPOCH = datetime(1970, 1, 1)
INT = pa.int64()


@dataclass(frozen=True)
class Scenario:
    """`restarts` names the steps after which the join is saved and restored, and with
    which indexes it then goes on. Every row has its time, its key, `id` and `note`."""

    streams: Sequence[OracleStream]
    steps: Sequence[Step]
    key_types: Sequence[pa.DataType] = (INT,)
    time_type: pa.DataType = INT
    indexes: Indexes = None
    probe_orders: Mapping[str, Sequence[str]] | None = None
    restarts: Mapping[int, Indexes] = field(default_factory=dict)

    @property
    def query(self) -> ps.WindowJoin:
        return ps.WindowJoin(
            [
                ps.Stream(
                    stream.name,
                    time=stream.time,
                    window=timedelta(microseconds=stream.window_us),
                    lateness=timedelta(microseconds=stream.lateness_us),
                    idle_timeout=None
                    if stream.idle_timeout_s == inf
                    else timedelta(seconds=stream.idle_timeout_s),
                )
                for stream in self.streams
            ],
            on={stream.name: list(stream.key) for stream in self.streams},
        )

    def schema(self, stream: OracleStream) -> pa.Schema:
        keys = zip(stream.key, self.key_types, strict=True)
        payload = [("id", pa.int64()), ("note", pa.string())]
        return pa.schema([(stream.time, self.time_type), *keys, *payload])

    def instant(self, ts: int) -> int | datetime:
        """An event time as `advance` takes it for this type of time column."""
        if pa.types.is_integer(self.time_type):
            return ts
        return EPOCH.replace(tzinfo=self.time_type.tz and UTC) + timedelta(microseconds=ts)


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


def run(scenario: Scenario) -> list[Outcome]:
    """What penstock makes of it, in the oracle's terms."""
    now = [0.0]
    query = scenario.query
    schemas = {stream.name: scenario.schema(stream) for stream in scenario.streams}
    join = query.start(
        indexes=scenario.indexes,
        probe_orders=scenario.probe_orders,
        schemas=schemas,
        clock=lambda: now[0],
    )
    outcomes: list[Outcome] = []
    for number, step in enumerate(scenario.steps):
        now[0] = step.at
        if step.advance:
            ((name, ts),) = step.advance.items()
            produced = join.advance(name, scenario.instant(ts))
        else:
            batch = {name: table(schemas[name], rows) for name, rows in step.rows.items()}
            produced = join.push(batch)
        produced.validate(full=True)
        join.driver.windows.check()
        results: list[Combination] = []
        for row in rows_of(produced):
            combination = tuple(
                {column: row[f"{name}_{column}"] for column in schema.names}
                for name, schema in schemas.items()
            )
            results.append((combination, row["event_time"]))
        late = {name: rows_of(rows) for name, rows in join.late().items()}
        metrics = join.metrics
        watermark = -inf if metrics.watermark is None else metrics.watermark
        live = {name: stream.live for name, stream in metrics.streams.items()}
        outcomes.append(Outcome(late, results, watermark, live))
        if number in scenario.restarts:
            indexes = scenario.restarts[number]
            join = query.restore(join.snapshot(), indexes=indexes, clock=lambda: now[0])
    assert join.finish().num_rows == 0  # an inner join holds nothing back
    return outcomes


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


def check(scenario: Scenario) -> None:
    """penstock answers a scenario as the oracle does, in every step."""
    expected = answer(scenario.streams, scenario.steps)
    for number, (want, got) in enumerate(zip(expected, run(scenario), strict=True)):
        where = f"in step {number}"
        assert bag(got.results) == bag(want.results), where
        assert got.watermark == want.watermark, where
        for stream in scenario.streams:
            name = stream.name
            assert bag(got.late[name]) == bag(want.late[name]), where
            # A window lets go from its oldest arrival on: what came early may hold back others.
            assert got.live[name] >= want.live[name], where
            if in_order(stream, scenario.steps):
                assert got.live[name] == want.live[name], where
