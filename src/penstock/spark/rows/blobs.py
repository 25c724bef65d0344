"""Blobs: the rows of one bucket as bytes. Which rows these are is decided in packing.py.

What only reads blobs, as the workers do that make rows of results, needs no kernel and loads none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from penstock.model.binding import Binding

__all__ = [
    "BROKEN",
    "OVER",
    "RESULT",
    "BlobSchemas",
    "Parts",
    "blob_schema",
    "read_blob",
    "read_blobs",
    "tick_time",
    "write_blobs",
]

# In the place of a stream, of rows that a bucket gives out. Late rows have their stream there.
RESULT: Final = -1  # joined rows
OVER: Final = -2  # keys that are over
BROKEN: Final = 1 << 16  # and the stream: rows that broke a promise of it
# Java's garbage collector keeps what is larger than half a region, 1 MB or less, apart from the
# rest, and its heap grows for it: blobs are cut so that they stay below.
BLOB_BYTES: Final = 400 << 10

Parts = dict[int, list[pa.RecordBatch]]  # rows by stream


def blob_schema(binding: Binding, stream: int) -> pa.Schema:
    """The columns of a stream's blobs: what its window keeps, its time, and what
    marks punctuations."""
    schema = binding.schemas[stream]
    assert schema is not None, "on Spark every stream's schema is known"
    time = binding.query.streams[stream].time_column
    names = binding.kept[stream]
    mark = binding.query.streams[stream].punctuation
    more = [name for name in (time, mark) if name is not None and name not in names]
    names = (*names, *more)
    return pa.schema([schema.field(name) for name in names])


def write_blobs(batch: pa.RecordBatch) -> Iterator[bytes]:
    """The bytes of a record batch, without its schema, in pieces of a size that Java likes."""
    count = max(1, len(batch) * BLOB_BYTES // max(batch.nbytes, 1))
    for begin in range(0, len(batch), count):
        yield batch[begin : begin + count].serialize().to_pybytes()


def read_blob(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The record batch of such bytes, which it shares."""
    return pa.ipc.read_record_batch(pa.py_buffer(data), schema)


class BlobSchemas(NamedTuple):
    """The columns of what comes to a bucket of each stream: of rows that stay in it, and of what it
    is to know of others: its guests or, if there is a key, what all buckets are to know."""

    home: Sequence[pa.Schema]
    others: Sequence[pa.Schema]


def read_blobs(
    schemas: BlobSchemas, streams: Iterable[int], data: Iterable[bytes | None]
) -> tuple[Parts, Parts]:
    """Packed rows that came to a bucket: those that stay in it, and what it is to know of others.
    Ticks are for Spark's watermark, and are left out."""
    home: Parts = {}
    guests: Parts = {}
    for stream, blob in zip(streams, data, strict=True):
        if blob is None:
            continue
        of_kind, number = (home, stream) if stream >= 0 else (guests, ~stream)
        schema = schemas.home[number] if stream >= 0 else schemas.others[number]
        of_kind.setdefault(number, []).append(read_blob(blob, schema))
    return home, guests


def tick_time(data: bytes) -> int:
    """The time in the tick of a history; pandas would have it in the session's zone."""
    return int.from_bytes(data, "little", signed=True)
