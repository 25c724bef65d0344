"""What all buckets must know of a stream, though its rows go to one each.

A bucket has the keys that fall to it. Where a stream says that its keys are clustered or increase,
a key ends because another one comes, which may be elsewhere; and a punctuation with a column left
out is about keys of all buckets. So beside its rows a packer sends to every bucket

    tuples     of a clustered or increasing stream: their times and the words of their keys
    patterns   punctuations with a null in their key

A bucket leaves out what is of itself: those rows it has.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals
from penstock.engine.promises.marked_rows import closings_of, wild_patterns
from penstock.engine.promises.promises import Promise
from penstock.engine.release import passes
from penstock.kernels.arena import Flags, Words
from penstock.model.binding import Binding
from penstock.windows.key_words import key_words
from penstock.windows.payload.storage import as_kept, kept_type, take_rows

__all__ = ["has_shared_rows", "patterns_in", "shared_rows", "shared_schema", "tuples_in"]

_TS, _BUCKET, _WORD = "ts", "bucket", "word"


def has_shared_rows(binding: Binding, stream: int) -> bool:
    """Whether there can be any."""
    promised = binding.query.streams[stream]
    has_patterns = promised.punctuation is not None and len(binding.query.keys[stream]) > 1
    return promised.clustered or promised.increasing or has_patterns


def shared_schema(binding: Binding, stream: int) -> pa.Schema:
    """Their columns. The word of a pattern is null, and so is the key of a tuple."""
    schema = binding.schemas[stream]
    assert schema is not None, "on Spark every stream's schema is known"
    key = [
        (f"key {name}", kept_type(schema.field(name).type)) for name in binding.query.keys[stream]
    ]
    return pa.schema([(_TS, pa.int64()), (_BUCKET, pa.int32()), (_WORD, pa.int64()), *key])


def shared_rows(
    binding: Binding, stream: int, rows: pa.RecordBatch, ts: Words, homes: Words
) -> pa.RecordBatch:
    """Those of packed rows. homes: the bucket of each."""
    promised, key = binding.query.streams[stream], binding.query.keys[stream]
    marks = np.zeros(len(rows), np.bool_)
    if promised.punctuation is not None:
        column = rows.column(promised.punctuation)
        marks = column.fill_null(False).to_numpy(zero_copy_only=False)
    columns = [as_kept(rows.column(name)) for name in key]
    parts = []
    if promised.clustered or promised.increasing:
        words, present = key_words(columns, binding.key_kinds, len(rows))
        counted = ~marks & (ts >= binding.query.windows[stream].begin_us)
        counted &= passes(binding, stream, rows)
        counted &= np.True_ if present is None else present
        parts.append(_tuples(binding, stream, ts[counted], homes[counted], words[counted]))
    if marks.any() and len(key) > 1:
        parts.append(_patterns(binding, stream, columns, ts, homes, marks))
    empty = pa.RecordBatch.from_pylist([], shared_schema(binding, stream))
    return pa.concat_batches([empty, *parts])


def _tuples(binding: Binding, stream: int, ts: Words, homes: Words, words: Words) -> pa.RecordBatch:
    """Each time and word once."""
    order = np.lexsort((words, ts))
    is_new = np.ones(len(ts), np.bool_)
    is_new[1:] = (np.diff(ts[order]) != 0) | (np.diff(words[order]) != 0)
    first = order[is_new]
    schema = shared_schema(binding, stream)
    columns = [
        pa.array(ts[first]),
        pa.array(homes[first].astype(np.int32)),
        pa.array(words[first]),
        *(pa.nulls(len(first), field.type) for field in list(schema)[3:]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _patterns(
    binding: Binding,
    stream: int,
    key: list[pa.Array],
    ts: Words,
    homes: Words,
    marks: Flags,
) -> pa.RecordBatch:
    nulls = np.stack([column.is_null().to_numpy(zero_copy_only=False) for column in key])
    wild = np.flatnonzero(marks & nulls.any(axis=0) & ~nulls.all(axis=0))
    columns = [
        pa.array(ts[wild]),
        pa.array(homes[wild].astype(np.int32)),
        pa.nulls(len(wild), pa.int64()),
        *(column.take(pa.array(wild)) for column in key),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=shared_schema(binding, stream))


def _elsewhere(shared: pa.RecordBatch, bucket: int, which: Flags) -> pa.RecordBatch:
    homes = shared.column(_BUCKET).to_numpy()
    return take_rows(shared, np.flatnonzero((homes != bucket) & which))


def tuples_in(
    binding: Binding, stream: int, shared: pa.RecordBatch, bucket: int, watermark: int
) -> Arrivals:
    """The tuples elsewhere, if they are not late."""
    ts = shared.column(_TS).to_numpy()
    are_tuples = shared.column(_WORD).is_valid().to_numpy(zero_copy_only=False)
    there = _elsewhere(shared, bucket, are_tuples & (ts >= watermark))
    key = binding.query.keys[stream]
    columns = {name: there.column(f"key {name}") for name in key}
    words: Words = there.column(_WORD).fill_null(0).to_numpy().reshape(1, -1)
    return Arrivals(there.column(_TS).to_numpy(), words, columns)


def patterns_in(
    binding: Binding, stream: int, shared: pa.RecordBatch, bucket: int
) -> list[Promise]:
    """What is promised elsewhere about keys of all buckets."""
    are_patterns = shared.column(_WORD).is_null().to_numpy(zero_copy_only=False)
    there = _elsewhere(shared, bucket, are_patterns)
    key = [there.column(f"key {name}") for name in binding.query.keys[stream]]
    patterns = wild_patterns(binding, stream, key, there.column(_TS).to_numpy())
    return [
        each for given, at in patterns for each in closings_of(binding, stream, dict(given), at)
    ]
