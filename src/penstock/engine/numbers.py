"""Arithmetic and comparison of columns, by value whatever their types are.

Arrow calculates in the type of its columns, and wraps around where a result does not fit; and it
refuses to compare integers with floats that cannot hold them. Here small integers are calculated
as 64-bit ones, what does not fit these as decimals, and an integer beside a float is taken for
the nearest float. A number that is written in a query beside decimals is a decimal too.

A division of integers leaves out what is behind the point, a remainder has the sign of the
dividend, and both are null where the divisor is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

__all__ = ["calculated", "comparable", "constant", "magnitude"]

_CHECKED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "/": pc.divide_checked,
}
_ALL_DIGITS: Final = pa.decimal256(20, 0)  # of any 64-bit integer
_MOST_DIGITS: Final = 38  # of a decimal of 128 bits
_LARGEST: Final = (1 << 63) - 1


def constant(value: Any) -> Any:
    """A value that is written in a query."""
    if isinstance(value, int) and not -_LARGEST - 1 <= value <= _LARGEST:
        return pa.scalar(Decimal(value))
    return pa.scalar(value)


def comparable(left: Any, right: Any) -> tuple[Any, Any]:
    """Two columns, or a column and a constant, in types that Arrow compares without complaint."""
    types = (left.type, right.type)
    if any(pt.is_floating(each) for each in types):
        if any(pt.is_decimal(each) for each in types):
            return _as_decimal(left), _as_decimal(right)
        return _as_float(left), _as_float(right)
    if any(pt.is_uint64(each) for each in types) and left.type != right.type:
        return _exact(left), _exact(right)
    return left, right


def calculated(op: str, left: Any, right: Any) -> Any:
    """`left op right`, where op is one of + - * / %."""
    left, right = _roomy(left), _roomy(right)
    whole = pt.is_integer(left.type) and pt.is_integer(right.type)
    if whole and op in "/%":
        right = pc.if_else(pc.equal(right, 0), pa.scalar(None, right.type), right)
    if op == "%":
        return _remainder(left, right, whole)
    if op == "/" and not whole and not pt.is_decimal(left.type):
        return pc.divide(left, right)  # of floats: infinite
    try:
        return _CHECKED[op](left, right)
    except pa.ArrowInvalid:
        if not whole:
            raise
        return _CHECKED[op](_exact(left), _exact(right))


def magnitude(values: Any) -> Any:
    """Without its sign."""
    try:
        return pc.abs_checked(values)
    except pa.ArrowInvalid:
        return pc.abs(_exact(values))


def _remainder(left: Any, right: Any, whole: bool) -> Any:
    if whole:
        # No multiple of the divisor is further from zero than the dividend.
        return pc.subtract(left, pc.multiply(pc.divide(left, right), right))
    ratio = pc.trunc(pc.divide(pc.cast(left, pa.float64()), pc.cast(right, pa.float64())))
    return pc.subtract(left, pc.multiply(right, pc.cast(ratio, left.type)))


def _roomy(values: Any) -> Any:
    """With room for a result, where Arrow's would have the type of what it is made of."""
    kind = values.type
    if pt.is_uint64(kind):
        return _exact(values)
    if pt.is_integer(kind) and kind != pa.int64():
        return pc.cast(values, pa.int64())
    if pt.is_floating(kind) and kind != pa.float64():
        return pc.cast(values, pa.float64())
    if pt.is_decimal(kind) and kind.precision >= _MOST_DIGITS // 2:
        return pc.cast(values, pa.decimal256(kind.precision, kind.scale))
    return values


def _exact(values: Any) -> Any:
    return pc.cast(values, _ALL_DIGITS) if pt.is_integer(values.type) else values


def _as_float(values: Any) -> Any:
    if pt.is_integer(values.type) or pt.is_floating(values.type):
        return pc.cast(values, pa.float64(), safe=False)
    return values


def _as_decimal(values: Any) -> Any:
    """A constant beside a decimal as what was written; a column of floats is left for Arrow."""
    if isinstance(values, pa.Scalar) and pt.is_floating(values.type) and values.is_valid:
        return pa.scalar(Decimal(repr(values.as_py())))
    return values
