"""Predicates, on whole columns at once: which rows hold.

A function of the user's gets columns in the types they came in; all else works on kept types.
Numbers and times are calculated and compared by `engine.numbers`, first in 64 bits, then once more
the rows that did not fit; text, bytes and truth values are compared by Arrow. No value of a
column fails: what types cannot do is refused when they are bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.engine import numbers
from penstock.engine.number_columns import number_of, written_number
from penstock.engine.numbers import Incomparable, Number
from penstock.engine.whole import Calculation
from penstock.errors import SchemaError, UdfError
from penstock.kernels.arena import Flags
from penstock.model.binding import Binding
from penstock.model.predicates.predicate import (
    Arithmetic,
    Call,
    Column,
    Comparison,
    Constant,
    Expression,
    Near,
    Predicate,
)
from penstock.windows.payload.storage import as_given, empty_array, kept_type

__all__ = ["Columns", "bound", "evaluated", "holds", "in_order"]

Columns = Callable[[int, str], pa.Array]  # of a stream, by name

# In Arrow and in numpy.
_COMPARISONS: Final[dict[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "=": (pc.equal, np.equal),
    "is": (pc.equal, np.equal),
    "<>": (pc.not_equal, np.not_equal),
    "<": (pc.less, np.less),
    "<=": (pc.less_equal, np.less_equal),
    ">": (pc.greater, np.greater),
    ">=": (pc.greater_equal, np.greater_equal),
}
_BLOCK_ROWS: Final = 1 << 15
_MS_PER_DAY: Final = 86_400_000
_US: Final = 6  # a microsecond is 10**-6 seconds


def holds(
    predicate: Predicate, columns: Columns, rows: int, schemas: Sequence[pa.Schema | None]
) -> Flags:
    """Which rows a predicate holds for.

    columns: in kept types. schemas: of the streams, None for one that is not known.
    """
    if isinstance(predicate, Call):
        return _called(predicate, columns, rows, schemas)
    with _told(predicate.columns):
        if isinstance(predicate, Comparison):
            arrays = _comparable(predicate, columns)
            if arrays is not None:
                return _true(_compared(predicate.op, *arrays))
        flags: Flags = _calculated(
            rows,
            columns,
            lambda calculation, taken: _for_all(
                calculation, _decided(calculation, predicate, taken)
            ),
        )
    return flags


def evaluated(expression: Expression, columns: Columns) -> pa.Array:
    """The values of an expression over numbers: a column as it is, all else as floats."""
    with _told(expression.columns):
        return _floats(expression, columns, of_times=False)


def in_order(expression: Expression, columns: Columns) -> pa.Array:
    """Values in the order of those of an expression: a column as it is, all else as floats, times
    in microseconds."""
    with _told(expression.columns):
        return _floats(expression, columns, of_times=True)


def _floats(expression: Expression, columns: Columns, *, of_times: bool) -> pa.Array:
    first = min(expression.columns, key=lambda each: each.name)
    rows = len(columns(first.stream, first.name))
    if expression == first:
        array = columns(first.stream, first.name)
        return _in_days(array) if of_times and pt.is_date64(array.type) else array

    def decide(calculation: Calculation, taken: Columns) -> Any:
        value = _value(calculation, expression, taken)
        if not isinstance(value, Number) or not (of_times or numbers.is_number(value)):
            raise Incomparable("it gives no number")
        floats = numbers.floats(calculation, value)
        floats = floats if numbers.is_number(value) else floats * 10.0**_US
        null = False if value.valid is None else ~value.valid
        return np.stack([_for_all(calculation, each) for each in (floats, null)])

    floats, null = _calculated(rows, columns, decide)
    return pa.array(floats, mask=null != 0, from_pandas=False)


def _in_days(array: pa.Array) -> pa.Array:
    """Dates as the microseconds of their days, also where stored milliseconds are no whole days."""
    days = np.floor_divide(array.view(pa.int64()).fill_null(0).to_numpy(), _MS_PER_DAY)
    null = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(days * (_MS_PER_DAY * 1e3), mask=null)


def _for_all(calculation: Calculation, values: Any) -> Any:
    """A value for each row, of values for each or of one for all."""
    return np.broadcast_to(values, calculation.rows)


def _calculated(rows: int, columns: Columns, decide: Callable[[Calculation, Columns], Any]) -> Any:
    """What is decided for each row, as many rows at a time as stay in a processor's cache."""
    if rows <= _BLOCK_ROWS:
        return _calculated_block(rows, columns, decide)
    parts = []
    for begin in range(0, rows, _BLOCK_ROWS):
        size = min(_BLOCK_ROWS, rows - begin)

        def block(stream: int, name: str, at: int = begin, size: int = size) -> pa.Array:
            return columns(stream, name).slice(at, size)

        parts.append(_calculated_block(size, block, decide))
    return np.concatenate(parts, axis=-1)


def _calculated_block(
    rows: int, columns: Columns, decide: Callable[[Calculation, Columns], Any]
) -> Any:
    """In 64 bits, and again for the rows that did not fit."""
    with np.errstate(all="ignore"):
        calculation = Calculation(rows)
        decided = np.array(decide(calculation, columns))
        if calculation.doubtful is not None:
            again = np.flatnonzero(calculation.doubtful)
            chosen = pa.array(again)
            decided[..., again] = decide(
                Calculation(len(again), wide=True),
                lambda stream, name: columns(stream, name).take(chosen),
            )
    return decided


