"""What the functions for static joins are given, checked: counts by key, and how many to keep.

Nothing here computes an answer. What passes are whole numbers, not negative, and no more to be kept
than there are. Every refusal is an `InputError`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import index
from typing import Any, TypeAlias

import numpy as np

from penstock.errors import InputError
from penstock.lab.static.components import Ints

__all__ = ["Counts", "Number", "checked_counts", "checked_keep", "checked_total"]

Counts: TypeAlias = Mapping[Any, int] | Sequence[int]
Number: TypeAlias = int | Sequence[int]

_LARGEST = np.iinfo(np.int64).max


def checked_counts(
    counts: Sequence[Any], names: Sequence[str]
) -> tuple[list[Hashable], list[Ints]]:
    """The keys of all relations, and for each relation how many tuples each key has."""
    mapped = [isinstance(each, Mapping) for each in counts]
    if all(mapped):
        keys = list(dict.fromkeys(key for each in counts for key in each))
        columns = [[each.get(key, 0) for key in keys] for each in counts]
    elif not any(mapped):
        columns = [_column(each, name) for each, name in zip(counts, names, strict=True)]
        lengths = [len(column) for column in columns]
        if len(set(lengths)) > 1:
            raise InputError(
                f"sequences of counts must be of one length, got {lengths}; give a number for "
                f"each key, 0 where it has no tuples, or mappings from keys to numbers"
            )
        keys = list(range(lengths[0]))
    else:
        raise InputError(
            f"counts must be all mappings or all sequences, got "
            f"{[type(each).__name__ for each in counts]}; give mappings from keys to numbers"
        )
    return keys, [_ints(column, keys, name) for column, name in zip(columns, names, strict=True)]


def checked_keep(
    keep: Number | None, drop: Number | None, there: Sequence[int], *, forms: Sequence[str]
) -> int | tuple[int, ...]:
    """How many tuples to keep: of all relations together, or of each."""
    if (keep is None) == (drop is None):
        got = "neither" if keep is None else f"keep={keep!r} and drop={drop!r}"
        raise InputError(f"one of keep and drop must be given, got {got}; give one of the two")
    name, given = ("keep", keep) if drop is None else ("drop", drop)
    advice = f"give {' or '.join(forms)}"
    if not isinstance(given, str | bytes) and isinstance(given, Iterable):
        numbers = [_whole(each, name, advice) for each in given]
        if len(numbers) != len(there):
            raise InputError(
                f"{name} must have a number for each of {len(there)} relations, got {given!r}; "
                f"{advice}"
            )
        kept = [_kept(number, name, most) for number, most in zip(numbers, there, strict=True)]
        return tuple(kept)
    return _kept(_whole(given, name, advice), name, sum(there))


def checked_total(columns: Sequence[Ints]) -> int:
    """How many combinations the whole relations have. Numbers of tuples and of combinations must
    be small enough for whole numbers of 64 bits."""
    together = [1] * len(columns[0])
    for column in columns:
        together = [one * other for one, other in zip(together, column.tolist(), strict=True)]
    total, tuples = sum(together), sum(sum(column.tolist()) for column in columns)
    if max(total, tuples) > _LARGEST // 4:
        raise InputError(
            f"the relations join to {total:,} results, more than can be counted in 64 bits; "
            f"divide all counts and what is kept by the same number"
        )
    return total


def _column(given: Any, name: str) -> list[Any]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(
            f"{name} must be a mapping from keys to numbers of tuples, or a sequence of them, "
            f"got {given!r}; give how many tuples each key has"
        )
    return list(given)


def _ints(column: list[Any], keys: list[Hashable], name: str) -> Ints:
    try:
        array = np.array(column)
    except (OverflowError, ValueError):  # numbers beyond any type, or sequences in it
        array = np.array([], np.object_)
    if array.dtype.kind == "i" and array.ndim == 1 and array.min(initial=0) >= 0:
        return array.astype(np.int64)
    for key, value in zip(keys, column, strict=True):
        number = _whole(value, f"{name} of key {key!r}", "give how many tuples it has")
        if number > _LARGEST // 4:
            raise InputError(
                f"{name} of key {key!r} must fit 64 bits, got {value!r}; divide all counts and "
                f"what is kept by the same number"
            )
    return np.array([index(value) for value in column], np.int64)


def _whole(value: Any, name: str, advice: str) -> int:
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, got {value!r}; {advice}") from None
    if number < 0:
        raise InputError(f"{name} must not be negative, got {value!r}; {advice}")
    return number


def _kept(number: int, name: str, there: int) -> int:
    if number > there:
        raise InputError(
            f"{name} must be no more than there are, got {number:,} of {there:,} tuples; "
            f"give a number from 0 to {there}"
        )
    return number if name == "keep" else there - number
