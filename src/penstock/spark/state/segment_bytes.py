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
    "NUMBER",
    "TS",
    "columns_kept",
    "read_flags",
    "read_rows",
    "table_of",
    "tuples_in",
    "write_flags",
    "write_rows",
]

# A task has one core. What is small is not worth compressing: that takes ten times as long.
_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
_SMALL_OPTIONS: Final = pa.ipc.IpcWriteOptions(use_threads=False)
_SMALL_BYTES: Final = 4096
TS: Final = "ts"
NUMBER: Final = "number"
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


def table_of(ts: Words, columns: Mapping[str, pa.Array], numbers: Words | None = None) -> pa.Table:
    """Tuples in kept types, with their numbers if they have any."""
    named = {TS: pa.array(ts)} if numbers is None else {TS: pa.array(ts), NUMBER: numbers}
    return pa.table(named | {f"{_COLUMN}{name}": array for name, array in columns.items()})


def columns_kept(binding: Binding, stream: int) -> set[str]:
    """The columns of a segment that tuples are made from."""
    return {TS, NUMBER, *(f"{_COLUMN}{name}" for name in binding.kept[stream])}


def write_rows(table: pa.Table) -> bytes:
    """The bytes of a segment, whatever it is of."""
    sink = pa.BufferOutputStream()
    options = _SMALL_OPTIONS if table.nbytes < _SMALL_BYTES else _OPTIONS
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks())
    return seal(sink.getvalue().to_pybytes(), str(table.schema))


def read_rows(stream: str, data: bytes | None) -> pa.Table:
    """What a segment of a stream has."""
    if data is None:
        raise SnapshotError(
            f"a segment of stream {stream!r} is missing from the state "
            "store; restore the checkpoint from a copy"
        )
    return pa.ipc.open_stream(unseal(data, "segment")).read_all()


def tuples_in(binding: Binding, stream: int, batch: pa.RecordBatch) -> Arrivals:
    """The tuples of a segment; added columns are null."""
    schema = binding.schemas[stream]
    assert schema is not None, "on Spark every stream's schema is known"
    ts: Words = batch[TS].to_numpy().astype(np.int64, copy=False)
    columns = {}
    for name in binding.kept[stream]:
        if f"{_COLUMN}{name}" in batch.schema.names:
            columns[name] = batch[f"{_COLUMN}{name}"]
        else:
            columns[name] = pa.nulls(len(ts), kept_type(schema.field(name).type))
    return taken_back(binding, stream, ts, columns)
