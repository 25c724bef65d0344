"""A snapshot of a join: what it takes to go on exactly from there.

It holds tuples, counters and watermarks, not indexes: a join is restored by filling its
windows again, in order of arrival, under whatever plan it is restored with. Sections:

    query            the query's description; another query is refused
    join, streams    watermarks and counters
    schema <name>    no rows, the columns of a stream
    window <name>    the kept columns of its live tuples, oldest arrival first
    times <name>     their event times, or numbers if arrivals are counted
    matched <name>   which of them have matched, in joins that are not inner
    waiting <name>   the kept columns of tuples whose turn has not come, in order of time
    due <name>       their event times
    late <name>      late tuples not drained yet

Of a join under limits also what its shedder knows (shedding.saved):

    limits           how losses are counted
    shed <part>      of all streams
    marks <name>     the numbers of a stream's tuples, and in semi joins which have met ghosts
    ghosts <name>    of a stream

Of a join with promises what it knows of them (engine.promises):

    promises <part>  of all streams
    cluster <name>   the newest tuples of a clustered stream
    broken <name>    tuples that broke a promise, not drained yet
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals
from penstock.engine.release import taken_back
from penstock.errors import SnapshotError
from penstock.kernels import matches
from penstock.kernels.arena import Flags, Words
from penstock.model.binding import Binding
from penstock.model.counters import columns_of, restored
from penstock.model.description import difference
from penstock.runtime.sections import pack_sections, unpack_sections
from penstock.shedding import saved
from penstock.windows.payload.payload import Payload
from penstock.windows.payload.pieces import in_pieces
from penstock.windows.payload.storage import as_given, as_kept

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["load", "save"]


def save(join: Join) -> bytes:
    """The bytes of a join."""
    binding, windows = join.driver.binding, join.driver.windows
    description = json.dumps(join.started_as.describe())
    sections = {
        "query": pa.table({"description": [description]}),
        "join": pa.table(
            {
                "watermark": [join.clock.watermark],
                "produced": [join.driver.produced],
                "finished": [join.finished],
                "numbered": [join.gate.numbered],
            }
        ),
        "streams": pa.table(
            {
                "name": list(join.query.names),
                "window": [str(window) for window in join.query.windows],
                "watermark": join.clock.watermarks,
                **columns_of(join.counts),
                "expired": [windows.expired(stream) for stream in range(len(join.counts))],
            }
        ),
    }
    for stream, name in enumerate(join.query.names):
        schema, payload = binding.schemas[stream], windows.payloads[stream]
        if schema is None or payload is None:
            continue
        live = windows.live_sequences(stream)
        kept = pa.schema([schema.field(column) for column in binding.kept[stream]])
        sections[f"schema {name}"] = pa.Table.from_batches([], schema)
        sections[f"window {name}"] = pa.Table.from_batches(_taken(payload, kept, live), kept)
        sections[f"times {name}"] = pa.table({"ts": windows.timestamps(stream, live)})
        if stream in join.query.marked:
            matched = np.empty(len(live), np.bool_)
            matches.are_matched(windows.state, stream, live, matched)
            sections[f"matched {name}"] = pa.table({"matched": matched})
        sections[f"late {name}"] = join.late_rows[stream].table(schema)
        waiting = join.gate.arrivals(stream)
        if waiting is not None:
            sections[f"waiting {name}"] = pa.Table.from_batches(_waiting(waiting, kept), kept)
            sections[f"due {name}"] = pa.table({"ts": waiting.ts})
    if join.driver.promises is not None:
        parts = join.driver.promises.save()
        sections |= {f"promises {part}": table for part, table in parts.items()}
        for name, rows, schema in zip(
            join.query.names, join.broken_rows, binding.schemas, strict=True
        ):
            if schema is not None:
                sections[f"broken {name}"] = rows.table(schema)
    shedder = join.driver.shedder
    if shedder.limits is not None:
        sections["limits"] = pa.table({"loss": [shedder.limits.loss]})
        sections |= {f"shed {part}": table for part, table in saved.save(shedder).items()}
        for stream, name in enumerate(join.query.names):
            if windows.has_ghosts and binding.schemas[stream] is not None:
                sections[f"ghosts {name}"] = saved.save_ghosts(shedder, stream)
            if binding.schemas[stream] is not None:
                live = windows.live_sequences(stream)
                numbers, marks = windows.numbers(stream, live), windows.marks(stream, live)
                sections[f"marks {name}"] = pa.table({"number": numbers, "marks": marks})
    return pack_sections(sections, f"{description} {binding.schemas}")


def _taken(payload: Payload, schema: pa.Schema, live: Words) -> Iterator[pa.RecordBatch]:
    """The rows of live tuples, in as many batches as their types need."""

    def batch(sequences: Words) -> pa.RecordBatch:
        columns = [payload.take(name, sequences) for name in schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    return in_pieces(live, batch)


def _waiting(waiting: Arrivals, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of tuples that wait, in as many batches as their types need."""

    def batch(rows: Words) -> pa.RecordBatch:
        some = waiting if len(rows) == len(waiting) else waiting.take(rows)
        columns = [
            as_given(some.columns[field.name], field.type).cast(field.type) for field in schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    return in_pieces(np.arange(len(waiting)), batch)


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
    for name, window in zip(join.query.names, sections["streams"]["window"], strict=True):
        if window.as_py() != str(join.query.windows[join.query.position(name)]):
            join.resize(name, window.as_py())
    _check_limits(join, sections)
    shedder = join.driver.shedder
    if shedder.limits is not None and "limits" in sections:
        parts = [name for name in sections if name.startswith("shed ")]
        saved.load(shedder, {name.removeprefix("shed "): sections[name] for name in parts})
    for stream in schemas:
        _fill(join, stream, sections)
    if shedder.limits is not None and "limits" in sections:
        saved.load_numbers(shedder, sections["shed numbers"])  # filling has counted on
    streams = sections["streams"].to_pydict()
    for stream, counts in enumerate(join.counts):
        forgotten = counts.late_forgotten  # there may be less room for late rows now
        join.counts[stream] = restored(streams, stream)
        join.counts[stream].late_forgotten += forgotten
    of_join = sections["join"].to_pylist()[0]
    join.driver.restore(of_join["produced"], streams["expired"])
    join.clock.restore(streams["watermark"], of_join["watermark"])
    join.finished = of_join["finished"]
    join.gate.numbered = of_join["numbered"]
    _load_promises(join, sections)
    if shedder.limits is not None:
        for stream in schemas:
            if f"ghosts {join.query.names[stream]}" in sections:
                ghosts = sections[f"ghosts {join.query.names[stream]}"]
                saved.load_ghosts(shedder, stream, ghosts, of_join["watermark"])
        shedder.enforce(of_join["watermark"])  # the limits may be others


def _load_promises(join: Join, sections: dict[str, pa.Table]) -> None:
    parts = [name for name in sections if name.startswith("promises ")]
    if not parts:
        return
    promises = join.driver.promised()
    promises.load({name.removeprefix("promises "): sections[name] for name in parts})
    for stream, name in enumerate(join.query.names):
        if f"broken {name}" in sections:
            for batch in sections[f"broken {name}"].to_batches():
                join.keep_broken(stream, batch)


def _fill(join: Join, stream: int, sections: dict[str, pa.Table]) -> None:
    name, binding = join.query.names[stream], join.driver.binding
    for batch in sections[f"late {name}"].to_batches():
        join.keep_late(stream, batch)
    matched, done = _matched(sections, name), 0
    for arrivals in _arrivals(
        binding, stream, sections[f"window {name}"], sections[f"times {name}"]
    ):
        flags = None if matched is None else matched[done : done + len(arrivals)]
        join.driver.refill(stream, join.gate.identified(binding, stream, arrivals), flags)
        done += len(arrivals)
    if f"marks {name}" in sections and join.driver.shedder.limits is not None:
        windows, marks = join.driver.windows, sections[f"marks {name}"]
        windows.add_marks(stream, marks["marks"].to_numpy())
        live = windows.live_sequences(stream)
        windows.set_numbers(stream, live, marks["number"].to_numpy())
    if f"waiting {name}" in sections:
        for arrivals in _arrivals(
            binding, stream, sections[f"waiting {name}"], sections[f"due {name}"]
        ):
            join.gate.add(stream, join.gate.identified(binding, stream, arrivals))


def _matched(sections: dict[str, pa.Table], name: str) -> Flags | None:
    if f"matched {name}" not in sections:
        return None
    flags: Flags = sections[f"matched {name}"]["matched"].to_numpy()
    return flags


def _arrivals(binding: Binding, stream: int, rows: pa.Table, times: pa.Table) -> Iterator[Arrivals]:
    """Saved tuples as they were when they arrived."""
    done = 0
    all_times = times["ts"].to_numpy().astype(np.int64, copy=False)
    for batch in rows.to_batches():
        columns = {column: as_kept(batch.column(column)) for column in binding.kept[stream]}
        ts = all_times[done : done + len(batch)]
        done += len(batch)
        if len(batch):
            yield taken_back(binding, stream, ts, columns)


def _check_limits(join: Join, sections: dict[str, pa.Table]) -> None:
    """A join that has lost results goes on counting them as it did."""
    shedder = join.driver.shedder
    if "limits" not in sections:
        return
    was = sections["limits"]["loss"][0].as_py()
    if shedder.limits is None:
        raise SnapshotError(
            "the snapshot is of a join under limits, which has lost some of its tuples; "
            "restore it with limits="
        )
    if (was == "off") != (shedder.limits.loss == "off"):
        raise SnapshotError(
            f"the snapshot is of a join with loss={was!r}, and is restored with "
            f"loss={shedder.limits.loss!r}; what is lost cannot be counted from the middle on: "
            f"use loss={was!r}"
        )


def _check_query(join: Join, description: str) -> None:
    differs = difference(json.loads(description), join.query.describe())
    if differs is not None:
        raise SnapshotError(
            f"the snapshot is of another join: {differs}; restore it with the query that wrote it"
        )
