"""Rows to blobs and back.

Spark hands rows to Python state one by one, so what crosses the shuffle is not rows but
columnar blobs: the rows of one task that belong to one bucket, as one Arrow record batch.
A task packs up to `PACKED_BYTES` at a time, not one Arrow batch of Spark's at a time.

Spark drops, unseen, what is behind its watermark. Data blobs therefore carry no time at all,
and are never dropped: what is late is for the join to say. A row of its own, the tick, carries
the greatest event time of the rows packed, and moves the watermark. For a history, which
Spark hands to each bucket without a watermark, every bucket gets the ticks.

A row's bucket is a hash of its key: the 64-bit key word, mixed twice, for the words of numbers
that lie at regular distances are alike in most bits. Rows without a key go wherever their word
says; they meet nothing.

In a join without a key every row goes to all buckets, and stays in one: that of a hash of all
that is in it, so that attempts agree, whatever order they see rows in. To the others it goes as a
guest, in blobs of their own. A history needs no guests: what it meets in itself is known. If there
is a key, blobs of that kind hold what all buckets are to know (shared_rows.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.intake import event_times, fit
from penstock.kernels.arena import Words
from penstock.model.binding import Binding
from penstock.spark.bucket_count import BucketCount
from penstock.spark.rows.blobs import BlobSchemas, blob_schema, write_blobs
from penstock.spark.rows.shared_rows import has_shared_rows, shared_rows, shared_schema
from penstock.spark.sent_kernels import take_distributed
from penstock.spark.worker_errors import plain_errors
from penstock.windows.contents import row_hashes
from penstock.windows.key_words import key_words
from penstock.windows.payload.storage import take_rows

__all__ = [
    "BLOB",
    "PACKED",
    "Packer",
    "blob_schemas",
    "in_schema",
]

PACKED_BYTES: Final = 8 << 20

# A packed row: which bucket and stream, and the rows, with a null for time; or in a tick the
# greatest event time, with a null for data; in that of a history, the same in microseconds.
# Guests of stream s are those of stream ~s, which is below zero.
PACKED: Final = "bucket int, stream int, time timestamp, data binary"
BLOB: Final = pa.schema(
    [
        ("bucket", pa.int32()),
        ("stream", pa.int32()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("data", pa.binary()),
    ]
)

# Odd, and not the directory's.
_MULTIPLIERS: Final = (np.uint64(0xD6E8_FEB8_6659_FD93), np.uint64(0xC2B2_AE3D_27D4_EB4F))
_HALF: Final = np.uint64(32)

Blob = tuple[int, int, int | None, bytes | None]  # a packed row


@dataclass(frozen=True)
class Packer:
    """Packs the rows of one stream; made for `mapInArrow`."""

    binding: Binding
    stream: int
    buckets: BucketCount
    tick_all: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        take_distributed()
        waiting: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            waiting.append(batch)
            size += batch.nbytes
            if size >= PACKED_BYTES:
                yield from self._packed(waiting)
                waiting, size = [], 0
        if waiting:
            yield from self._packed(waiting)

    def _packed(self, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Packed rows; guests are many times what came in, so not all at once."""
        name = self.binding.query.names[self.stream]
        schema = self.binding.schemas[self.stream]
        rows = pa.concat_batches([in_schema(batch, schema) for batch in batches])
        with plain_errors():  # of rows that are refused
            rows = fit(rows, schema, name).select(blob_schema(self.binding, self.stream).names)
            ts = event_times(self.binding.query, self.stream, rows).ts
        if not len(rows):
            return
        blobs: list[Blob] = []
        size = 0
        for blob in chain(self._ticks(int(ts.max())), self._blobs(rows, ts)):
            blobs.append(blob)
            size += len(blob[-1] or b"")
            if size >= PACKED_BYTES:
                yield _batch(blobs)
                blobs, size = [], 0
        if blobs:
            yield _batch(blobs)

    def _ticks(self, newest: int) -> list[Blob]:
        names = self.buckets.names()
        if not self.tick_all:  # in the first bucket, which so is called in every batch
            return [(names[0], self.stream, newest, None)]
        tick = newest.to_bytes(8, "little", signed=True)
        return [(bucket, self.stream, newest, tick) for bucket in names]

    def _blobs(self, rows: pa.RecordBatch, ts: Words) -> Iterator[Blob]:
        names = self.buckets.names()
        buckets = self._buckets(rows, len(names))
        if has_shared_rows(self.binding, self.stream):
            homes = np.array(names)[buckets]
            shared = shared_rows(self.binding, self.stream, rows, ts, homes)
            for data in write_blobs(shared):
                yield from ((bucket, ~self.stream, None, data) for bucket in names)
        order = np.argsort(buckets, kind="stable")
        rows, buckets = take_rows(rows, order), buckets[order]
        ends = np.searchsorted(buckets, np.arange(len(names)), side="right").tolist()
        has_guests = not self.binding.query.keys[self.stream] and not self.tick_all
        for bucket, begin, end in zip(names, [0, *ends], ends, strict=False):
            for data in write_blobs(rows[begin:end]):
                yield bucket, self.stream, None, data
            for others in (rows[:begin], rows[end:]) if has_guests else ():
                for data in write_blobs(others):
                    yield bucket, ~self.stream, None, data

    def _buckets(self, rows: pa.RecordBatch, count: int) -> Words:
        if count == 1:
            return np.zeros(len(rows), np.int16)
        keys = [rows.column(name) for name in self.binding.query.keys[self.stream]]
        if keys:
            words, _ = key_words(keys, self.binding.key_kinds, len(rows))
            mixed = words.view(np.uint64)
        else:
            mixed = row_hashes(rows.columns, len(rows))
        for multiplier in _MULTIPLIERS:
            mixed = mixed * multiplier
            mixed ^= mixed >> _HALF
        # 16 bits are sorted by counting, in one pass; more buckets there are not.
        buckets: Words = (mixed % np.uint64(count)).astype(np.int16)
        return buckets


def blob_schemas(binding: Binding) -> BlobSchemas:
    """The columns of all that comes to a bucket."""
    streams = range(len(binding.query.streams))
    others = shared_schema if binding.query.keys[0] else blob_schema
    return BlobSchemas(
        [blob_schema(binding, stream) for stream in streams],
        [others(binding, stream) for stream in streams],
    )


def _batch(blobs: list[Blob]) -> pa.RecordBatch:
    columns = zip(*blobs, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, BLOB, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=BLOB)


def in_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of Spark's with its times in UTC, whatever the session's zone is."""
    columns = [
        column if column.type == field.type else pc.cast(column, field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
