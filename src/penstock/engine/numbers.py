"""Numbers and times of rows: calculated and compared by value, whatever their types.

What a row gives depends on that row alone, and no value fails:

- integers, decimals, times and durations are exact. A time is a number of seconds with a fraction.
  `/` of integers leaves out the fraction, any other `/` is the exact ratio; `%` has the sign of
  the dividend; both are null if the divisor is zero;
- beside a float each of them is the nearest float, and IEEE 754 says the rest;
- a number that is written in a query with a point is a decimal beside decimals, else a float;
- a date is its midnight, in UTC beside times with a zone; a time of day that an addition or a
  subtraction takes out of its day is null.

An exact number is `whole / (divisor * 10**scale)`; nearly always there is no divisor. Wholes are
calculated in 64 bits; rows that need more are calculated again (`engine.whole`).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import inf
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.engine.whole import Array, Calculation, Whole
from penstock.kernels.arena import Flags

__all__ = [
    "Incomparable",
    "Number",
    "calculated",
    "compared",
    "distance",
    "exact",
    "floats",
    "is_number",
    "named",
]

_EXACT_FLOAT: Final = 1 << 53  # integers up to here are floats
_EXACT_POWER: Final = 22  # so are powers of ten up to this one
_SECONDS_PER_DAY: Final = 86_400

_KINDS: Final[dict[tuple[str, str, str], str]] = {
    ("+", "duration", "duration"): "duration",
    ("-", "duration", "duration"): "duration",
    ("/", "duration", "duration"): "decimal",
    ("*", "duration", "integer"): "duration",
    ("*", "integer", "duration"): "duration",
    ("/", "duration", "integer"): "duration",
    ("-", "instant", "instant"): "duration",
    ("+", "instant", "duration"): "instant",
    ("+", "duration", "instant"): "instant",
    ("-", "instant", "duration"): "instant",
    ("-", "time", "time"): "duration",
    ("+", "time", "duration"): "time",
    ("+", "duration", "time"): "time",
    ("-", "time", "duration"): "time",
}
_FLOATS: Final[dict[str, Callable[..., Any]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
}


class Incomparable(TypeError):
    """Values of kinds that cannot be calculated with, or compared, together."""


class Number(NamedTuple):
    """The values of rows, or one for all of them.

    kind: integer, decimal, float, instant, time, duration, or null, which has no values.
    valid: which are not null; None: all. zone: of instants: True or False, None for dates.
    written: a number with a point as it stands in the query.
    """

    kind: str
    whole: Whole | None = None
    scale: int = 0
    divisor: Whole | None = None
    floats: Array | None = None
    valid: Flags | None = None
    zone: bool | None = None
    written: Decimal | None = None


def exact(calculation: Calculation, value: Decimal) -> Number:
    """A decimal that all rows have."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "infinities are floats"
    whole = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    scale = max(-exponent, 0)
    return Number("decimal", calculation.constant(-whole if sign else whole), scale)


def calculated(calculation: Calculation, op: str, left: Number, right: Number) -> Number:
    """`left op right`, where op is one of + - * / %."""
    left, right = _alike(calculation, left, right)
    valid = _both(left.valid, right.valid)
    if "float" in (left.kind, right.kind):
        _must_be(is_number(left) and is_number(right), op, left, right)
        made = _FLOATS[op](floats(calculation, left), floats(calculation, right))
        return Number("float", floats=made, valid=valid)
    if is_number(left) and is_number(right):
        kind = "integer" if left.kind == right.kind == "integer" else "decimal"
    else:
        found = _KINDS.get((op, left.kind, right.kind))
        _must_be(found is not None and _is_one_zone(left, right), op, left, right)
        kind = str(found)
    if op == "*":
        made = _product(calculation, left, right)
    elif op in "/%":
        made = _divided(calculation, op, left, right, kind)
        valid = _both(valid, made.valid)
    else:
        one, other, scale, divisor = _together(calculation, left, right)
        add = calculation.plus if op == "+" else calculation.minus
        made = Number(kind, add(one, other), scale, divisor)
    if kind == "time":
        day = calculation.constant(_SECONDS_PER_DAY * 10**made.scale)
        if made.divisor is not None:
            day = calculation.times(day, made.divisor)
        inside = calculation.compared(np.less, _whole(made), day)
        inside &= calculation.compared(np.greater_equal, _whole(made), calculation.constant(0))
        valid = _both(valid, inside)
    zone = left.zone if right.zone is None else right.zone
    return made._replace(kind=kind, valid=valid, zone=zone if kind == "instant" else None)


def compared(
    calculation: Calculation, compare: Callable[..., Any], left: Number, right: Number
) -> tuple[Any, Flags | None]:
    """What a comparison of numpy's says of rows, and for which neither side is null."""
    left, right = _alike(calculation, left, right)
    valid = _both(left.valid, right.valid)
    alike = (is_number(left) and is_number(right)) or left.kind == right.kind
    _must_be(alike and _is_one_zone(left, right), "beside", left, right)
    if "float" in (left.kind, right.kind):
        return compare(floats(calculation, left), floats(calculation, right)), valid
    one, other, *_ = _together(calculation, left, right)
    return calculation.compared(compare, one, other), valid


def distance(calculation: Calculation, left: Number, right: Number) -> Number:
    """How far two numbers are apart."""
    left, right = _alike(calculation, left, right)
    _must_be(is_number(left) and is_number(right), "-", left, right)
    difference = calculated(calculation, "-", left, right)
    if difference.floats is not None:
        return difference._replace(floats=np.abs(difference.floats))
    return difference._replace(whole=calculation.without_sign(_whole(difference)))


