"""Values in order as 64-bit words, and what a bound on one word says of another.

Numbers of all types are made floats, and times microseconds as floats; a float's bits, with those
of negative ones turned round, have its order as integers. Text and bytes are their first seven
bytes. Larger values never have smaller words, but different ones may have the same, and
fractions of a float are lost: so words only say what can be, ranges of them are taken a little
wider than they are, and what is found is verified by value.

    word        LEAST .. GREATEST        MISSING, above all: null and NaN, which no range holds
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.errors import SchemaError
from penstock.model.keys import is_text
from penstock.state.arena import Flags, Words
from penstock.state.jit import kernel
from penstock.state.storage import decoded

__all__ = [
    "AT_LEAST", "AT_MOST", "EQUAL", "GREATEST", "LEAST", "MISSING", "NEAR", "OPS", "SAME",
    "bounds", "order_words",
]  # fmt: skip

MISSING: Final = (1 << 63) - 1
GREATEST: Final = MISSING - 1
LEAST: Final = -(1 << 63)

# What is asked of a word, given another.
EQUAL: Final = 0  # as words that are not in order
SAME: Final = 1
AT_LEAST: Final = 2
AT_MOST: Final = 3
NEAR: Final = 4
OPS: Final = {"=": EQUAL, "same": SAME, "at least": AT_LEAST, "at most": AT_MOST, "near": NEAR}

_SLACK: Final = 16  # words: decimals become floats with an error of a few
_ERROR: Final = 2.0**-49  # of a difference, as a share of what it is made of
_SIGN: Final = 63
_MAGNITUDE: Final = (1 << 63) - 1

_US_PER_UNIT: Final = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
_US_PER_DAY: Final = 86_400e6


@kernel
def _lowered(word: Any) -> Any:
    return max(word, LEAST + _SLACK) - _SLACK


@kernel
def _raised(word: Any) -> Any:
    return min(word, GREATEST - _SLACK) + _SLACK


@kernel
def _turned(bits: Any) -> Any:
    """The bits of a float as its word, and back."""
    return bits ^ ((bits >> _SIGN) & _MAGNITUDE)


@kernel
def bounds(word: Any, op: int, epsilon: float, shift: float) -> tuple[Any, Any]:
    """The least and the greatest word that can stand in a relation to `word`, shifted."""
    if op == EQUAL:
        return word, word
    if word == MISSING:
        return GREATEST, LEAST
    least = greatest = word
    if op == NEAR or shift != 0.0:
        value = np.int64(_turned(word)).view(np.float64)
        width = epsilon + (abs(value) + abs(shift) + epsilon) * _ERROR
        if not width < np.inf:
            return LEAST, GREATEST
        low, high = np.float64(value + shift - width), np.float64(value + shift + width)
        least, greatest = _turned(low.view(np.int64)), _turned(high.view(np.int64))
    if op == AT_LEAST:
        return _lowered(least), GREATEST
    if op == AT_MOST:
        return LEAST, _raised(greatest)
    return _lowered(least), _raised(greatest)


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
        words = bits ^ ((bits >> _SIGN) & _MAGNITUDE)
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
    _read_prefixes(words, starts, empty if data is None else np.frombuffer(data, np.uint8))
    return words


@kernel
def _read_prefixes(words: Words, offsets: Any, data: Any) -> None:
    for each in range(len(words)):
        start, end = offsets[each], offsets[each + 1]
        word = np.int64(0)  # an eighth byte would reach its sign
        for byte in range(7):
            word <<= 8
            if start + byte < end:
                word |= np.int64(data[start + byte])
        words[each] = word
