"""An order and a hash of rows that depend on nothing but what is in them.

If rows come in an order that cannot be reproduced, those of one time are put in the order
of their values: column by column, by the columns' names, so that neither the layout of the
input nor who read it counts. Rows that are equal in all columns are left as they are: nobody
can see a difference. Nested values cannot be compared: a hash orders them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.kernels.arena import Words
from penstock.kernels.hashing import fold_bytes, fold_lists, fold_words

__all__ = ["by_contents", "row_hashes"]

_NULL: Final = np.uint64(0x5851_F42D_4C95_7F2D)  # what stands for a null in a hash
_BITS: Final = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def by_contents(ts: Words, columns: Mapping[str, pa.Array]) -> Words | None:
    """Rows, given in order of time, in the order (ts, contents); None when they are in it."""
    same = ts[1:] == ts[:-1]
    if not same.any():
        return None
    tied = np.flatnonzero(np.concatenate([same, [False]]) | np.concatenate([[False], same]))
    chosen = pa.array(tied)
    keys = [pa.array(ts[tied])]
    keys += [_comparable(columns[name].take(chosen)) for name in sorted(columns)]
    names = [str(number) for number in range(len(keys))]
    order = pc.sort_indices(
        pa.table(keys, names), sort_keys=[(name, "ascending") for name in names]
    )
    rows = np.arange(len(ts))
    # The tied are in order of time already, so those of one time change places among them.
    rows[tied] = tied[order.to_numpy()]
    return rows


def row_hashes(columns: Sequence[pa.Array], rows: int) -> npt.NDArray[np.uint64]:
    """One of each row, over all its columns, of any type."""
    hashes = np.zeros(rows, np.uint64)
    for array in columns:
        fold_words(hashes, _hashes(array))
    return hashes


def _comparable(array: pa.Array) -> pa.Array:
    """An array that Arrow sorts, and in which only equal values are equal."""
    if isinstance(array.type, pa.BaseExtensionType):
        return _comparable(array.storage)
    if pt.is_floating(array.type):  # -0.0 and 0.0 are two values here, as are NaNs
        return array.view(_BITS[array.type.bit_width])
    if pt.is_nested(array.type) or pt.is_dictionary(array.type) or pt.is_interval(array.type):
        return pa.array(_hashes(array))
    return array


def _hashes(array: pa.Array) -> npt.NDArray[np.uint64]:
    """One of each value, of any type and depth."""
    hashes = np.zeros(len(array), np.uint64)
    if isinstance(array.type, pa.BaseExtensionType):
        hashes = _hashes(array.storage)
    elif pt.is_dictionary(array.type):
        hashes = _hashes(array.dictionary_decode())
    elif pt.is_struct(array.type):
        for field in array.flatten():
            fold_lists(hashes, np.arange(len(array) + 1), _hashes(field))
    elif pt.is_nested(array.type):
        if pt.is_map(array.type):
            array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        fold_lists(hashes, offsets, _hashes(array.flatten()))
    elif not pt.is_null(array.type):
        _fold_bytes_of(hashes, array)
    if array.null_count:
        hashes[array.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _fold_bytes_of(hashes: npt.NDArray[np.uint64], array: pa.Array) -> None:
    if pt.is_boolean(array.type):
        array = array.cast(pa.int8())
    if pt.is_primitive(array.type) or pt.is_decimal(array.type) or pt.is_interval(array.type):
        width = array.type.bit_width // 8
        data = array.buffers()[1]
        offsets = np.arange(array.offset, array.offset + len(array) + 1) * width
    else:  # text and bytes
        array = array.cast(pa.large_binary())
        _, starts, data = array.buffers()
        offsets = np.frombuffer(starts, np.int64, len(array) + 1, 8 * array.offset)
    fold_bytes(hashes, offsets, np.frombuffer(data or b"", np.uint8))
