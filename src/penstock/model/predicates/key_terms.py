"""Which terms of a where clause make the key that tuples are found by.

Columns that must be equal form classes. A class with a column of every stream is part of the
key; what it says of these columns need not be checked again. All other terms are: those over
one stream before its window, the rest on candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.model.predicates.predicate import Column, Comparison, Predicate

__all__ = ["chosen_of", "classes", "divided", "is_equality", "keys_of"]


def keys_of(predicates: Sequence[Predicate], streams: int) -> tuple[tuple[str, ...], ...]:
    """The key columns of each stream; none where no class is over all streams."""
    keys: list[list[str]] = [[] for _ in range(streams)]
    for together in classes(predicates):
        chosen = chosen_of(together)
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


def classes(predicates: Sequence[Predicate], op: str = "=") -> list[set[Column]]:
    """The sets of columns that such predicates make equal."""
    found: list[set[Column]] = []
    for predicate in predicates:
        if is_equality(predicate, op):
            joined = set(predicate.columns)
            apart = [each for each in found if not each & joined]
            for each in found:
                if each & joined:
                    joined |= each
            found = [*apart, joined]
    return found


def chosen_of(together: set[Column]) -> dict[int, str]:
    """Of each stream in a class one column, the first by name."""
    return {column.stream: column.name for column in sorted(together, key=_place)[::-1]}


def is_equality(predicate: Predicate, op: str = "=") -> bool:
    """Whether plain columns of two streams are compared so."""
    return (
        isinstance(predicate, Comparison)
        and predicate.op == op
        and isinstance(predicate.left, Column)
        and isinstance(predicate.right, Column)
        and predicate.left.stream != predicate.right.stream
    )


def _is_in_key(predicate: Predicate, keys: Sequence[Sequence[str]]) -> bool:
    if not is_equality(predicate):
        return False
    left, right = sorted(predicate.columns, key=_place)
    pairs = zip(keys[left.stream], keys[right.stream], strict=True)
    return (left.name, right.name) in pairs


def _place(column: Column) -> tuple[int, str]:
    return column.stream, column.name
