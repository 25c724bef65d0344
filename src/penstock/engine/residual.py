"""Predicates, on whole columns at once: which rows hold.

A function of the user's gets columns in the types they came in; all else works on kept types.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine import numbers
from penstock.errors import SchemaError, UdfError
from penstock.model.binding import Binding
from penstock.model.predicate import (
    Call,
    Column,
    Comparison,
    Constant,
    Expression,
    Near,
    Predicate,
)
from penstock.state.arena import Flags
from penstock.state.storage import as_given, empty_array, kept_type

__all__ = ["Columns", "bound", "evaluated", "holds"]

Columns = Callable[[int, str], pa.Array]  # of a stream, by name

_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def holds(
    predicate: Predicate, columns: Columns, rows: int, schemas: Sequence[pa.Schema | None]
) -> Flags:
    """Which rows a predicate holds for.

    columns: in kept types. schemas: of the streams, None where one is not known.
    """
    if isinstance(predicate, Call):
        return _called(predicate, columns, rows, schemas)
    with _told(predicate.columns):
        answer = _answer(predicate, columns)
    if isinstance(answer, pa.Scalar):  # of constants only
        return np.full(rows, bool(answer.as_py()))
    return _true(answer)


def evaluated(expression: Expression, columns: Columns) -> pa.Array:
    """The values of an expression."""
    with _told(expression.columns):
        values: pa.Array = _value(expression, columns)
    return values


@contextmanager
def _told(columns: Collection[Column]) -> Iterator[None]:
    """What Arrow cannot compute, in the words of the user."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        names = sorted(column.name for column in columns)
        raise SchemaError(
            f"the columns {names} cannot be compared as where= does: {error}; cast them first"
        ) from error


def _true(answer: Any) -> Flags:
    """What is null is not true."""
    filled: Flags = pc.fill_null(answer, False).to_numpy(zero_copy_only=False)
    return filled


def _called(call: Call, columns: Columns, rows: int, schemas: Sequence[pa.Schema | None]) -> Flags:
    if not rows:
        return np.zeros(0, np.bool_)
    arguments = []
    for column in call.arguments:
        schema, values = schemas[column.stream], columns(column.stream, column.name)
        arguments.append(
            values if schema is None else as_given(values, schema.field(column.name).type)
        )
    try:
        answer = call.function(*arguments)
    except Exception as error:
        raise UdfError(
            f"udf {call.name!r} failed on {rows:,} rows with {type(error).__name__}: {error}; "
            "mend the function"
        ) from error
    if isinstance(answer, np.ndarray) and answer.dtype == np.bool_ and answer.ndim == 1:
        answer = pa.array(answer)
    told = f"; it must return a boolean pyarrow.Array or numpy array of {rows:,} values"
    if not isinstance(answer, pa.Array | pa.ChunkedArray):
        raise UdfError(f"udf {call.name!r} returned {_described(answer)}{told}")
    if answer.type != pa.bool_():
        raise UdfError(f"udf {call.name!r} returned an array of {answer.type}{told}")
    if len(answer) != rows:
        raise UdfError(f"udf {call.name!r} returned {len(answer):,} values{told}")
    return _true(answer)


def _described(answer: Any) -> str:
    if isinstance(answer, np.ndarray):
        return f"a numpy array of {answer.dtype} with {answer.ndim} dimensions"
    return f"a {type(answer).__name__}"


def bound(binding: Binding, schemas: Mapping[int, pa.Schema]) -> Binding:
    """A binding with further streams; refused if predicates compare what cannot be compared."""
    binding = binding.bound_with(schemas)

    def nothing(stream: int, name: str) -> pa.Array:
        schema = binding.schemas[stream]
        assert schema is not None, "of unknown streams nothing is checked"
        return empty_array(kept_type(schema.field(name).type))

    for predicate in (*binding.query.filters, *binding.query.residuals):
        streams = {column.stream for column in predicate.columns}
        known = all(binding.schemas[stream] is not None for stream in streams)
        if known and not isinstance(predicate, Call):
            holds(predicate, nothing, 0, binding.schemas)
    return binding


def _answer(predicate: Comparison | Near, columns: Columns) -> Any:
    if isinstance(predicate, Comparison):
        left, right = _values(predicate.left, predicate.right, columns)
        if predicate.op == "is":
            both_null = pc.and_(pc.is_null(left), pc.is_null(right))
            return pc.or_(pc.fill_null(pc.equal(left, right), False), both_null)
        return _COMPARISONS[predicate.op](left, right)
    differences = [
        numbers.calculated("-", *_values(left, right, columns)) for left, right in predicate.pairs
    ]
    if len(differences) == 1:
        distance = numbers.magnitude(differences[0])
    else:
        floats = [pc.cast(each, pa.float64(), safe=False) for each in differences]
        distance = pc.sqrt(reduce(pc.add, [pc.multiply(each, each) for each in floats]))
    compare = pc.less_equal if predicate.closed else pc.less
    return compare(*numbers.comparable(distance, numbers.constant(predicate.epsilon)))


def _values(left: Expression, right: Expression, columns: Columns) -> tuple[Any, Any]:
    """Both sides, in types that can be compared without a loss that shows."""
    return numbers.comparable(_value(left, columns), _value(right, columns))


def _value(expression: Expression, columns: Columns) -> Any:
    if isinstance(expression, Column):
        return columns(expression.stream, expression.name)
    if isinstance(expression, Constant):
        return numbers.constant(expression.value)
    return numbers.calculated(expression.op, *_values(expression.left, expression.right, columns))
