"""Columns and constants of a query as numbers that can be calculated with.

Nulls are zeros that are not valid. In 64 bits, a value that does not fit is doubtful from the
start (`engine.whole`).
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from penstock.engine.numbers import Number
from penstock.engine.whole import Array, Calculation
from penstock.kernels.arena import Flags
from penstock.windows.payload.storage import decoded

__all__ = ["number_of", "written_number"]

_SCALES: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_SECONDS_PER_DAY: Final = 86_400
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WORD: Final = 1 << 64
_FEW_DIGITS: Final = 8


def number_of(calculation: Calculation, array: pa.Array) -> Number | None:
    """The values of a column; None if they are neither numbers nor times."""
    kind = array.type
    if pt.is_dictionary(kind):
        array, kind = decoded(array), kind.value_type
    if pt.is_null(kind):
        return Number("null", valid=np.zeros(len(array), np.bool_))
    if pt.is_floating(kind):
        return Number("float", floats=_floats(array), valid=_valid(array))
    if pt.is_integer(kind):
        whole = calculation.column(_integers(calculation, array))
        return Number("integer", whole, valid=_valid(array))
    if pt.is_decimal(kind):
        array = _in_few_digits(calculation, array)
        scale = array.type.scale
        whole = calculation.column(_unscaled(calculation, array))
        if scale >= 0:
            return Number("decimal", whole, scale, valid=_valid(array))
        return Number("decimal", calculation.shifted(whole, -scale), valid=_valid(array))
    if pt.is_date(kind):
        days = _stored(array)
        if pt.is_date64(kind):
            days = days // (_SECONDS_PER_DAY * 1000)
        seconds = _as_calculated(calculation, days.astype(np.int64) * _SECONDS_PER_DAY)
        return Number("instant", calculation.column(seconds), valid=_valid(array))
    if pt.is_timestamp(kind) or pt.is_time(kind) or pt.is_duration(kind):
        name = "instant" if pt.is_timestamp(kind) else "time" if pt.is_time(kind) else "duration"
        whole = calculation.column(_integers(calculation, array))
        zone = kind.tz is not None if name == "instant" else None
        return Number(name, whole, _SCALES[kind.unit], valid=_valid(array), zone=zone)
    return None


def written_number(calculation: Calculation, value: Any) -> Number | None:
    """A constant of a query; None if it is neither a number nor a time."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Number("integer", calculation.constant(value))
    if isinstance(value, float | Decimal):
        written = value if isinstance(value, Decimal) else Decimal(repr(value))
        nearest = np.array(float(value))
        return Number("float", floats=nearest, written=written if written.is_finite() else None)
    if isinstance(value, datetime):
        zone = value.tzinfo is not None
        since = (value if zone else value.replace(tzinfo=UTC)) - _EPOCH
        whole = calculation.constant(since // timedelta(microseconds=1))
        return Number("instant", whole, _SCALES["us"], zone=zone)
    if isinstance(value, date):
        days = (value - _EPOCH.date()).days
        return Number("instant", calculation.constant(days * _SECONDS_PER_DAY))
    return None


def _valid(array: pa.Array) -> Flags | None:
    if not array.null_count:
        return None
    valid: Flags = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _floats(array: pa.Array) -> Array:
    values = _stored(array, "f")
    return values if values.dtype == np.float64 else values.astype(np.float64)


def _stored(array: pa.Array, kind: str = "i") -> Array:
    """The stored values of at most 64 bits, with zero for null."""
    width = array.type.bit_width // 8
    dtype = np.dtype(f"{kind}{width}")
    if array.buffers()[1] is None:
        return np.zeros(len(array), dtype)
    values: Array = np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * width)
    valid = _valid(array)
    return values if valid is None else np.where(valid, values, dtype.type(0))


def _integers(calculation: Calculation, array: pa.Array) -> Array:
    if not pt.is_unsigned_integer(array.type):
        return _as_calculated(calculation, _stored(array))
    values = _stored(array, "u")
    if pt.is_uint64(array.type) and not calculation.wide:
        signed = values.view(np.int64)
        calculation.doubt(signed < 0)
        return np.maximum(signed, 0)
    return _as_calculated(calculation, values)


def _as_calculated(calculation: Calculation, values: Array) -> Array:
    return values.astype(object if calculation.wide else np.int64, copy=False)


def _in_few_digits(calculation: Calculation, array: pa.Array) -> pa.Array:
    """Decimals without digits behind the point that are all zero, if they then fit in 64 bits.

    decimal(38, 18), a default of Spark, seldom needs all of its digits.
    """
    if calculation.wide or array.type.scale <= _FEW_DIGITS or _in_64_bits(_words(array)).all():
        return array
    precision = array.type.precision
    try:
        is_long = array.type.bit_width > 128
        return array.cast((pa.decimal256 if is_long else pa.decimal128)(precision, _FEW_DIGITS))
    except pa.ArrowInvalid:  # some are not zero
        return array


def _words(array: pa.Array) -> Array:
    """The digits of decimals as integers, of which each has a row of 64-bit words, lowest first."""
    count = array.type.bit_width // 64
    if array.buffers()[1] is None:
        return np.zeros((len(array), max(count, 1)), np.int64)
    if count < 2:
        return _stored(array).astype(np.int64).reshape(-1, 1)
    stored = np.frombuffer(array.buffers()[1], np.int64)
    words = stored[count * array.offset :][: count * len(array)].reshape(len(array), count)
    valid = _valid(array)
    return words if valid is None else np.where(valid[:, None], words, 0)


def _in_64_bits(words: Array) -> Flags:
    signs = words[:, 0] >> 63
    flags = np.ones(len(words), np.bool_)
    for word in range(1, words.shape[1]):
        flags &= words[:, word] == signs
    return flags


def _unscaled(calculation: Calculation, array: pa.Array) -> Array:
    """The digits of decimals as integers."""
    words = _words(array)
    if not calculation.wide:
        fits = _in_64_bits(words)
        calculation.doubt(~fits)
        return np.where(fits, words[:, 0], 0)
    values: Array = words[:, -1].astype(object)
    for word in range(words.shape[1] - 2, -1, -1):
        values = values * _WORD + words[:, word].astype(np.uint64).astype(object)
    return values
