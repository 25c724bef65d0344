"""`truncate_tables`: two tables, cut to N rows, where they are.

A table is Arrow's or a Spark DataFrame (`frames.py`). Both give how many rows each key has, keys
become numbers (`key_numbers.py`), the choice is made from counts alone, and each table keeps the
chosen number of rows of each key.

Tables that are elsewhere can be cut in the same way: count by key there, give the counts to
`truncate`, and keep the number of rows that it returns for each key."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.lab.static.components import Ints
from penstock.lab.static.counts import Number
from penstock.lab.static.frames import is_frame, rows_of_frames
from penstock.lab.static.key_numbers import check_columns, key_columns, numbered
from penstock.lab.static.truncation import Truncation, check_options, truncated
from penstock.model.arrow_table import arrow_table

__all__ = ["truncate_tables"]


class _Rows(Protocol):
    """One of the tables."""

    def counted(self) -> tuple[pa.Table, Ints]:
        """Keys, and how many rows have them. The same key may come more than once."""
        ...

    def cut(self, numbers: Ints, kept: Ints) -> Any:
        """The table, with `kept[number]` rows of each key; numbers: of the keys that `counted`
        gave, in that order."""
        ...


def truncate_tables(
    left: Any,
    right: Any,
    on: str | Sequence[str],
    keep: Number | None = None,
    *,
    drop: Number | None = None,
    method: str = "optimal",
) -> tuple[Any, Any, Truncation]:
    """The rows of two tables to keep, so that the most pairs of equal keys are joined.

    left, right: both Arrow tables, or anything with `__arrow_c_stream__`; or both Spark DataFrames,
    of which only counts by key come here, at once, and what is given back is DataFrames. on: the
    column, or columns, that both have. keep, drop, method: as in `truncate`. Of each key the first
    rows are kept; on Spark, the first by their contents.

    `kept` of the result is by key, by tuples of values if the key has several columns; times of a
    zone are in UTC. Rows that equal nothing, for a null or NaN in the key, are counted together,
    under the key None.
    """
    columns = key_columns(on)
    check_options(keep, drop, method)
    tables = _rows(left, right, columns)
    counted = [table.counted() for table in tables]
    keys, numbers = numbered([there for there, _ in counted], columns)
    sides = np.zeros((2, len(keys)), np.int64)
    for side, (_, counts) in enumerate(counted):
        np.add.at(sides[side], numbers[side], counts)
    kept, result = _chosen(keys, sides, keep=keep, drop=drop, method=method)
    cut = [table.cut(numbers[side], kept[:, side]) for side, table in enumerate(tables)]
    return cut[0], cut[1], result


def _chosen(
    keys: list[Hashable], sides: Ints, *, keep: Number | None, drop: Number | None, method: str
) -> tuple[Ints, Truncation]:
    """How many rows of each key to keep of either side; the last key is that of no match."""
    # Rows without a key: those of either side by themselves, so as not to meet.
    unmatched = sides[:, -1].tolist()
    none = np.zeros((2, 1), np.int64)
    apart = np.concatenate([sides, none], axis=1)
    apart[1, -2:] = 0, unmatched[1]
    numbers = [*range(len(keys) - 1), "left", "right"]
    result = truncated(numbers, (apart[0], apart[1]), keep=keep, drop=drop, method=method)
    kept = np.array(list(result.kept.values()), np.int64)
    kept[-2, 1] = kept[-1, 1]
    kept = kept[:-1]
    by_key = dict(zip(keys, map(tuple, kept.tolist()), strict=True))
    if not any(unmatched):
        del by_key[None]
    return kept, Truncation(result.joined, result.total, by_key, result.method)


def _rows(left: Any, right: Any, columns: list[str]) -> list[_Rows]:
    named = {"left": left, "right": right}
    frames = [name for name, given in named.items() if is_frame(given)]
    if len(frames) == 1:
        (other,) = set(named) - set(frames)
        raise InputError(
            f"{frames[0]} is a Spark DataFrame and {other} is not, got "
            f"{type(named[other]).__name__}; make it one with spark.createDataFrame, or give "
            f"{frames[0]}.toArrow() if it fits in memory here"
        )
    if frames:
        return [*rows_of_frames(named, columns)]
    return [_ArrowRows(_table(given, name), name, columns) for name, given in named.items()]


class _ArrowRows:
    """An Arrow table, of which every row is counted for itself."""

    def __init__(self, table: pa.Table, name: str, columns: list[str]) -> None:
        check_columns(name, table.column_names, columns)
        self._table = table
        self._keys = table.select(columns)

    def counted(self) -> tuple[pa.Table, Ints]:
        return self._keys, np.ones(self._keys.num_rows, np.int64)

    def cut(self, numbers: Ints, kept: Ints) -> pa.Table:
        """The first rows of each key, in the order of the table."""
        order = np.argsort(numbers, kind="stable")
        counts = np.bincount(numbers, minlength=len(kept))
        begin = np.cumsum(counts) - counts
        place = np.empty(len(numbers), np.int64)
        place[order] = np.arange(len(numbers)) - np.repeat(begin, counts)
        flags = pa.array(place < kept[numbers])
        columns = [_filtered(column, flags) for column in self._table.columns]
        return pa.Table.from_arrays(columns, schema=self._table.schema)


def _table(data: Any, name: str) -> pa.Table:
    table = arrow_table(data, name)
    if table is None:
        raise InputError(
            f"{name} must be a table, got {type(data).__name__}; pass a pyarrow, pandas or polars "
            f"table, anything with __arrow_c_stream__, or a Spark DataFrame"
        )
    return table


def _filtered(column: pa.ChunkedArray, flags: pa.Array) -> pa.ChunkedArray:
    """Some values of a column; Arrow does not choose among views, which polars has for text."""
    wide = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    if column.type not in wide:
        return column.filter(flags)
    return column.cast(wide[column.type]).filter(flags).cast(column.type)
