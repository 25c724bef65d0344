"""The bytes of a segment, and of flags about its tuples: compressed Arrow in an envelope."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from penstock.engine.arrivals import Arrivals
from penstock.engine.release import taken_back
from penstock.errors import SnapshotError
from penstock.kernels.arena import Flags, Words
from penstock.model.binding import Binding
from penstock.runtime.envelope import seal, unseal
from penstock.windows.payload.storage import kept_type

__all__ = [
    "numbers_in",
    "read_flags",
    "read_rows",
    "read_segment",
    "tuples_in",
    "write_flags",
    "write_rows",
    "write_segment",
]

# A task has one core. What is small is not worth compressing: that takes ten times as long.
_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
_SMALL_OPTIONS: Final = pa.ipc.IpcWriteOptions(use_threads=False)
_SMALL_BYTES: Final = 4096
_TS: Final = "ts"
_NUMBER: Final = "number"
_COLUMN: Final = "column "  # before the names of columns, so that none can be called ts


def write_flags(flags: Flags) -> str:
    """Flags as text."""
    return base64.b64encode(zlib.compress(np.packbits(flags).tobytes())).decode()


def read_flags(text: str, count: int) -> Flags:
    """Read `count` flags from their text."""
    bits = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
    if len(bits) != -(-count // 8):
        raise SnapshotError(
            f"a bucket of the checkpoint knows of {8 * len(bits)} tuples at most whether they have "
            f"matched, and holds {count}; restore the checkpoint from a copy"
        )
    return np.unpackbits(bits, count=count).astype(np.bool_)


def write_segment(
    ts: Words, columns: Mapping[str, pa.Array], numbers: Words | None = None
) -> bytes:
    """The bytes of tuples, in kept types; under limits with their numbers."""
    named = {_TS: pa.array(ts)} if numbers is None else {_TS: pa.array(ts), _NUMBER: numbers}
    named |= {f"{_COLUMN}{name}": array for name, array in columns.items()}
    return write_rows(pa.RecordBatch.from_pydict(named))


def write_rows(batch: pa.RecordBatch) -> bytes:
    """The bytes of a segment, whatever it is of."""
    sink = pa.BufferOutputStream()
    options = _SMALL_OPTIONS if batch.nbytes < _SMALL_BYTES else _OPTIONS
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return seal(sink.getvalue().to_pybytes(), str(batch.schema))


def read_rows(binding: Binding, stream: int, data: bytes | None) -> pa.Table:
    """What a segment of a stream has."""
    if data is None:
        raise SnapshotError(
            f"a segment of stream {binding.query.names[stream]!r} is missing from the state "
            "store; restore the checkpoint from a copy"
        )
    return pa.ipc.open_stream(unseal(data, "segment")).read_all().combine_chunks()


def read_segment(binding: Binding, stream: int, data: bytes | None, after: int) -> Arrivals:
    """The tuples of a segment with ts of at least `after`."""
    arrivals = tuples_in(binding, stream, read_rows(binding, stream, data))
    alive = arrivals.ts >= after
    return arrivals if alive.all() else arrivals.take(np.flatnonzero(alive))


def numbers_in(table: pa.Table) -> Words:
    """The numbers of a segment's tuples, under limits."""
    numbers: Words = table[_NUMBER].to_numpy().astype(np.int64, copy=False)
    return numbers


def tuples_in(binding: Binding, stream: int, table: pa.Table) -> Arrivals:
    """The tuples of a segment; added columns are null."""
    schema = binding.schemas[stream]
    assert schema is not None, "on Spark every stream's schema is known"
    ts: Words = table[_TS].to_numpy().astype(np.int64, copy=False)
    columns = {}
    for name in binding.kept[stream]:
        if f"{_COLUMN}{name}" in table.column_names:
            columns[name] = table[f"{_COLUMN}{name}"].combine_chunks()
        else:
            columns[name] = pa.nulls(len(ts), kept_type(schema.field(name).type))
    return taken_back(binding, stream, ts, columns)
