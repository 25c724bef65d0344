"""`truncate_tables`: two Arrow tables, cut to so many rows.

Rows become numbers of keys, equal for equal keys of both tables; all else is over counts. Keys
equal each other as they do in a join: nulls and NaN equal nothing, 0.0 is -0.0. Of each key the
first rows are kept, in their order.

Counts are all that leaves the tables: to cut tables that are elsewhere, count by key there, give
the counts to `truncate`, and keep so many rows of each key there."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InputError, SchemaError
from penstock.shedding.static.components import Ints
from penstock.shedding.static.counts import Number
from penstock.shedding.static.truncation import Truncation, truncated

__all__ = ["truncate_tables"]


def truncate_tables(
    left: Any,
    right: Any,
    on: str | Sequence[str],
    keep: Number | None = None,
    *,
    drop: Number | None = None,
    method: str = "optimal",
) -> tuple[pa.Table, pa.Table, Truncation]:
    """The rows of two tables to keep, so that the most pairs of equal keys are joined.

    left, right: Arrow tables, or anything with `__arrow_c_stream__`. on: the column, or columns,
    that both have. keep, drop, method: as in `truncate`. Of each key the first rows are kept.

    `kept` of the result is by key, by tuples of values where the key has several columns. Rows that
    equal nothing, for a null or NaN in the key, are told together, by the key None.
    """
    tables = _table(left, "left"), _table(right, "right")
    columns = _columns(on)
    keys, numbers = _numbered(tables, columns)
    sides = [np.bincount(rows, minlength=len(keys)).astype(np.int64) for rows in numbers]
    # Rows without a key, the last number: those of either side by themselves, so as not to meet.
    unmatched = int(sides[0][-1]), int(sides[1][-1])
    apart = (
        np.append(sides[0], 0),
        np.concatenate([sides[1][:-1], np.array([0, unmatched[1]], np.int64)]),
    )
    result = truncated(
        [*range(len(keys) - 1), "left", "right"], apart, keep=keep, drop=drop, method=method
    )
    kept = np.array(list(result.kept.values()), np.int64)
    kept[-2, 1] = kept[-1, 1]
    kept = kept[:-1]
    cut = [
        table.filter(pa.array(_first(rows, kept[:, side])))
        for side, (table, rows) in enumerate(zip(tables, numbers, strict=True))
    ]
    by_key = dict(zip(keys, map(tuple, kept.tolist()), strict=True))
    if not any(unmatched):
        del by_key[None]
    return cut[0], cut[1], Truncation(result.joined, result.total, by_key, result.method)


def _table(data: Any, name: str) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    try:
        return pa.table(data)
    except (TypeError, ValueError, pa.ArrowInvalid):
        raise InputError(
            f"{name} must be a table, got {type(data).__name__}; pass a pyarrow, pandas or polars "
            f"table, or anything with __arrow_c_stream__"
        ) from None


def _columns(on: str | Sequence[str]) -> list[str]:
    columns = [on] if isinstance(on, str) else list(on) if isinstance(on, Sequence) else []
    if not columns or not all(isinstance(column, str) for column in columns):
        raise InputError(
            f"on must be a column or several, got {on!r}; name the columns that must be equal"
        )
    return columns


def _numbered(
    tables: tuple[pa.Table, pa.Table], columns: list[str]
) -> tuple[list[Hashable], tuple[Ints, Ints]]:
    """The keys, None the last of them, and the number of each row's key."""
    rows = tables[0].num_rows + tables[1].num_rows
    number, unmatched = np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
    values = [_values(tables, column) for column in columns]
    for each in values:
        missing = each.is_null(nan_is_null=pa.types.is_floating(each.type))
        unmatched |= missing.to_numpy(zero_copy_only=False)
        codes = each.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)
        number = np.unique(number * rows + codes, return_inverse=True)[1]
    matched = np.flatnonzero(~unmatched)
    _, heads, numbers = np.unique(number[matched], return_index=True, return_inverse=True)
    heads = pa.array(matched[heads])
    plain = [each.take(heads).to_pylist() for each in values]
    keys: list[Hashable] = list(plain[0] if len(plain) == 1 else zip(*plain, strict=True))
    all_numbers = np.full(rows, len(keys), np.int64)
    all_numbers[matched] = numbers
    return [*keys, None], (all_numbers[: tables[0].num_rows], all_numbers[tables[0].num_rows :])


def _values(tables: tuple[pa.Table, pa.Table], column: str) -> pa.Array:
    """A column of the left table and then of the right one, of a common type."""
    for name, table in zip(("left", "right"), tables, strict=True):
        if table.column_names.count(column) != 1:
            raise SchemaError(
                f"{name} must have one column {column!r}, got {table.column_names}; "
                f"name columns that both tables have"
            )
    one, other = (table.column(column).combine_chunks() for table in tables)
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


def _first(rows: Ints, kept: Ints) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each row whether it is one of the first of its key, of which so many are kept."""
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=len(kept))
    begin = np.cumsum(counts) - counts
    place = np.empty(len(rows), np.int64)
    place[order] = np.arange(len(rows)) - np.repeat(begin, counts)
    return place < kept[rows]
