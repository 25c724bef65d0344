"""Two answers as users give them, made comparable: two tables with the same columns and types, or
two lists of rows.

Tables are compared by the columns that both have, or by those that are named; the order of columns
does not matter, and types that differ only in width (int32 and int64) are made the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.errors import InputError, SchemaError
from penstock.model.arrow_table import arrow_table
from penstock.windows.payload.storage import kept_type

__all__ = ["AnswerRows", "AnswerTables", "Answers", "paired"]

_NAMES: Final = ("exact", "approximate")


class AnswerTables(NamedTuple):
    """The columns that are compared, in the same order and of the same types."""

    exact: pa.Table
    approximate: pa.Table


class AnswerRows(NamedTuple):
    """Rows that can be hashed."""

    exact: list[Hashable]
    approximate: list[Hashable]


Answers: TypeAlias = AnswerTables | AnswerRows


def paired(exact: Any, approximate: Any, columns: Sequence[str] | None) -> Answers:
    """Two answers in the same form; refused when they are not."""
    given = [_read(answer, name) for answer, name in zip((exact, approximate), _NAMES, strict=True)]
    first, second = given
    if isinstance(first, pa.Table) and isinstance(second, pa.Table):
        return _same_columns(first, second, columns)
    if isinstance(first, list) and isinstance(second, list):
        if columns is not None:
            raise InputError(
                f"columns={columns!r} are named, but the answers are sequences of rows, which have "
                "no names; pass tables, or leave columns= out"
            )
        return AnswerRows(first, second)
    kinds = ["a table" if isinstance(each, pa.Table) else "a sequence of rows" for each in given]
    raise InputError(
        f"the exact answer is {kinds[0]} and the approximate one {kinds[1]}; "
        "pass both in the same form"
    )


def _read(answer: Any, name: str) -> pa.Table | list[Hashable]:
    table = arrow_table(answer, f"the {name} answer")
    if table is not None:
        return table
    if isinstance(answer, np.ndarray) and answer.ndim in (1, 2):
        answer = answer.tolist() if answer.ndim == 1 else [tuple(row) for row in answer.tolist()]
    is_text = isinstance(answer, str | bytes | bytearray)
    if is_text or not isinstance(answer, Sequence | Set):
        raise InputError(
            f"the {name} answer is a {type(answer).__name__}, which is no bag of rows; "
            "pass a table, or a list of tuples"
        )
    rows = list(answer)
    for row in rows:
        try:
            hash(row)
        except TypeError:
            raise InputError(
                f"the {name} answer has a row that cannot be hashed, {row!r}; "
                "pass tuples, or a table such as pyarrow.Table.from_pylist(rows)"
            ) from None
    return rows


def _same_columns(
    exact: pa.Table, approximate: pa.Table, columns: Sequence[str] | None
) -> AnswerTables:
    there = exact.column_names, approximate.column_names
    if columns is None:
        names = [name for name in there[0] if name in there[1]]
    else:
        names = [columns] if isinstance(columns, str) else list(columns)
    for told, answer in zip(there, _NAMES, strict=True):
        missing = [name for name in names if name not in told]
        if missing:
            raise SchemaError(
                f"the {answer} answer has no columns {missing}; its columns are {told}"
            )
        twice = sorted({name for name in names if told.count(name) > 1})
        if twice:
            raise SchemaError(
                f"the {answer} answer has several columns called {twice}; rename them, or name "
                "other ones in columns="
            )
    if not names:
        raise SchemaError(
            f"there are no columns to compare: the exact answer has {there[0]}, the approximate "
            f"one {there[1]}, columns= is {columns!r}; both need the columns that are compared"
        )
    names = list(dict.fromkeys(names))
    pairs = [_same_type(name, exact[name], approximate[name]) for name in names]
    return AnswerTables(
        pa.table([first for first, _ in pairs], names),
        pa.table([second for _, second in pairs], names),
    )


def _same_type(name: str, *columns: pa.ChunkedArray) -> tuple[pa.ChunkedArray, ...]:
    plain = tuple(_plain(column) for column in columns)
    types = [column.type for column in plain]
    if types[0] == types[1]:
        return plain
    try:
        schemas = [pa.schema([(name, data_type)]) for data_type in types]
        wide = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        return tuple(column.cast(wide) for column in plain)
    except pa.ArrowException as error:
        raise SchemaError(
            f"column {name!r} is {types[0]} in the exact answer and {types[1]} in the approximate "
            f"one, which cannot be compared: {error}; cast one of them, or leave it out by columns="
        ) from error


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values without the encoding that they came in."""
    data_type = column.type
    if isinstance(data_type, pa.BaseExtensionType):
        storage = [chunk.storage for chunk in column.chunks]
        return _plain(pa.chunked_array(storage, data_type.storage_type))
    if pt.is_run_end_encoded(data_type):
        values = [pc.run_end_decode(chunk) for chunk in column.chunks]
        return _plain(pa.chunked_array(values, data_type.value_type))
    if pt.is_dictionary(data_type):
        return _plain(column.cast(data_type.value_type))
    kept = kept_type(data_type)  # views as text
    return column if kept == data_type else column.cast(kept)
