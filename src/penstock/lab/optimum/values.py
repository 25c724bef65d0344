"""What results are worth, as whole numbers.

Flows count in whole numbers, of 40 bits at most. Values that are not whole, or too large, are taken
in units so fine that the largest has 36 bits, rounded up, so that no answer can be worth more than
what is found for them; in coarser ones where many results come at once, which are added up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import frexp, ldexp
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.engine.padding import event_times
from penstock.engine.residual import evaluated
from penstock.errors import InputError, PlanError, SchemaError, UdfError
from penstock.kernels.arena import Words
from penstock.lab.optimum.holding import LARGEST_WORTH
from penstock.lab.optimum.matched_pairs import Matches
from penstock.model.binding import EVENT_TIME, Binding
from penstock.model.keys import is_text
from penstock.model.predicates.where import parse_expression
from penstock.model.query import Query
from penstock.windows.payload.storage import as_given, as_kept

__all__ = ["Floats", "Scaled", "Value", "result_values", "scaled"]

Value = str | Callable[[pa.Table], Any]
Floats = npt.NDArray[np.float64]

_BITS: Final = 36
_LARGEST_SUM: Final = float(1 << 53)
_LEAST_UNIT: Final = ldexp(1.0, -1074)  # the least float: all of them are multiples of it


@dataclass(frozen=True)
class Scaled:
    """units: whole numbers, each the value divided by `unit`, rounded up. is_whole: whether the
    values are whole numbers themselves."""

    values: Floats
    units: Words
    unit: float
    is_whole: bool


def scaled(values: Floats, together: int) -> Scaled:
    """Values in whole units. together: how many results of a tuple can come at an instant."""
    most = float(values.max(initial=0.0))
    is_small = most * together <= LARGEST_WORTH and float(values.sum()) < _LARGEST_SUM
    if is_small and bool((values == np.floor(values)).all()):
        return Scaled(values, values.astype(np.int64), 1.0, is_whole=True)
    bits = min(_BITS, LARGEST_WORTH.bit_length() - 1 - together.bit_length())
    unit = max(ldexp(1.0, frexp(most)[1] - bits), _LEAST_UNIT)
    return Scaled(values, np.ceil(values / unit).astype(np.int64), unit, is_whole=False)


def result_values(query: Query, value: Value, matches: Matches) -> Floats:
    """The value of each result."""
    if isinstance(value, str):
        found = _of_expression(query, value, matches)
    elif callable(value):
        results = _results(query, matches)
        try:
            found = value(results)
        except Exception as error:
            raise UdfError(
                f"the function of value= failed on {len(results):,} results with "
                f"{type(error).__name__}: {error}; it gets a table with the columns "
                f"{results.column_names}"
            ) from error
    else:
        raise PlanError(
            "value must be an expression over one stream, such as 'a.price', or a function of the "
            f"table of results, got {value!r}"
        )
    return _checked(found, len(matches.rows[0]))


def _of_expression(query: Query, text: str, matches: Matches) -> pa.Array:
    expression = parse_expression(text, query.names, "value")
    (stream,) = {column.stream for column in expression.columns}
    table = matches.tables[stream]
    for column in sorted(each.name for each in expression.columns):
        if column not in table.column_names:
            raise SchemaError(
                f"value= needs column {column!r} of stream {query.names[stream]!r}, which is not "
                f"there; its columns are {table.column_names}"
            )
    of_tuples = evaluated(expression, lambda _, name: as_kept(table[name].combine_chunks()))
    return of_tuples.take(pa.array(matches.rows[stream]))


def _results(query: Query, matches: Matches) -> pa.Table:
    """The results as the join gives them out."""
    binding = Binding.of(query).bound_with(
        {stream: table.schema for stream, table in enumerate(matches.tables)}
    )
    rows = [pa.array(each) for each in matches.rows]
    columns = []
    for out in binding.output:
        column = matches.tables[out.stream][out.column].combine_chunks()
        # As they are kept, for Arrow does not take from all types.
        columns.append(as_given(as_kept(column).take(rows[out.stream]), column.type))
    names = [*(out.name for out in binding.output), EVENT_TIME]
    return pa.table([*columns, event_times(binding, matches.times)], names)


def _checked(found: Any, results: int) -> Floats:
    advice = "value must give a number, 0 or more, for each result"
    try:
        array = found if isinstance(found, pa.Array | pa.ChunkedArray) else pa.array(found)
        if is_text(array.type):
            raise TypeError("text is no number, even if it looks like one")
        floats = array.cast(pa.float64(), safe=False)
    except (pa.ArrowException, TypeError, ValueError):
        got = f"those of type {found.type}" if isinstance(found, pa.Array) else repr(found)[:80]
        raise InputError(f"{advice}, got {got}") from None
    if len(floats) != results:
        raise InputError(f"{advice}, got {len(floats):,} numbers for {results:,} results")
    if floats.null_count:
        raise InputError(f"{advice}, got {floats.null_count:,} nulls; fill them")
    values: Floats = floats.to_numpy()
    wrong = values[~((values >= 0) & (values < np.inf))]
    if len(wrong):
        raise InputError(f"{advice}, got {wrong[0]!r} and {len(wrong) - 1:,} others like it")
    return values