def floats(calculation: Calculation, number: Number) -> Array:
    """The nearest float of each value; anything where it is null."""
    if number.floats is not None:
        return number.floats
    whole, divisor = _whole(number), number.divisor
    if calculation.wide:
        below = 10**number.scale if divisor is None else divisor.values * 10**number.scale
        return np.asarray(_RATIO(whole.values, below), np.float64)
    over = whole.values.astype(np.float64)
    if not whole.fits:
        calculation.doubt(True)
    if divisor is None and not number.scale:
        return over
    # One rounding only, if both numbers are floats.
    if whole.farthest > _EXACT_FLOAT:
        calculation.doubt(np.abs(over) >= _EXACT_FLOAT)  # one more may be rounded to it
    if divisor is None:
        if number.scale > _EXACT_POWER:
            calculation.doubt(whole.values != 0)
        return over / float(f"1e{number.scale}")
    below = calculation.shifted(divisor, number.scale)
    if below.farthest > _EXACT_FLOAT:
        calculation.doubt(np.abs(below.values.astype(np.float64)) >= _EXACT_FLOAT)
    return over / below.values


def is_number(number: Number) -> bool:
    """Whether it is no time."""
    return number.kind in ("integer", "decimal", "float")


def _whole(number: Number) -> Whole:
    assert number.whole is not None, "floats are calculated as such"
    return number.whole


def _alike(calculation: Calculation, left: Number, right: Number) -> tuple[Number, Number]:
    """The same, where one says what the other is: a null, or a number written in the query."""
    if left.kind == right.kind == "null":
        left = right = _null_as(calculation, left, left)._replace(kind="integer")
    elif left.kind == "null":
        left = _null_as(calculation, left, right)
    elif right.kind == "null":
        right = _null_as(calculation, right, left)
    if left.written is not None and right.kind == "decimal":
        return exact(calculation, left.written), right
    if right.written is not None and left.kind == "decimal":
        return left, exact(calculation, right.written)
    return left, right


def _null_as(calculation: Calculation, null: Number, other: Number) -> Number:
    zero = calculation.constant(0)
    floating = np.zeros(()) if other.kind == "float" else None
    return Number(other.kind, zero, floats=floating, valid=null.valid, zone=other.zone)


def _must_be(held: bool, op: str, left: Number, right: Number) -> None:
    if not held:
        raise Incomparable(f"{named(left)} {op} {named(right)} has no meaning")


def named(number: Number) -> str:
    """What it is, for a message."""
    if number.kind != "instant":
        return f"a {number.kind}" if number.kind != "integer" else "an integer"
    zones = {None: "a date", True: "a timestamp with a zone", False: "a timestamp without a zone"}
    return zones[number.zone]


def _is_one_zone(left: Number, right: Number) -> bool:
    return left.zone is None or right.zone is None or left.zone == right.zone


def _both(one: Flags | None, other: Flags | None) -> Flags | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _together(
    calculation: Calculation, left: Number, right: Number
) -> tuple[Whole, Whole, int, Whole | None]:
    """Both as wholes over one divisor and one power of ten."""
    scale = max(left.scale, right.scale)
    one = calculation.shifted(_whole(left), scale - left.scale)
    other = calculation.shifted(_whole(right), scale - right.scale)
    if left.divisor is None and right.divisor is None:
        return one, other, scale, None
    if right.divisor is not None:
        one = calculation.times(one, right.divisor)
    if left.divisor is not None:
        other = calculation.times(other, left.divisor)
    return one, other, scale, _times(calculation, left.divisor, right.divisor)


def _times(calculation: Calculation, left: Whole | None, right: Whole | None) -> Whole | None:
    if left is None or right is None:
        return right if left is None else left
    return calculation.times(left, right)


def _product(calculation: Calculation, left: Number, right: Number) -> Number:
    whole = calculation.times(_whole(left), _whole(right))
    divisor = _times(calculation, left.divisor, right.divisor)
    return Number(left.kind, whole, left.scale + right.scale, divisor)


def _divided(calculation: Calculation, op: str, left: Number, right: Number, kind: str) -> Number:
    """Null if the divisor is zero."""
    one, other, scale, divisor = _together(calculation, left, right)
    zero = calculation.compared(np.equal, other, calculation.constant(0))
    valid = None
    if np.any(zero):
        valid = np.broadcast_to(~zero, calculation.rows)
        other = other._replace(values=np.where(zero, 1, other.values), high=max(other.high, 1))
    if op == "%":
        return Number(kind, calculation.remainder(one, other), scale, divisor, valid=valid)
    if kind == "integer":
        return Number(kind, calculation.quotient(one, other), valid=valid)
    if other.low < 0 or calculation.wide:  # a divisor is above zero
        minus = calculation.constant(-1)
        turned = calculation.times(one, minus), calculation.times(other, minus)
        below = other.values < 0
        one, other = (
            Whole(np.where(below, there.values, here.values), -here.farthest, here.farthest)
            for here, there in zip((one, other), turned, strict=True)
        )
    return Number(kind, one, 0, other, valid=valid)


def _ratio(over: int, below: int) -> float:
    try:
        return over / below  # the nearest float, of integers of any size
    except OverflowError:
        return inf if over > 0 else -inf  # no float holds it, so copysign would fail too


_RATIO: Final = np.frompyfunc(_ratio, 2, 1)
