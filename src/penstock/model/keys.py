"""Which columns can be a key together, and what equality means for them.

A key kind is one row of `_KINDS`. A kind is *exact* when its values fit in 64 bits without
loss: kernels then compare the values themselves. All others are compared by a 64-bit hash
first and by value afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from penstock.errors import SchemaError

__all__ = ["KeyKind", "are_words", "common_kind", "is_text", "value_type"]


@dataclass(frozen=True)
class KeyKind:
    """What the key columns of all streams are compared as.

    name: the kind, as errors call it. common: the Arrow type all of them are cast to.
    exact: whether 64 bits hold the value itself.
    """

    name: str
    common: pa.DataType
    exact: bool


def are_words(kinds: Sequence[KeyKind]) -> bool:
    """Whether keys are the 64-bit words that stand for them."""
    return len(kinds) == 1 and kinds[0].common == pa.int64()


def value_type(data_type: pa.DataType) -> pa.DataType:
    """The type of the values, whatever way they are encoded."""
    if pt.is_dictionary(data_type) or pt.is_run_end_encoded(data_type):
        return data_type.value_type
    return data_type


def _signed(data_type: pa.DataType) -> bool:
    # The smaller unsigned ones fit in int64; uint64 does not and is a kind of its own.
    return bool(pt.is_integer(data_type) and not pt.is_uint64(data_type))


def _text(data_type: pa.DataType) -> bool:
    tests = (pt.is_string, pt.is_large_string, pt.is_string_view)
    return any(test(data_type) for test in tests)


def _bytes(data_type: pa.DataType) -> bool:
    tests = (pt.is_binary, pt.is_large_binary, pt.is_binary_view, pt.is_fixed_size_binary)
    return any(test(data_type) for test in tests)


def is_text(data_type: pa.DataType) -> bool:
    """Whether values are compared byte by byte."""
    return _text(value_type(data_type)) or _bytes(value_type(data_type))


def _same(types: Sequence[pa.DataType]) -> pa.DataType | None:
    return types[0] if all(each == types[0] for each in types) else None


def _always(common: pa.DataType) -> Callable[[Sequence[pa.DataType]], pa.DataType | None]:
    return lambda types: common


def _timestamps(types: Sequence[pa.DataType]) -> pa.DataType | None:
    # Zones only change how an instant is shown; a missing zone is another kind of time.
    same = all(
        each.unit == types[0].unit and (each.tz is None) == (types[0].tz is None) for each in types
    )
    return types[0] if same else None


def _decimals(types: Sequence[pa.DataType]) -> pa.DataType | None:
    if any(each.scale != types[0].scale for each in types):
        return None
    return pa.decimal256(max(each.precision for each in types), types[0].scale)


@dataclass(frozen=True)
class _Row:
    name: str
    covers: Callable[[pa.DataType], bool]
    common: Callable[[Sequence[pa.DataType]], pa.DataType | None]
    exact: bool


_KINDS: Final = (
    _Row("integer", _signed, _always(pa.int64()), exact=True),
    _Row("unsigned integer", pt.is_uint64, _same, exact=True),
    _Row("float", pt.is_floating, _always(pa.float64()), exact=True),
    _Row("boolean", pt.is_boolean, _same, exact=True),
    _Row("date", pt.is_date, _always(pa.date32()), exact=True),
    _Row("timestamp", pt.is_timestamp, _timestamps, exact=True),
    _Row("time", pt.is_time, _same, exact=True),
    _Row("duration", pt.is_duration, _same, exact=True),
    _Row("text", _text, _always(pa.large_string()), exact=False),
    _Row("bytes", _bytes, _always(pa.large_binary()), exact=False),
    _Row("decimal", pt.is_decimal, _decimals, exact=False),
)


def common_kind(types: Sequence[pa.DataType], what: Sequence[str]) -> KeyKind:
    """The kind that key columns of `types` share; `what` names the columns in errors."""
    values = [value_type(each) for each in types]
    got = ", ".join(f"{name} is {each}" for name, each in zip(what, types, strict=True))
    for row in _KINDS:
        covered = [row.covers(each) for each in values]
        if all(covered):
            common = row.common(values)
            if common is None:
                raise SchemaError(
                    f"key columns are not comparable: {got}; cast them to one {row.name} type"
                )
            return KeyKind(row.name, common, row.exact)
    for name, each in zip(what, values, strict=True):
        if not any(row.covers(each) for row in _KINDS):
            known = ", ".join(row.name for row in _KINDS)
            raise SchemaError(
                f"{name} cannot be a key: its type is {each}; cast it to one of {known}"
            )
    raise SchemaError(f"key columns have mixed types: {got}; cast them to one type")