@contextmanager
def _told(columns: Collection[Column]) -> Iterator[None]:
    """What cannot be computed, in the words of the user."""
    try:
        yield
    except (Incomparable, pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
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


def _comparable(predicate: Comparison, columns: Columns) -> tuple[Any, Any] | None:
    """Both sides, if they are plain and Arrow compares their types by value without a cast."""
    sides: list[Any] = []
    for expression, other in (
        (predicate.left, predicate.right),
        (predicate.right, predicate.left),
    ):
        if isinstance(expression, Column):
            sides.append(columns(expression.stream, expression.name))
        elif isinstance(expression, Constant) and isinstance(other, Column):
            value, kind = expression.value, None
            if isinstance(value, Decimal):
                return None  # Arrow's may be too short for it
            if isinstance(value, int) and not isinstance(value, bool):
                is_unsigned = pt.is_uint64(columns(other.stream, other.name).type)
                if not _is_in_64_bits(value, is_unsigned):
                    return None
                kind = pa.uint64() if is_unsigned else pa.int64()
            sides.append(pa.scalar(value, kind))
        else:
            return None
    types = [side.type for side in sides]
    if any(map(_is_left_to_numbers, types)):
        return None
    small = all(pt.is_integer(each) and not pt.is_uint64(each) for each in types)
    alike = types[0] == types[1] or small or all(map(pt.is_floating, types))
    return (sides[0], sides[1]) if alike else None


def _is_left_to_numbers(data_type: pa.DataType) -> bool:
    """Whether Arrow does not compare values of a type, or not as days, even with each other."""
    odd = (pt.is_null, pt.is_float16, pt.is_date64)
    return any(test(data_type) for test in odd) or (
        pt.is_decimal(data_type) and data_type.scale < 0
    )


def _is_in_64_bits(value: int, unsigned: bool) -> bool:
    return 0 <= value < 1 << 64 if unsigned else -(1 << 63) <= value < 1 << 63


def _compared(op: str, left: Any, right: Any) -> Any:
    answer = _COMPARISONS[op][0](left, right)
    if op != "is":
        return answer
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(pc.fill_null(answer, False), both_null)


def _decided(calculation: Calculation, predicate: Comparison | Near, columns: Columns) -> Any:
    if isinstance(predicate, Near):
        return _is_near(calculation, predicate, columns)
    left = _value(calculation, predicate.left, columns)
    right = _value(calculation, predicate.right, columns)
    op = predicate.op
    if not isinstance(left, Number) and not isinstance(right, Number):
        answer = _compared(op, left, right)
        return bool(answer.as_py()) if isinstance(answer, pa.Scalar) else _true(answer)
    if not isinstance(left, Number) or not isinstance(right, Number):
        return _beside_null(op, left, right)
    said, valid = numbers.compared(calculation, _COMPARISONS[op][1], left, right)
    if valid is None:
        return said
    if op == "is" and left.valid is not None and right.valid is not None:
        return (said & valid) | ~(left.valid | right.valid)
    return said & valid


def _beside_null(op: str, left: Any, right: Any) -> Any:
    """What is neither a number nor a time, beside a column that has no type but null."""
    number, other = (left, right) if isinstance(left, Number) else (right, left)
    if number.kind != "null":
        raise Incomparable(f"{numbers.named(number)} beside {other.type} has no meaning")
    return pc.is_null(other).to_numpy(zero_copy_only=False) if op == "is" else False


def _is_near(calculation: Calculation, near: Near, columns: Columns) -> Any:
    sides = [
        (_number(calculation, left, columns), _number(calculation, right, columns))
        for left, right in near.pairs
    ]
    apart = [numbers.distance(calculation, left, right) for left, right in sides]
    compare = np.less_equal if near.closed else np.less
    epsilon = written_number(calculation, near.epsilon)
    assert epsilon is not None, "an epsilon is a number"
    if len(apart) == 1:
        said, valid = numbers.compared(calculation, compare, apart[0], epsilon)
        return said if valid is None else said & valid
    lengths = [numbers.floats(calculation, each) for each in apart]
    distance = np.sqrt(reduce(np.add, [each * each for each in lengths]))
    said = compare(distance, numbers.floats(calculation, epsilon))
    valids = [each.valid for each in apart if each.valid is not None]
    return reduce(np.logical_and, [said, *valids])


def _number(calculation: Calculation, expression: Expression, columns: Columns) -> Number:
    value = _value(calculation, expression, columns)
    if not isinstance(value, Number):
        raise Incomparable(f"{value.type} is no number")
    return value


def _value(calculation: Calculation, expression: Expression, columns: Columns) -> Any:
    """Numbers of rows; what is neither a number nor a time as Arrow has it."""
    if isinstance(expression, Arithmetic):
        left = _number(calculation, expression.left, columns)
        right = _number(calculation, expression.right, columns)
        return numbers.calculated(calculation, expression.op, left, right)
    if isinstance(expression, Column):
        array = columns(expression.stream, expression.name)
        number = number_of(calculation, array)
        return array if number is None else number
    number = written_number(calculation, expression.value)
    return pa.scalar(expression.value) if number is None else number
