"""Values in order as 64-bit words: kernels/index/bounds.py says what they are."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.errors import SchemaError
from penstock.kernels.arena import Flags, Words
from penstock.kernels.index.bounds import MAGNITUDE, MISSING, SIGN, read_prefixes
from penstock.model.keys import is_text
from penstock.windows.payload.storage import decoded

__all__ = ["order_words"]

_US_PER_UNIT: Final = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
_US_PER_DAY: Final = 86_400e6


def order_words(array: pa.Array, what: str) -> tuple[Words, Flags | None]:
    """The word of each value, and which have one (None: all). what: names them in errors."""
    if pt.is_dictionary(array.type):
        array = decoded(array)
    elif pt.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    present: Flags | None = None
    if array.null_count:
        present = array.is_valid().to_numpy(zero_copy_only=False)
    if is_text(array.type):
        words = _prefixes(array)
    else:
        floats = _floats(array, what)
        nan = np.isnan(floats)
        if nan.any():
            present = ~nan if present is None else present & ~nan
        bits = floats.view(np.int64)
        words = bits ^ ((bits >> SIGN) & MAGNITUDE)
    if present is not None:
        words = np.where(present, words, MISSING)
    return words, present


def _floats(array: pa.Array, what: str) -> Any:
    kind, factor = array.type, 1.0
    if pt.is_null(kind):
        return np.full(len(array), np.nan)
    if pt.is_timestamp(kind) or pt.is_duration(kind) or pt.is_time(kind):
        factor = _US_PER_UNIT[kind.unit]
    elif pt.is_date(kind):
        factor = _US_PER_DAY if pt.is_date32(kind) else _US_PER_UNIT["ms"]
    elif not (
        pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind) or pt.is_boolean(kind)
    ):
        raise SchemaError(f"{what} of type {kind} cannot be compared by order; cast it first")
    if factor != 1.0 or pt.is_temporal(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif pt.is_boolean(kind):
        array = array.cast(pa.int8())
    elif pt.is_float16(kind):
        array = array.cast(pa.float32())
    floats = array.cast(pa.float64(), safe=False).fill_null(0.0)
    return floats.to_numpy(zero_copy_only=False) * factor


def _prefixes(array: pa.Array) -> Words:
    """The first seven bytes of each value: larger values have no smaller ones."""
    array = array.cast(pa.large_binary()).fill_null(b"")
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, np.int64, len(array) + 1, 8 * array.offset)
    words = np.empty(len(array), np.int64)
    empty = np.empty(0, np.uint8)
    read_prefixes(words, starts, empty if data is None else np.frombuffer(data, np.uint8))
    return words
