"""The definition of arithmetic and comparison in a where clause, for one row, in plain Python.

A value is its kind and a number: an int or a Fraction where it is exact, seconds for times, a
float for floats, None for null. An instant also has a zone: True, False, or None for a date.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import copysign, fmod, inf, isfinite, isinf, isnan, nan
from typing import Any, NamedTuple

DAY_SECONDS = 86_400
NUMBERS = ("integer", "decimal", "float")


class Meaningless(TypeError):
    """Kinds that do not go together."""


class Value(NamedTuple):
    kind: str
    number: Any
    zone: bool | None = None
    written: Decimal | None = None


def constant(value: int | float) -> Value:
    """A number as it stands in a query."""
    if isinstance(value, int):
        return Value("integer", value)
    return Value("float", value, written=Decimal(repr(value)) if isfinite(value) else None)


def nearest(value: Value) -> float:
    """The nearest float."""
    if value.kind == "float":
        return float(value.number)
    number = Fraction(value.number)
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return inf if number > 0 else -inf


def alike(left: Value, right: Value) -> tuple[Value, Value]:
    """A null is of the kind of its neighbour, and so is a number with a point beside decimals."""
    if left.kind == "null":
        left = Value("integer" if right.kind == "null" else right.kind, None, right.zone)
    if right.kind == "null":
        right = Value(left.kind, None, left.zone)
    if left.written is not None and right.kind == "decimal":
        left = Value("decimal", Fraction(left.written))
    elif right.written is not None and left.kind == "decimal":
        right = Value("decimal", Fraction(right.written))
    return left, right


def is_one_zone(left: Value, right: Value) -> bool:
    return None in (left.zone, right.zone) or left.zone == right.zone


def result_kind(op: str, left: Value, right: Value) -> str:
    kinds = (left.kind, right.kind)
    if all(kind in NUMBERS for kind in kinds):
        return (
            "float" if "float" in kinds else "integer" if kinds == ("integer",) * 2 else "decimal"
        )
    found = None
    match (op, *kinds):
        case ("+" | "-", "duration", "duration") | ("*", "integer", "duration"):
            found = "duration"
        case ("*" | "/", "duration", "integer"):
            found = "duration"
        case ("/", "duration", "duration"):
            found = "decimal"
        case ("-", "instant", "instant") | ("-", "time", "time"):
            found = "duration"
        case ("+" | "-", "instant" | "time" as moment, "duration"):
            found = moment
        case ("+", "duration", "instant" | "time" as moment):
            found = moment
    if found is None or not is_one_zone(left, right):
        raise Meaningless(f"{left.kind} {op} {right.kind}")
    return found


def calculate(op: str, left: Value, right: Value) -> Value:
    """`left op right`."""
    left, right = alike(left, right)
    kind = result_kind(op, left, right)
    zone = (left.zone if right.zone is None else right.zone) if kind == "instant" else None
    if left.number is None or right.number is None:
        return Value(kind, None, zone)
    if kind == "float":
        return Value(kind, calculate_floats(op, nearest(left), nearest(right)))
    one, other = left.number, right.number
    if op == "+":
        number = one + other
    elif op == "-":
        number = one - other
    elif op == "*":
        number = one * other
    elif other == 0:
        number = None
    else:
        ratio = Fraction(one) / Fraction(other)
        whole = abs(ratio.numerator) // ratio.denominator * (1 if ratio >= 0 else -1)
        number = one - other * whole if op == "%" else whole if kind == "integer" else ratio
    if kind == "time" and number is not None and not 0 <= number < DAY_SECONDS:
        number = None
    return Value(kind, number, zone)


def calculate_floats(op: str, one: float, other: float) -> float:
    """IEEE 754."""
    if op == "+":
        return one + other
    if op == "-":
        return one - other
    if op == "*":
        return one * other
    if op == "%":
        return nan if isinf(one) or isnan(one) or isnan(other) or not other else fmod(one, other)
    if other:
        return one / other
    return nan if isnan(one) or isnan(other) or not one else copysign(inf, one) * copysign(1, other)


def compare(op: str, left: Value, right: Value) -> bool:
    """Whether `left op right` holds: what is null does not, except for `is` beside null."""
    left, right = alike(left, right)
    numbers = left.kind in NUMBERS and right.kind in NUMBERS
    if not (numbers or left.kind == right.kind) or not is_one_zone(left, right):
        raise Meaningless(f"{left.kind} {op} {right.kind}")
    if left.number is None or right.number is None:
        return op == "is" and left.number is None and right.number is None
    one, other = left.number, right.number
    if "float" in (left.kind, right.kind):
        one, other = nearest(left), nearest(right)
    answers = {"=": one == other, "is": one == other, "<>": one != other, "<": one < other}
    answers |= {"<=": one <= other, ">": one > other, ">=": one >= other}
    return answers[op]
