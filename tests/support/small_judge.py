"""Judges penstock's run of a small join by both oracles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import pyarrow as pa

import penstock as ps
from support import second_oracle
from support.second_question import Call, Outcome, Result
from support.second_terms import Row
from support.small_first_oracle import first_answer
from support.small_join import START_US, UNIT_US, SmallJoin
from support.small_joins import small_join

Identity = tuple[tuple[int | None, ...], int]  # a result by the ids of its rows, and its time


@dataclass
class Ran:
    """What penstock made of one call."""

    table: pa.Table
    results: list[Identity]
    late: list[list[int]]
    metrics: ps.Metrics


def disagreements(seed: int) -> list[str]:
    """What penstock or one of the oracles says otherwise than the second oracle; nothing if all
    agree."""
    join = small_join(seed)
    want = second_oracle.answer(join.question, join.calls, START_US)
    found = list(_other_oracle(join, want))
    try:
        ran = run(join)
    except Exception as error:  # any refusal or crash is a disagreement
        return [*found, f"penstock: {type(error).__name__}: {error}"]
    return found + list(_penstock(join, want, ran))


def run(join: SmallJoin) -> list[Ran]:
    """Give it to penstock, call by call."""
    query = join.query()
    clock_us = [START_US]
    plans = iter(join.plans)
    options: dict[str, Any] = {"clock": lambda: clock_us[0] / 1e6}
    if join.probe_orders is not None:
        options["probe_orders"] = join.probe_orders
    schemas = dict(zip(join.names, join.schemas, strict=True)) if join.gives_schemas else None

    def planned(start: Any) -> ps.Join:
        try:
            return start(next(plans))
        except ps.PlanError:  # an index that cannot be asked for this
            return start(None)

    running = planned(lambda plan: query.start(indexes=plan, schemas=schemas, **options))
    ran = []
    for call in join.calls:
        clock_us[0] = call.clock_us
        if call.kind == "restart":
            data = running.snapshot()
            running = planned(lambda plan: query.restore(data, indexes=plan, **options))  # noqa: B023
            table = running.push({})
        elif call.kind == "advance":
            table = running.advance(join.names[call.stream], join.instant(call.stream, call.ts))
        elif call.kind == "finish":
            table = running.finish()
        else:
            table = running.push(
                {join.names[s]: batch_of(join.schemas[s], rows) for s, rows in call.batches.items()}
            )
        late = running.late()
        ran.append(
            Ran(
                table,
                identities(join.names, table),
                [
                    late[name]["id"].to_pylist() if late[name].num_rows else []
                    for name in join.names
                ],
                running.metrics,
            )
        )
    return ran


def batch_of(schema: pa.Schema, rows: Sequence[tuple[int, Row]]) -> pa.Table:
    arrays = []
    for column in schema:
        values = [row[column.name] for _, row in rows]
        if column.name == "ts" and pa.types.is_timestamp(column.type):
            per_us = 1000 if column.type.unit == "ns" else 1
            values = [value * per_us // UNIT_US[column.type.unit] for value in values]
            arrays.append(pa.array(values, pa.int64()).cast(column.type))
        elif pa.types.is_dictionary(column.type):
            arrays.append(pa.array(values, column.type.value_type).cast(column.type))
        else:
            arrays.append(pa.array(values, column.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def identities(names: Sequence[str], table: pa.Table) -> list[Identity]:
    if not table.num_rows:
        return []
    nothing = [None] * table.num_rows
    known = table.schema.names
    ids = [table[f"{n}_id"].to_pylist() if f"{n}_id" in known else nothing for n in names]
    times = table["event_time"]
    if pa.types.is_timestamp(times.type):
        assert times.type.unit == "us"
        times = times.cast(pa.int64())
    return list(zip(zip(*ids, strict=True), times.to_pylist(), strict=True))


def identity(result: Result) -> Identity:
    return tuple(row and row["id"] for row in result.rows), result.event_time


def _sorted(found: Sequence[Identity]) -> list[Identity]:
    return sorted(found, key=repr)


def _penstock(join: SmallJoin, want: Sequence[Outcome], ran: Sequence[Ran]) -> Iterator[str]:
    produced = 0
    rows_by_id = {r["id"]: r for c in join.calls for rows in c.batches.values() for _, r in rows}
    for number, (call, outcome, got) in enumerate(zip(join.calls, want, ran, strict=True)):
        place = f"penstock, call {number} ({call.kind})"
        produced += len(outcome.results)
        yield from _differ(f"{place}: results", [identity(r) for r in outcome.results], got.results)
        yield from _contents(join, got.table, rows_by_id, place)
        late = [[row["id"] for row in rows] for rows in outcome.late]
        if [sorted(rows) for rows in got.late] != [sorted(rows) for rows in late]:
            yield f"{place}: late {got.late}, not {late}"
        yield from _metrics(join, call, outcome, got.metrics, produced, place)


def _contents(
    join: SmallJoin, table: pa.Table, rows: Mapping[int, Row], place: str
) -> Iterator[str]:
    """Where the columns of results, or what is in them, are not as they were given."""
    if join.gives_schemas and join.output is not None and table.schema != join.output:
        yield f"{place}: columns {table.schema}, not {join.output}"
    if not table.num_rows or "select" in join.arguments:
        return
    for name, schema in zip(join.names, join.schemas, strict=True):
        if f"{name}_id" not in table.schema.names:
            continue
        ids = table[f"{name}_id"].to_pylist()
        for column in schema.names:
            got = _plain(table[f"{name}_{column}"], column == "ts")
            want = [None if each is None else rows[each][column] for each in ids]
            if repr(got) != repr(want):
                yield f"{place}: {name}_{column} {got}, not {want}"


def _plain(column: pa.ChunkedArray, is_time: bool) -> list[Any]:
    """Values as they were given to `batch_of`: event times in microseconds, others without zone."""
    if not pa.types.is_timestamp(column.type):
        return column.to_pylist()
    if is_time:
        times = column.cast(pa.int64()).to_pylist()
        unit = column.type.unit
        return [t and (t // 1000 if unit == "ns" else t * UNIT_US[unit]) for t in times]
    return column.cast(pa.timestamp(column.type.unit)).to_pylist()


def _differ(what: str, want: Sequence[Identity], got: Sequence[Identity]) -> Iterator[str]:
    if _sorted(want) != _sorted(got):
        missing, extra = list(want), []
        for each in got:
            if each in missing:
                missing.remove(each)
            else:
                extra.append(each)
        yield f"{what}: missing {missing}, too many {extra}"


def _metrics(
    join: SmallJoin, call: Call, outcome: Outcome, got: ps.Metrics, produced: int, place: str
) -> Iterator[str]:
    if got.produced != produced:
        yield f"{place}: produced {got.produced}, not {produced}"
    if got.watermark != outcome.watermark:
        yield f"{place}: watermark {got.watermark}, not {outcome.watermark}"
    for name, want in zip(join.names, outcome.counters, strict=True):
        own = got.streams[name]
        for counter in ("arrived", "late", "filtered", "keyless", "waiting", "watermark"):
            if getattr(own, counter) != getattr(want, counter):
                counted, wanted = getattr(own, counter), getattr(want, counter)
                yield f"{place}: {counter} of {name} {counted}, not {wanted}"
        counted = own.late + own.keyless + own.filtered + own.waiting + own.live + own.expired
        if own.arrived != counted + own.shed:
            yield f"{place}: arrived of {name} {own.arrived}, not {counted}"
        low, high = want.live
        if not low <= own.live <= high and call.kind != "finish":
            yield f"{place}: live of {name} {own.live}, not {low} to {high}"


def _other_oracle(join: SmallJoin, want: Sequence[Outcome]) -> Iterator[str]:
    """Where the first oracle says otherwise; of what it does not know, nothing."""
    outcomes = first_answer(join)
    if outcomes is None:
        return
    for number, call in enumerate(join.calls):
        if number == len(outcomes):
            return  # an end that brings nothing
        place = f"first oracle, call {number} ({call.kind})"
        got = outcomes[number]
        found = [_padded(rows, ts, len(join.names)) for rows, ts in got.results]
        yield from _differ(f"{place}: results", [identity(r) for r in want[number].results], found)
        if call.kind == "finish":
            return
        watermark = None if got.watermark == -inf else got.watermark
        if watermark != want[number].watermark:
            yield f"{place}: watermark {watermark}, not {want[number].watermark}"
        late = [[row["id"] for row in got.late[name]] for name in join.names]
        wanted = [[row["id"] for row in rows] for rows in want[number].late]
        if [sorted(rows) for rows in late] != [sorted(rows) for rows in wanted]:
            yield f"{place}: late {late}, not {wanted}"


def _padded(rows: Sequence[Row | None], ts: int, count: int) -> Identity:
    ids = [row and row["id"] for row in rows]
    return tuple(ids + [None] * (count - len(ids))), ts


def replay(seed: int) -> int:
    """Show a small join and what is said of it."""
    join = small_join(seed)
    print("streams:")
    for stream, schema in zip(join.streams, join.schemas, strict=True):
        print(f"  {stream}\n    {dict(zip(schema.names, map(str, schema.types), strict=True))}")
    print(f"arguments: {join.arguments}")
    print(f"plans: {join.plans}, probe orders: {join.probe_orders}")
    print(f"schemas given: {join.gives_schemas}")
    for number, (call, outcome) in enumerate(
        zip(join.calls, second_oracle.answer(join.question, join.calls, START_US), strict=True)
    ):
        print(f"call {number}: {call.kind} at {(call.clock_us - START_US) / 1e6:g} s")
        if call.kind == "advance":
            print(f"  {join.names[call.stream]} to {call.ts}")
        for stream, rows in call.batches.items():
            for ts, row in rows:
                print(f"  {join.names[stream]} {ts} {row}")
        print(f"  -> {[identity(result) for result in outcome.results]}")
        print(f"     watermark {outcome.watermark}, late {[len(rows) for rows in outcome.late]}")
    found = disagreements(seed)
    print("\n".join(found) or "penstock and both oracles agree")
    return bool(found)
