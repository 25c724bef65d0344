"""Keys of two tables as numbers, equal for equal keys of both, in the order of the keys.

Keys equal each other as they do in a join: nulls and NaN equal nothing, 0.0 is -0.0. That numbers
are in the order of the keys makes a choice among keys that are alike depend on nothing else, such
as the order in which rows come.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InputError, SchemaError
from penstock.lab.static.components import Ints

__all__ = ["check_columns", "key_columns", "numbered"]


def key_columns(on: str | Sequence[str]) -> list[str]:
    """The columns that must be equal."""
    columns = [on] if isinstance(on, str) else list(on) if isinstance(on, Sequence) else []
    if not columns or not all(isinstance(column, str) for column in columns):
        raise InputError(
            f"on must be a column or several, got {on!r}; name the columns that must be equal"
        )
    return columns


def check_columns(name: str, there: Sequence[str], columns: list[str]) -> None:
    """That a table with these columns has those of the key, each once."""
    for column in columns:
        if list(there).count(column) != 1:
            raise SchemaError(
                f"{name} must have one column {column!r}, got {list(there)}; "
                f"name columns that both tables have"
            )


def numbered(
    tables: Sequence[pa.Table], columns: list[str]
) -> tuple[list[Hashable], tuple[Ints, Ints]]:
    """The keys, None the last of them, and the number of each row's key. The tables have the
    columns of the key only. Rows that equal nothing have the number of None."""
    rows = tables[0].num_rows + tables[1].num_rows
    number, unmatched = np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
    values = [_values(tables, place, column) for place, column in enumerate(columns)]
    for each in values:
        missing = each.is_null(nan_is_null=pa.types.is_floating(each.type))
        unmatched |= missing.to_numpy(zero_copy_only=False)
        number = np.unique(number * rows + _ranks(each), return_inverse=True)[1]
    matched = np.flatnonzero(~unmatched)
    _, heads, numbers = np.unique(number[matched], return_index=True, return_inverse=True)
    heads = pa.array(matched[heads])
    plain = [
        _python_values(each.take(heads), column)
        for each, column in zip(values, columns, strict=True)
    ]
    keys: list[Hashable] = list(plain[0] if len(plain) == 1 else zip(*plain, strict=True))
    all_numbers = np.full(rows, len(keys), np.int64)
    all_numbers[matched] = numbers
    return [*keys, None], (all_numbers[: tables[0].num_rows], all_numbers[tables[0].num_rows :])


def _python_values(array: pa.Array, column: str) -> list[Hashable]:
    """Values that stand for keys: different ones must not become equal."""
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        # Of one zone, both hours in which clocks are put back are equal to Python.
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    try:
        values: list[Hashable] = array.to_pylist()
    except (OverflowError, ValueError):
        values = []
    if len(set(values)) != len(array.unique()):
        raise SchemaError(
            f"column {column!r} has values of type {array.type} that Python cannot tell apart, or "
            "not at all; cast it to int64 in both tables"
        )
    return values


def _ranks(values: pa.Array) -> Ints:
    """Numbers for values, in their order; values that have none are in that of their coming."""
    encoded = values.dictionary_encode(null_encoding="encode")
    codes: Ints = encoded.indices.to_numpy().astype(np.int64)
    try:
        order = pc.sort_indices(encoded.dictionary).to_numpy()
    except pa.ArrowNotImplementedError:
        return codes
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks[codes]


def _values(tables: Sequence[pa.Table], place: int, column: str) -> pa.Array:
    """A column of the left table and then of the right one, of a common type."""
    one, other = (table.column(place).combine_chunks() for table in tables)
    parts = [_plain(one), _plain(other)]
    try:
        if parts[0].type != parts[1].type:
            raise pa.ArrowInvalid("types differ")
        joint = pa.concat_arrays(parts)
        if pa.types.is_floating(joint.type):
            joint = pc.add(joint, pa.scalar(0.0, joint.type))  # turns -0.0 to 0.0
        joint.slice(0, 0).dictionary_encode()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise SchemaError(
            f"column {column!r} must be of one type in both tables, one that has equality, got "
            f"{one.type} and {other.type}; cast one to the type of the other"
        ) from None
    return joint


def _plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Of the widest type that holds the same values, where there is no doubt."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return array.cast(pa.int64())
    if pa.types.is_floating(kind):
        return array.cast(pa.float64())
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_binary_view(kind):
        return array.cast(pa.large_binary())
    return array
