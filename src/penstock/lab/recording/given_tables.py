"""The tables of a recording, as a user gives them: one for each stream, with what the query needs.

Every refusal names streams and columns as they were given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.intake import as_table
from penstock.engine.residual import bound
from penstock.errors import InputError, QueryError
from penstock.model.arrival_time import ARRIVAL
from penstock.model.binding import Binding
from penstock.model.query import Query

__all__ = ["checked_tables", "unused_name"]


def checked_tables(query: Query, tables: Mapping[str, Any]) -> dict[str, pa.Table]:
    """The table of each stream, in the order of the streams; refused if the query cannot be
    answered from them."""
    for stream in query.streams:
        if stream.time is ARRIVAL:
            raise QueryError(
                f"stream {stream.name!r} has no time column, and a recording needs to know when "
                "its tuples came; name the column with time="
            )
    if not isinstance(tables, Mapping):
        raise InputError(
            f"tables must be a mapping from streams to tables, got a {type(tables).__name__}; "
            f"give one for each of {query.names}"
        )
    for name in query.names:
        if name not in tables:
            raise InputError(f"there is no table for stream {name!r}, got {list(tables)}; add it")
    for name in tables:
        if name not in query.names:
            raise InputError(f"no stream is called {name!r}; the streams are {query.names}")
    given = {name: as_table(tables[name], name) for name in query.names}
    bound(Binding.of(query), {stream: each.schema for stream, each in enumerate(given.values())})
    return given


def unused_name(wanted: str, taken: Sequence[str]) -> str:
    """The name for a new column: the one wanted, longer if it is taken."""
    while wanted in taken:
        wanted += "_"
    return wanted
