"""A query bound to the schemas of its streams: what comes in, what is kept, what comes out.

A stream is bound when its first batch (or a given schema) is there; checks across streams
run as soon as the streams concerned are bound. Binding never changes a bound stream:
`bound_with` gives a new binding, so that a refused batch leaves the old one as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from penstock.errors import SchemaError
from penstock.model.access import Equal
from penstock.model.arrival_time import ARRIVAL, ARRIVAL_COLUMN, given_schema
from penstock.model.keys import KeyKind, common_kind, value_type
from penstock.model.query import Query

__all__ = ["EVENT_TIME", "Binding", "OutputColumn"]

EVENT_TIME: Final = "event_time"


@dataclass(frozen=True)
class OutputColumn:
    """Column `name` of the output: column `column` of stream number `stream`."""

    name: str
    stream: int
    column: str
    type: pa.DataType


@dataclass(frozen=True)
class Binding:
    """schemas: of each stream, None while unknown.

    kinds: of each group of columns that must be equal, how each column is compared.
    output: the output columns of the bound streams, `event_time` not among them.
    kept: the columns of each stream that its window must keep: keys, and what comes out.
    """

    query: Query
    schemas: tuple[pa.Schema | None, ...]
    kinds: tuple[tuple[KeyKind, ...], ...]
    output: tuple[OutputColumn, ...]
    kept: tuple[tuple[str, ...], ...]
    event_time: pa.DataType

    @classmethod
    def of(cls, query: Query) -> Binding:
        """Nothing known yet."""
        nothing = (None,) * len(query.streams)
        unknown = ((),) * len(query.access.groups)
        return cls(query, nothing, unknown, (), ((),) * len(nothing), pa.timestamp("us"))

    @property
    def key_kinds(self) -> tuple[KeyKind, ...]:
        """How each key column is compared."""
        return self.kinds[0] if self.query.keys[0] else ()

    @property
    def exact(self) -> bool:
        """Whether equal 64-bit keys are equal keys, so that nothing is left to verify."""
        return not self.key_kinds or (len(self.key_kinds) == 1 and self.key_kinds[0].exact)

    def output_schema(self) -> pa.Schema:
        """The schema of results, as far as it is known."""
        fields = [pa.field(column.name, column.type) for column in self.output]
        return pa.schema([*fields, pa.field(EVENT_TIME, self.event_time)])

    def bound_with(self, new: Mapping[int, pa.Schema]) -> Binding:
        """This binding with further streams bound, checked on their own and together."""
        schemas = list(self.schemas)
        for stream, schema in new.items():
            _check_alone(self.query, stream, schema)
            schemas[stream] = schema
        bound = {stream: schema for stream, schema in enumerate(schemas) if schema is not None}
        output = _output(self.query, bound)
        return Binding(
            self.query,
            tuple(schemas),
            _kinds(self.query, bound),
            output,
            tuple(
                _kept(self.query, stream, schema, output) for stream, schema in enumerate(schemas)
            ),
            _event_time(self.query, bound),
        )


def _check_alone(query: Query, stream: int, schema: pa.Schema) -> None:
    name, there = query.names[stream], given_schema(schema).names
    repeated = sorted({column for column in there if there.count(column) > 1})
    if repeated:
        raise SchemaError(f"stream {name!r} has columns of one name: {repeated}; rename them")
    time_column = query.streams[stream].time_column
    if ARRIVAL_COLUMN in schema.names and time_column != ARRIVAL_COLUMN:
        raise SchemaError(f"stream {name!r} has a column {ARRIVAL_COLUMN!r}; rename it")
    wanted = {"key": query.keys[stream]}
    if time_column != ARRIVAL_COLUMN:
        wanted["time"] = (time_column,)
    wanted["where"] = tuple(
        column.name
        for predicate in (*query.filters, *query.residuals)
        for column in sorted(predicate.columns, key=lambda each: each.name)
        if column.stream == stream
    )
    promised = query.streams[stream]
    wanted["punctuation"] = () if promised.punctuation is None else (promised.punctuation,)
    wanted["expires"] = tuple(promised.expires.values())
    wanted["selected"] = tuple(
        column for _, chosen, column in query.selected or () if chosen == name
    )
    for role, columns in wanted.items():
        for column in columns:
            if column not in there:
                raise SchemaError(
                    f"stream {name!r} has no {role} column {column!r}; its columns are {there}"
                )
    time = schema.field(time_column).type
    if not (pt.is_timestamp(time) or pt.is_int64(time)):
        raise SchemaError(
            f"time column {time_column!r} of stream {name!r} has type {time}; "
            "cast it to a timestamp, or to int64 microseconds since the epoch"
        )
    for column in wanted["punctuation"]:
        if not pt.is_boolean(schema.field(column).type):
            raise SchemaError(
                f"punctuation column {column!r} of stream {name!r} has type "
                f"{schema.field(column).type}; it must be boolean"
            )
    if promised.increasing:
        (column,) = query.keys[stream]
        kind = value_type(schema.field(column).type)
        if not (pt.is_integer(kind) or pt.is_temporal(kind)) or pt.is_uint64(kind):
            raise SchemaError(
                f"stream {name!r} is increasing, and its key {column!r} has type {kind}; "
                "increasing= is for signed integers, dates and times"
            )
    for column in wanted["expires"]:
        kind = schema.field(column).type
        if not (pt.is_timestamp(kind) or pt.is_int64(kind)):
            raise SchemaError(
                f"expires column {column!r} of stream {name!r} has type {kind}; cast it to a "
                "timestamp, or to int64 microseconds since the epoch"
            )
    for word in query.access.words[stream]:
        for column in word.columns if isinstance(word, Equal) else ():
            common_kind([schema.field(column).type], [f"{name}.{column}"])


def _kinds(query: Query, bound: Mapping[int, pa.Schema]) -> tuple[tuple[KeyKind, ...], ...]:
    """How the columns of each group are compared, by those of them that are known."""
    kinds = []
    for group in query.access.groups:
        known = [stream for stream in group if stream in bound]
        words = [query.access.words[stream][group[stream]] for stream in known]
        columns = zip(*(word.columns for word in words if isinstance(word, Equal)), strict=True)
        kinds.append(
            tuple(
                common_kind(
                    [
                        bound[stream].field(name).type
                        for stream, name in zip(known, names, strict=True)
                    ],
                    [f"{query.names[s]}.{name}" for s, name in zip(known, names, strict=True)],
                )
                for names in columns
            )
        )
    return tuple(kinds)


def _output(query: Query, bound: Mapping[int, pa.Schema]) -> tuple[OutputColumn, ...]:
    if query.selected is None:
        chosen = [
            (f"{query.names[stream]}_{column}", stream, column)
            for stream, schema in bound.items()
            if stream in query.given_out
            for column in given_schema(schema).names
        ]
    else:
        numbered = ((new, query.position(name), column) for new, name, column in query.selected)
        chosen = [row for row in numbered if row[1] in bound]
    taken: dict[str, str] = {EVENT_TIME: "the time of the result"}
    output = []
    for new, stream, column in chosen:
        origin = f"{query.names[stream]}.{column}"
        if new in taken:
            raise SchemaError(
                f"two output columns are called {new!r}: {taken[new]} and {origin}; "
                "rename one with select="
            )
        taken[new] = origin
        output.append(OutputColumn(new, stream, column, bound[stream].field(column).type))
    return tuple(output)


def _kept(
    query: Query, stream: int, schema: pa.Schema | None, output: tuple[OutputColumn, ...]
) -> tuple[str, ...]:
    needed = {column.column for column in output if column.stream == stream}
    needed.update(query.keys[stream])
    needed.update(
        column.name
        for predicate in query.residuals
        for column in predicate.columns
        if column.stream == stream
    )
    needed.update(query.streams[stream].expires.values())
    # Where arrivals are counted, event times are no longer what tuples are ordered by; and rows
    # without any column could not be saved.
    if query.counts_arrivals or not needed:
        needed.add(query.streams[stream].time_column)
    return () if schema is None else tuple(name for name in schema.names if name in needed)


def _time_text(query: Query, stream: int) -> str:
    name, column = query.names[stream], query.streams[stream].time_column
    return f"the arrival of {name}" if column == ARRIVAL_COLUMN else f"{name}.{column}"


def _event_time(query: Query, bound: Mapping[int, pa.Schema]) -> pa.DataType:
    types = [
        schema.field(query.streams[stream].time_column).type for stream, schema in bound.items()
    ]
    if not types:
        return pa.timestamp("us")
    classes = {
        "integer" if pt.is_int64(each) else "zoned" if each.tz else "zoneless" for each in types
    }
    if len(classes) > 1:
        got = ", ".join(
            f"{_time_text(query, stream)} is {each}"
            for stream, each in zip(bound, types, strict=True)
        )
        told = (
            "all of them to timestamps with a zone, all to timestamps without, or all to integers"
        )
        if any(query.streams[stream].time is ARRIVAL for stream in bound):
            told = "the others to timestamps with a zone"
        raise SchemaError(f"time columns cannot be compared: {got}; cast {told}")
    return pa.int64() if classes == {"integer"} else pa.timestamp("us", tz=types[0].tz)
