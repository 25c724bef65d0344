"""A snapshot of a join: what it takes to go on exactly from there.

It holds tuples, counters and watermarks, not indexes: a join is restored by filling its
windows again, in order of arrival, under whatever plan it is restored with. Sections:

    query            the query's description; another query is refused
    join, streams    watermarks and counters
    schema <name>    no rows, the columns of a stream
    window <name>    the kept columns of its live tuples, oldest arrival first
    times <name>     their event times
    late <name>      late tuples not drained yet
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals
from penstock.errors import SnapshotError
from penstock.runtime.sections import pack_sections, unpack_sections
from penstock.state.keys import key_words
from penstock.state.storage import as_kept

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["load", "save"]


def save(join: Join) -> bytes:
    """The bytes of a join."""
    binding, windows = join.driver.binding, join.driver.windows
    sections = {
        "query": pa.table({"description": [json.dumps(join.query.describe())]}),
        "join": pa.table(
            {
                "watermark": [join.clock.watermark],
                "produced": [join.driver.produced],
                "finished": [join.finished],
            }
        ),
        "streams": pa.table(
            {
                "name": list(join.query.names),
                "watermark": join.clock.watermarks,
                "arrived": join.arrived,
                "late": join.late_count,
                "late_forgotten": join.late_forgotten,
                "expired": [windows.expired(stream) for stream in range(len(join.query.names))],
            }
        ),
    }
    for stream, name in enumerate(join.query.names):
        schema, payload = binding.schemas[stream], windows.payloads[stream]
        if schema is None or payload is None:
            continue
        live = windows.live_sequences(stream)
        kept = {column: payload.take(column, live) for column in binding.kept[stream]}
        fields = [schema.field(column) for column in kept]
        sections[f"schema {name}"] = pa.Table.from_batches([], schema)
        sections[f"window {name}"] = pa.table(list(kept.values()), schema=pa.schema(fields))
        sections[f"times {name}"] = pa.table({"ts": windows.timestamps(stream, live)})
        sections[f"late {name}"] = join.late_rows[stream].table(schema)
    return pack_sections(sections)


def load(join: Join, data: bytes) -> None:
    """Bring a fresh join to where the snapshot was taken."""
    sections = unpack_sections(data)
    _check_query(join, sections["query"]["description"][0].as_py())
    schemas = {
        stream: sections[f"schema {name}"].schema
        for stream, name in enumerate(join.query.names)
        if f"schema {name}" in sections
    }
    if schemas:
        join.driver.bind(join.driver.binding.bound_with(schemas))
    for stream in schemas:
        _fill(join, stream, sections)
    streams = sections["streams"].to_pydict()
    join.arrived = streams["arrived"]
    join.late_count = streams["late"]
    join.late_forgotten = streams["late_forgotten"]
    join.driver.windows.state.windows["expired"] = streams["expired"]
    join.clock.watermarks = streams["watermark"]
    join.clock.watermark = sections["join"]["watermark"][0].as_py()
    join.driver.produced = sections["join"]["produced"][0].as_py()
    join.finished = sections["join"]["finished"][0].as_py()


def _fill(join: Join, stream: int, sections: dict[str, pa.Table]) -> None:
    name, binding = join.query.names[stream], join.driver.binding
    for batch in sections[f"late {name}"].to_batches():
        join.late_rows[stream].add(batch)
    for batch in sections[f"window {name}"].combine_chunks().to_batches():
        columns = {column: as_kept(batch.column(column)) for column in binding.kept[stream]}
        keys, _ = key_words([columns[key] for key in join.query.keys[stream]], binding.key_kinds)
        ts = sections[f"times {name}"]["ts"].to_numpy().astype(np.int64, copy=False)
        join.driver.refill(stream, Arrivals(ts, keys, columns))


def _check_query(join: Join, description: str) -> None:
    theirs, ours = json.loads(description), json.loads(json.dumps(join.query.describe()))
    if theirs == ours:
        return
    names = [stream["name"] for stream in theirs["streams"]]
    if names != list(join.query.names):
        raise SnapshotError(
            f"the snapshot is of a join of {names}, this query joins {list(join.query.names)}; "
            "restore it with the query that wrote it"
        )
    for own, other in zip(ours["streams"], theirs["streams"], strict=True):
        for field in own:
            if own[field] != other[field]:
                raise SnapshotError(
                    f"the snapshot has {field} {other[field]!r} for stream {own['name']!r}, "
                    f"this query has {own[field]!r}; restore it with the query that wrote it"
                )
    raise SnapshotError(
        f"the snapshot selects {theirs['select']}, this query {ours['select']}; "
        "restore it with the query that wrote it"
    )
