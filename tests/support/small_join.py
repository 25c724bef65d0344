"""What a small random join is: a query, all that is done with it, and how it is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

import penstock as ps
from support.second_question import Call, Question, Window

NAMES = ("a", "b", "c", "d")
UNIT_US = {"s": 1_000_000, "ms": 1000, "us": 1, "ns": 1}
EPOCH = datetime(1970, 1, 1)
START_US = 1_700_000_000_000_000  # on the wall clock


@dataclass(frozen=True)
class SmallJoin:
    """streams: the arguments of each `Stream`. arguments: of `WindowJoin`, besides the streams.
    plans: the indexes it starts with, and those it goes on with after each restart; None leaves
    the choice to the planner."""

    seed: int
    question: Question
    calls: tuple[Call, ...]
    streams: tuple[Mapping[str, Any], ...]
    arguments: Mapping[str, Any]
    schemas: tuple[pa.Schema, ...]
    gives_schemas: bool
    plans: tuple[Mapping[str, str] | None, ...]
    probe_orders: Mapping[str, Sequence[str]] | None

    @property
    def names(self) -> tuple[str, ...]:
        return NAMES[: len(self.streams)]

    def query(self) -> ps.WindowJoin:
        return ps.WindowJoin([ps.Stream(**stream) for stream in self.streams], **self.arguments)

    @property
    def output(self) -> pa.Schema | None:
        """Columns and types of results; None if not all of them are given out."""
        if "select" in self.arguments:
            return None
        given_out = 1 if self.question.how in ("semi", "anti") else len(self.names)
        columns = [
            pa.field(f"{name}_{column.name}", column.type)
            for name, schema in list(zip(self.names, self.schemas, strict=True))[:given_out]
            for column in schema
        ]
        first = self.schemas[0]
        event_time = pa.timestamp("us", "UTC")
        if "ts" in first.names:
            time_type = first.field("ts").type
            is_integer = pa.types.is_integer(time_type)
            event_time = pa.int64() if is_integer else pa.timestamp("us", time_type.tz)
        return pa.schema([*columns, ("event_time", event_time)])

    def instant(self, stream: int, ts: int) -> int | datetime:
        """A time as `advance` takes it."""
        if self.question.sides[stream].takes_arrival_time:
            return EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=ts)
        time_type = self.schemas[stream].field("ts").type
        if pa.types.is_integer(time_type):
            return ts
        return EPOCH.replace(tzinfo=time_type.tz and UTC) + timedelta(microseconds=ts)


def window_text(window: Window) -> str | timedelta:
    kind, size = window
    if kind == "time":
        return timedelta(microseconds=size)
    if kind == "tumbling":
        return f"tumbling {size} us"
    if kind == "since":
        return f"since {(EPOCH + timedelta(microseconds=size)).isoformat()}"
    return kind if kind == "unbounded" else f"{size} {kind}"
