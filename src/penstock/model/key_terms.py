"""Which terms of a where clause make the key that tuples are found by.

Columns that must be equal form classes. A class with a column of every stream is part of the
key; what it says of these columns need not be checked again. All other terms are: those over
one stream before its window, the rest on candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.model.predicate import Column, Comparison, Predicate

__all__ = ["divided", "keys_of"]


def keys_of(predicates: Sequence[Predicate], streams: int) -> tuple[tuple[str, ...], ...]:
    """The key columns of each stream; none where no class is over all streams."""
    keys: list[list[str]] = [[] for _ in range(streams)]
    for together in _classes(predicates):
        chosen = {column.stream: column.name for column in sorted(together, key=_place)[::-1]}
        if len(chosen) == streams:
            for stream in range(streams):
                keys[stream].append(chosen[stream])
    return tuple(tuple(key) for key in keys)


def divided(
    predicates: Sequence[Predicate], keys: Sequence[Sequence[str]]
) -> tuple[tuple[Predicate, ...], tuple[Predicate, ...]]:
    """Filters of one stream, and what is left to check of several, beside the key."""
    filters, residuals = [], []
    for predicate in predicates:
        if len({column.stream for column in predicate.columns}) <= 1:
            filters.append(predicate)
        elif not _is_in_key(predicate, keys):
            residuals.append(predicate)
    return tuple(filters), tuple(residuals)


def _classes(predicates: Sequence[Predicate]) -> list[set[Column]]:
    classes: list[set[Column]] = []
    for predicate in predicates:
        if _is_equality(predicate):
            joined = set(predicate.columns)
            apart = [each for each in classes if not each & joined]
            for each in classes:
                if each & joined:
                    joined |= each
            classes = [*apart, joined]
    return classes


def _is_equality(predicate: Predicate) -> bool:
    return (
        isinstance(predicate, Comparison)
        and predicate.op == "="
        and isinstance(predicate.left, Column)
        and isinstance(predicate.right, Column)
        and predicate.left.stream != predicate.right.stream
    )


def _is_in_key(predicate: Predicate, keys: Sequence[Sequence[str]]) -> bool:
    if not _is_equality(predicate):
        return False
    left, right = sorted(predicate.columns, key=_place)
    pairs = zip(keys[left.stream], keys[right.stream], strict=True)
    return (left.name, right.name) in pairs


def _place(column: Column) -> tuple[int, str]:
    return column.stream, column.name
