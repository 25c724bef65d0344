"""How far two rows are from each other: a weighted sum over numeric columns, or a function.

A distance is given as the name of a column, several names, names with weights, or a function. By
names it is L1, the sum of weight * |difference|. A function gets the columns of both answers, those
of the exact one upright, with shape (rows, 1), and those of the approximate one flat, with shape
(1, rows): what it computes from them is a matrix of all pairs, without a loop. Rows of sequences
have their positions for names: 0, 1, 2; rows that are no tuples, the name 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from penstock.errors import InputError, SchemaError
from penstock.lab.measures.answers import Answers, AnswerTables

__all__ = [
    "MOST_PAIRS",
    "Distance",
    "Floats",
    "check_pairs",
    "city_block",
    "distances_of",
    "points",
    "weights",
]

Name: TypeAlias = str | int
Columns: TypeAlias = Mapping[Name, npt.NDArray[Any]]
Distance: TypeAlias = (
    Name | Sequence[Name] | Mapping[Name, float] | Callable[[Columns, Columns], Any]
)
Floats: TypeAlias = npt.NDArray[np.float64]

MOST_PAIRS: Final = 25_000_000  # 200 MB of distances, and as much again to match them


def check_pairs(exact_rows: int, approximate_rows: int, most_pairs: int) -> None:
    """Refuse answers whose distances would not fit."""
    if exact_rows * approximate_rows > most_pairs:
        raise InputError(
            f"{exact_rows:,} and {approximate_rows:,} rows make {exact_rows * approximate_rows:,} "
            f"pairs, a matrix of {exact_rows * approximate_rows * 8 / 2**20:,.0f} MiB, and "
            f"most_pairs is {most_pairs:,}; compare samples of the answers, or raise most_pairs"
        )


def weights(distance: Distance, answers: Answers) -> dict[Name, float] | None:
    """The weight of each column; None for a function."""
    if callable(distance):
        return None
    if isinstance(distance, str | int):
        distance = [distance]
    if isinstance(distance, Mapping):
        told = dict(distance)
    elif isinstance(distance, Sequence):
        told = dict.fromkeys(distance, 1.0)
    else:
        raise InputError(
            f"a distance is a column, several, columns with weights, or a function, got "
            f"{distance!r}"
        )
    there = _names(answers) or list(told)  # sequences without a row may have any columns
    unknown = [name for name in told if name not in there]
    if unknown or not told:
        raise SchemaError(
            f"the distance is over the columns {list(told)}, of which {unknown} are not there; "
            f"name some of {there}"
        )
    for name, weight in told.items():
        if not isinstance(weight, int | float) or not isfinite(weight) or weight < 0:
            raise InputError(
                f"the weight of column {name!r} is {weight!r}; weights are numbers of 0 and more"
            )
    return told


def points(answers: Answers, weighted: Mapping[Name, float]) -> tuple[Floats, Floats]:
    """The rows of both answers as points, one coordinate a column, times its weight: their distance
    is the sum of what the coordinates differ by."""
    exact, approximate = (
        np.stack(
            [weight * _numbers(answer, name) for name, weight in weighted.items()],
            axis=1,
        )
        for answer in answers
    )
    return exact, approximate


def distances_of(answers: Answers, distance: Distance) -> Floats:
    """Of each row of the exact answer from each of the approximate one. Both have rows. By names
    they are in the order of their values, so that the order they come in does not matter."""
    weighted = weights(distance, answers)
    if weighted is not None:
        exact, approximate = points(answers, weighted)
        return city_block(_in_order(exact), _in_order(approximate))
    if not callable(distance):
        raise AssertionError(distance)
    names = _names(answers)
    upright = {name: _values(answers.exact, name)[:, None] for name in names}
    flat = {name: _values(answers.approximate, name)[None, :] for name in names}
    return _checked(distance(upright, flat), (len(answers.exact), len(answers.approximate)))


def city_block(exact: Floats, approximate: Floats) -> Floats:
    """Of each point from each, the sum of the distances along all axes."""
    found: Floats = np.zeros((len(exact), len(approximate)))
    for here, there in zip(exact.T, approximate.T, strict=True):
        found += np.abs(here[:, None] - there)
    return found


def _in_order(given: Floats) -> Floats:
    return given[np.lexsort(given.T)]


def _checked(given: Any, shape: tuple[int, int]) -> Floats:
    try:
        matrix = np.asarray(given).astype(np.float64, casting="same_kind", copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"the distance function gave no numbers: {error}") from error
    if matrix.shape != shape:
        raise InputError(
            f"the distance function gave an array of shape {matrix.shape}, not {shape}; it gets "
            "columns of shape (rows, 1) and (1, rows), of which it makes a matrix of all pairs"
        )
    wrong = ~np.isfinite(matrix) | (matrix < 0)
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        raise InputError(
            f"the distance of row {row} of the exact answer from row {column} of the approximate "
            f"one is {matrix[row, column]}; distances must be numbers of 0 and more"
        )
    return matrix


def _names(answers: Answers) -> list[Name]:
    if isinstance(answers, AnswerTables):
        return list(answers.exact.column_names)
    widths = {len(row) if isinstance(row, tuple) else -1 for row in chain(*answers)}
    if len(widths) > 1:
        raise InputError(
            "the rows are not alike: they must all be tuples of one length, or none a tuple, "
            "for a distance between them"
        )
    width = widths.pop() if widths else 0
    return [0] if width < 0 else list(range(width))


def _values(answer: pa.Table | list[Hashable], name: Name) -> npt.NDArray[Any]:
    if isinstance(answer, pa.Table):
        column: npt.NDArray[Any] = answer[name].to_numpy()
        return column
    place = int(name)
    return np.array([row[place] if isinstance(row, tuple) else row for row in answer])


def _numbers(answer: pa.Table | list[Hashable], name: Name) -> Floats:
    """A column as floats; times as microseconds."""
    try:
        if isinstance(answer, pa.Table):
            column = _in_microseconds(answer[name])
            numbers = column.cast(pa.float64(), safe=False).to_numpy()  # nulls become NaN
        else:
            numbers = _values(answer, name).astype(np.float64, casting="same_kind")
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaError(
            f"column {name!r} is no number, as L1 needs: {error}; name another column, or give a "
            "function as the distance"
        ) from error
    if not np.isfinite(numbers).all():
        raise InputError(
            f"column {name!r} has nulls, NaN or infinite values, from which nothing has a "
            "distance; filter or fill them first"
        )
    floats: Floats = numbers
    return floats


def _in_microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    data_type = column.type
    if pt.is_string(data_type) or pt.is_large_string(data_type) or pt.is_string_view(data_type):
        raise TypeError(f"it is {data_type}")  # Arrow would read numbers from text
    if pt.is_date(data_type) or pt.is_timestamp(data_type):
        return column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    if pt.is_duration(data_type):
        return column.cast(pa.duration("us"), safe=False).cast(pa.int64())
    if pt.is_time(data_type):
        return column.cast(pa.time64("us"), safe=False).cast(pa.int64())
    return column.cast(pa.int8()) if pt.is_boolean(data_type) else column
