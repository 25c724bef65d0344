"""The predicates of `where=` as plain Python, for the second oracle.

A term is written once, as a tree. `text` gives the SQL that penstock reads, `holds` what
docs/semantics.md says of it: exact integers, null for a missing value and for a zero divisor, no
comparison with null, none with NaN but `<>`. It shares nothing with penstock, not even a parser.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

Row = Mapping[str, Any]
NOT_DISTINCT = "IS NOT DISTINCT FROM"
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Column:
    stream: int
    name: str


@dataclass(frozen=True)
class Literal:
    value: int | float | Decimal | str


@dataclass(frozen=True)
class Arithmetic:
    operator: str
    left: Expression
    right: Expression


Expression = Column | Literal | Arithmetic


@dataclass(frozen=True)
class Comparison:
    operator: str  # of COMPARE, or NOT_DISTINCT
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Between:
    value: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True)
class Distance:
    """A band, `abs(left - right) <= most`, for one pair; a distance in the plane for more."""

    pairs: tuple[tuple[Column, Column], ...]
    most: int | float
    operator: str = "<="


@dataclass(frozen=True)
class Function:
    """A function of the user's; `python` judges one row, `arrow` whole columns."""

    columns: tuple[Column, ...]
    python: Callable[..., bool | None]
    arrow: Callable[..., Any]


Term = Comparison | Between | Distance | Function


def streams(part: Expression | Term) -> set[int]:
    match part:
        case Column():
            return {part.stream}
        case Literal():
            return set()
        case Arithmetic() | Comparison():
            return streams(part.left) | streams(part.right)
        case Between():
            return streams(part.value) | streams(part.low) | streams(part.high)
        case Distance():
            return {column.stream for pair in part.pairs for column in pair}
        case Function():
            return {column.stream for column in part.columns}


def compared(term: Term) -> list[Expression]:
    """What a term compares by order, or for equality, and so must have a value."""
    match term:
        case Comparison():
            return [] if term.operator in (NOT_DISTINCT, "<>") else [term.left, term.right]
        case Between():
            return [term.value, term.low, term.high]
        case Distance():
            return [column for pair in term.pairs for column in pair]
        case Function():
            return []


def plain_equality(term: Term, sign: str) -> tuple[Column, Column] | None:
    """The two columns, of different streams, that a term with this sign says are equal."""
    if not isinstance(term, Comparison) or term.operator != sign:
        return None
    left, right = term.left, term.right
    if isinstance(left, Column) and isinstance(right, Column) and left.stream != right.stream:
        return left, right
    return None


def text(part: Expression | Term, names: Sequence[str]) -> str:
    def say(inner: Expression) -> str:
        return text(inner, names)

    match part:
        case Column():
            return f"{names[part.stream]}.{part.name}"
        case Literal():
            value = part.value
            return f"'{value}'" if isinstance(value, str) else f"{value}"
        case Arithmetic():
            return f"({say(part.left)} {part.operator} {say(part.right)})"
        case Comparison():
            return f"{say(part.left)} {part.operator} {say(part.right)}"
        case Between():
            return f"{say(part.value)} BETWEEN {say(part.low)} AND {say(part.high)}"
        case Distance():
            differences = [f"{say(left)} - {say(right)}" for left, right in part.pairs]
            if len(differences) == 1:
                return f"abs({differences[0]}) {part.operator} {part.most}"
            squares = " + ".join(f"power({difference}, 2)" for difference in differences)
            return f"sqrt({squares}) {part.operator} {part.most}"
        case Function():
            raise ValueError("a function has no text")


def holds(term: Term, rows: Mapping[int, Row]) -> bool:
    """Whether it holds for one row of each stream it is over."""
    match term:
        case Comparison():
            return compare(term.operator, value(term.left, rows), value(term.right, rows))
        case Between():
            middle = value(term.value, rows)
            return compare("<=", value(term.low, rows), middle) and compare(
                "<=", middle, value(term.high, rows)
            )
        case Distance():
            return _near(term, rows)
        case Function():
            return bool(term.python(*(rows[c.stream][c.name] for c in term.columns)))


def value(expression: Expression, rows: Mapping[int, Row]) -> Any:
    match expression:
        case Column():
            return rows[expression.stream][expression.name]
        case Literal():
            return expression.value
        case Arithmetic():
            return arithmetic(
                expression.operator, value(expression.left, rows), value(expression.right, rows)
            )


def arithmetic(sign: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        return _of_floats(sign, float(left), float(right))
    if sign in ("/", "%") and right == 0:
        return None
    exact_left, exact_right = Fraction(left), Fraction(right)
    if sign == "/":
        quotient = exact_left / exact_right
        both_integers = isinstance(left, int) and isinstance(right, int)
        return math.trunc(quotient) if both_integers else quotient
    if sign == "%":
        result = exact_left - exact_right * math.trunc(exact_left / exact_right)
    else:
        result = {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign](
            exact_left, exact_right
        )
    return int(result) if isinstance(left, int) and isinstance(right, int) else result


def _of_floats(sign: str, left: float, right: float) -> float:
    """As IEEE 754 says; Python raises what is infinite or NaN there."""
    if sign == "/" and right == 0:
        return math.nan if left == 0 or math.isnan(left) else left * math.copysign(math.inf, right)
    if sign == "/":
        return left / right
    if sign == "%":
        return math.nan if math.isinf(left) or right == 0 else math.fmod(left, right)
    result: float = {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign](left, right)
    return result


def compare(sign: str, left: Any, right: Any) -> bool:
    if sign == NOT_DISTINCT:
        if left is None or right is None:
            return left is None and right is None
        sign = "="
    if left is None or right is None:
        return False
    if is_nan(left) or is_nan(right):
        return sign == "<>"
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)  # the nearest
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    return COMPARE[sign](left, right)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _near(term: Distance, rows: Mapping[int, Row]) -> bool:
    differences = []
    for left, right in term.pairs:
        difference = arithmetic("-", value(left, rows), value(right, rows))
        if difference is None or is_nan(difference):
            return False
        differences.append(difference)
    if any(isinstance(difference, float) and math.isinf(difference) for difference in differences):
        return False
    square = sum(Fraction(difference) ** 2 for difference in differences)
    return term.most >= 0 and COMPARE[term.operator](square, Fraction(term.most) ** 2)
