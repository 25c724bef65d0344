"""Which predicates of a where clause hold for tuples that a user describes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from penstock.engine.residual import holds
from penstock.model.binding import Binding
from penstock.model.predicates.predicate import Predicate
from penstock.model.predicates.text import column_text, predicate_text
from penstock.model.query import Query

__all__ = ["passes_filters", "told_of", "where_columns"]

Rows = Mapping[
    int, Mapping[str, pa.Array]
]  # one row of each stream given, by column, in kept types


def where_columns(query: Query, stream: int, given: Collection[int]) -> list[str]:
    """The columns of a stream that predicates over the streams given need."""
    needed = {
        column.name
        for predicate in _over(query, given)
        for column in predicate.columns
        if column.stream == stream
    }
    return sorted(needed)


def passes_filters(binding: Binding, stream: int, row: Mapping[str, pa.Array]) -> bool:
    """Whether a tuple is let into its window."""
    return all(
        _holds(binding, predicate, {stream: row}) for predicate in binding.query.filters_of(stream)
    )


def told_of(binding: Binding, rows: Rows) -> list[tuple[bool, str]]:
    """Of each predicate over the streams given: whether it holds, and the same in words."""
    query = binding.query
    told = []
    for predicate in _over(query, rows):
        held = _holds(binding, predicate, rows)
        columns = sorted(predicate.columns, key=lambda each: (each.stream, each.name))
        values = ", ".join(
            f"{column_text(column, query.names)} is {rows[column.stream][column.name][0].as_py()!r}"
            for column in columns
        )
        text = predicate_text(predicate, query.names)
        told.append((held, f"{text} {'holds' if held else 'does not hold'}: {values}"))
    return told


def _over(query: Query, given: Collection[int]) -> Sequence[Predicate]:
    return [
        predicate
        for predicate in (*query.filters, *query.residuals)
        if all(column.stream in given for column in predicate.columns)
    ]


def _holds(binding: Binding, predicate: Predicate, rows: Rows) -> bool:
    def column(stream: int, name: str) -> pa.Array:
        return rows[stream][name]

    return bool(holds(predicate, column, 1, binding.schemas)[0])
