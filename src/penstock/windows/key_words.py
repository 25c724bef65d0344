"""Keys of a batch as 64-bit words, which is all that kernels see of them.

A single key column that fits in 64 bits is its own key: integers as they are, floats by
their bits (with -0.0 made 0.0), dates, times and booleans by their stored value. Anything
else is hashed, and candidates are verified by value afterwards.

Columns of a composite key are folded into one hash one after another (kernels/hashing.py). It
depends on nothing but the values: not on the process, the platform or the Arrow type they came in.

A key with a null in any column, or a NaN, equals nothing: it has no word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.errors import InputError
from penstock.kernels.arena import Words
from penstock.kernels.hashing import fold_bytes, fold_words
from penstock.model.keys import KeyKind
from penstock.windows.payload.storage import decoded

__all__ = ["alike", "as_kind", "key_words"]

_MOST_DIGITS: Final = 76  # of a decimal


def as_kind(array: pa.Array, kind: KeyKind) -> pa.Array:
    """A key column in the type its kind compares."""
    if pt.is_dictionary(array.type):
        array = decoded(array)
    elif pt.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if kind.name == "timestamp":
        return array  # zones differ at most, and do not count
    if array.type == kind.common:
        return array
    try:
        return array.cast(kind.common)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"a key of type {array.type} cannot be compared as {kind.common}: {error}; "
            "cast the column first"
        ) from error


def alike(column: pa.Array, kind: KeyKind) -> pa.Array:
    """A key column in a type that those of all streams have, also of one that is not known yet:
    zones and precisions may differ between them."""
    key = as_kind(column, kind)
    if pt.is_timestamp(key.type):
        return key.view(pa.int64())
    if pt.is_decimal(key.type):
        return key.cast(pa.decimal256(_MOST_DIGITS, key.type.scale))
    return key


def key_words(
    columns: Sequence[pa.Array], kinds: Sequence[KeyKind], rows: int
) -> tuple[Words, npt.NDArray[np.bool_] | None]:
    """The word of each row, and which rows have one (None: all). Without a key all are zero."""
    if not columns:
        return np.zeros(rows, np.int64), None
    if len(columns[0]) == 0:
        return np.empty(0, np.int64), None
    arrays = [as_kind(array, kind) for array, kind in zip(columns, kinds, strict=True)]
    present = None
    for array, kind in zip(arrays, kinds, strict=True):
        there = _present(array, kind)
        if there is not None:
            present = there if present is None else present & there
    if len(arrays) == 1 and kinds[0].exact:
        return _exact(arrays[0], kinds[0]), present
    hashes = np.zeros(len(arrays[0]), np.uint64)
    for array, kind in zip(arrays, kinds, strict=True):
        if kind.exact:
            fold_words(hashes, _exact(array, kind).view(np.uint64))
        elif kind.name == "decimal":
            # By value, sign-extended to 256 bits, so that precision does not count.
            words = np.frombuffer(array.buffers()[1], np.uint64)
            for word in range(4):
                at = 4 * array.offset + word
                fold_words(hashes, np.ascontiguousarray(words[at::4][: len(array)]))
        else:
            _, offsets, data = array.buffers()
            starts = np.frombuffer(offsets, np.int64, len(array) + 1, 8 * array.offset)
            empty = np.empty(0, np.uint8)
            fold_bytes(hashes, starts, empty if data is None else np.frombuffer(data, np.uint8))
    return hashes.view(np.int64), present


def _present(array: pa.Array, kind: KeyKind) -> npt.NDArray[np.bool_] | None:
    there = None
    if array.null_count:
        there = array.is_valid().to_numpy(zero_copy_only=False)
    if kind.name == "float":
        values = _values(array, np.dtype(np.float64))
        nan = np.isnan(values)
        if nan.any():
            there = ~nan if there is None else there & ~nan
    return there


def _values(array: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)


def _exact(array: pa.Array, kind: KeyKind) -> Words:
    """64 bits that are equal exactly when the values are; anything for a null."""
    if kind.name == "boolean":
        filled = array.fill_null(False) if array.null_count else array
        values: Words = filled.to_numpy(zero_copy_only=False).astype(np.int64)
        return values
    if kind.name == "float":
        floats = _values(array, np.dtype(np.float64)) + 0.0  # makes -0.0 what it equals
        return floats.view(np.int64)
    width = array.type.bit_width // 8
    return _values(array, np.dtype(f"i{width}")).astype(np.int64, copy=False)
