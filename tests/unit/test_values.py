"""What a row's values give depends on that row alone, and no value fails."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.engine.residual import holds
from penstock.model.predicates.predicate import (
    Arithmetic,
    Column,
    Comparison,
    Constant,
    Expression,
    Near,
)
from support.values import Meaningless, Value, calculate, compare, constant

pytestmark = pytest.mark.jit_off

UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
LEAST, GREATEST = -(2**63), 2**63 - 1

# Stored values that have broken something: near the ends of types, of floats, of days.
EDGES = (
    0, 1, -1, 2, 3, -3, 7, 10, 100, 99, 86_399, 86_400, -86_401, 2**31, 2**32, 2**53 + 1,
    -(2**53) - 1, 2**61 + 1, 2**62, -(2**62) - 1, GREATEST, GREATEST - 1, LEAST, LEAST + 1, 2**63,
    2**64 - 1, 2_932_896, 253_402_300_799_999_999, 10**37, -(10**37) - 1, 10**50 + 1, 10**75,
)  # fmt: skip
FLOATS = (0.0, -0.0, 1.5, -2.5, 2.0**63, inf, nan, 0.1, 1e17, 1e308, -1e-310)
FEW = 7  # of these are 32 bits wide

TYPES: tuple[pa.DataType, ...] = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float32(), pa.float64()),
    *(pa.decimal128(5, 2), pa.decimal128(38, 0), pa.decimal128(38, 18), pa.decimal128(38, 38)),
    *(pa.decimal256(76, 5), pa.decimal32(7, 3), pa.decimal64(18, 2), pa.decimal128(10, -2)),
    *(pa.date32(), pa.date64()),
    *(pa.timestamp(unit, tz) for unit in UNITS for tz in (None, "UTC", "Europe/Paris")),
    *(pa.duration(unit) for unit in UNITS),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    pa.null(),
)


def limits(kind: pa.DataType) -> tuple[int, int]:
    """The least and the greatest stored value."""
    if pa.types.is_decimal(kind):
        return 1 - 10**kind.precision, 10**kind.precision - 1
    if pa.types.is_unsigned_integer(kind):
        return 0, 2**kind.bit_width - 1
    if pa.types.is_time(kind):
        return 0, 86_400 * 10 ** UNITS[kind.unit] - 1
    return -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1


def column(kind: pa.DataType, stored: Sequence[Any]) -> pa.Array:
    """An array of a type with these stored values."""
    if pa.types.is_null(kind):
        return pa.nulls(len(stored))
    if pa.types.is_decimal(kind):
        width = kind.bit_width // 8
        data = b"".join((each or 0).to_bytes(width, "little", signed=True) for each in stored)
        if not stored:
            return pa.nulls(0, kind)
        valid = pa.array([each is not None for each in stored]).buffers()[1]
        return pa.Array.from_buffers(kind, len(stored), [valid, pa.py_buffer(data)])
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return pa.array(stored, kind)
    return pa.array(stored, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


def value(kind: pa.DataType, stored: Any) -> Value:
    """What the definition has for a stored value."""
    number: Any = stored
    if pa.types.is_null(kind):
        return Value("null", None)
    if pa.types.is_floating(kind):
        return Value("float", stored)
    if pa.types.is_integer(kind):
        return Value("integer", stored)
    if pa.types.is_decimal(kind):
        return Value("decimal", stored and Fraction(stored) / Fraction(10) ** kind.scale)
    if pa.types.is_date(kind):
        days = stored and (stored // 86_400_000 if pa.types.is_date64(kind) else stored)
        return Value("instant", days and days * 86_400)
    number = stored and Fraction(stored, 10 ** UNITS[kind.unit])
    if pa.types.is_timestamp(kind):
        return Value("instant", number, kind.tz is not None)
    return Value("time" if pa.types.is_time(kind) else "duration", number)


def defined(expression: Expression, row: dict[str, Value]) -> Value:
    if isinstance(expression, Column):
        return row[expression.name]
    if isinstance(expression, Constant):
        return constant(expression.value)
    left, right = defined(expression.left, row), defined(expression.right, row)
    return calculate(expression.op, left, right)


def stored_values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_null(kind):
        return st.none()
    if pa.types.is_floating(kind):
        width = 32 if kind == pa.float32() else 64
        edges = FLOATS if width == 64 else FLOATS[:FEW]
        return st.none() | st.sampled_from(edges) | st.floats(width=width)  # type: ignore[arg-type]
    low, high = limits(kind)
    edges = [each for each in (*EDGES, low, high) if low <= each <= high]
    return st.none() | st.sampled_from(edges) | st.integers(-20, 20).filter(
        lambda each: low <= each <= high
    ) | st.integers(low, high)  # fmt: skip


NAMES = ("x", "y", "z")
COLUMNS = st.sampled_from(NAMES).map(lambda name: Column(0 if name != "z" else 1, name))
CONSTANTS = st.sampled_from((0, 1, 2, -3, 31, 10**20, 0.1, 2.5, 1e17, -0.25, 1e300)).map(Constant)
EXPRESSIONS = st.recursive(
    COLUMNS | COLUMNS | CONSTANTS,
    lambda inner: st.builds(Arithmetic, st.sampled_from("+-*/%"), inner, inner),
    max_leaves=5,
)
OPS = st.sampled_from(("=", "is", "<>", "<", "<=", ">", ">="))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Comparison, dict[str, pa.DataType], list[tuple[Any, ...]]]:
    near = draw(st.sampled_from(TYPES))
    like = [each for each in TYPES if value(each, None).kind == value(near, None).kind]
    kinds = {name: draw(st.sampled_from([*like, *like, *TYPES])) for name in NAMES}
    rows = draw(st.lists(st.tuples(*(stored_values(kinds[n]) for n in NAMES)), max_size=8))
    return draw(st.builds(Comparison, OPS, EXPRESSIONS, EXPRESSIONS)), kinds, rows


X, Y, Z = (Column(0 if name != "z" else 1, name) for name in NAMES)
I64, U64, MONEY = pa.int64(), pa.uint64(), pa.decimal128(10, 2)
HALF_SQUARE = Comparison("=", Arithmetic("/", Arithmetic("*", X, X), Constant(2)), Z)
REMAINDER = Comparison("=", Arithmetic("%", Arithmetic("*", X, Constant(31)), Constant(16)), Z)
FOURTH = Comparison(">", Arithmetic("*", Arithmetic("*", Arithmetic("*", X, X), X), X), Z)
RATIO = Comparison("<=", Arithmetic("/", X, Y), Z)
LESS = Comparison("<", X, Z)


def kinds_of(*kinds: pa.DataType) -> dict[str, pa.DataType]:
    return dict(zip(NAMES, kinds, strict=True))


@settings(max_examples=600, deadline=None)
@given(case=cases())
@example((HALF_SQUARE, kinds_of(I64, I64, I64), [(3, 0, 4), (2**32, 0, 2**63 - 1)]))
@example((REMAINDER, kinds_of(I64, I64, I64), [(2**61 + 1, 0, 15), (1, 0, 15)]))
@example((FOURTH, kinds_of(I64, I64, I64), [(2**40, 0, 5), (LEAST, 0, 5), (1, 0, 0)]))
@example((RATIO, kinds_of(I64, I64, I64), [(LEAST, -1, 5), (7, 2, 3), (-7, 2, -3), (1, 0, 9)]))
@example((RATIO, kinds_of(U64, U64, U64), [(7, 2, 3), (2**64 - 1, 0, 9), (2**64 - 1, 2, 2**63)]))
@example((RATIO, kinds_of(MONEY, MONEY, MONEY), [(100, 0, 5), (100, 300, 33)]))
@example((LESS, kinds_of(pa.date32(), I64, pa.timestamp("ns")), [(2_932_896, 0, 5), (0, 0, 1)]))
@example((LESS, kinds_of(pa.timestamp("s"), I64, pa.timestamp("ns")), [(2**62, 0, 5)]))
def test_a_row_gives_what_the_definition_says_whatever_stands_beside_it(
    case: tuple[Comparison, dict[str, pa.DataType], list[tuple[Any, ...]]],
) -> None:
    predicate, kinds, rows = case
    arrays = {name: column(kinds[name], [row[number] for row in rows])
              for number, name in enumerate(NAMES)}  # fmt: skip
    values = [{name: value(kinds[name], row[number]) for number, name in enumerate(NAMES)}
              for row in rows]  # fmt: skip
    try:
        empty = {name: value(kinds[name], None) for name in NAMES}
        compare(predicate.op, defined(predicate.left, empty), defined(predicate.right, empty))
    except Meaningless:
        with pytest.raises(ps.SchemaError, match="cannot be compared as where= does"):
            holds(predicate, lambda _, name: arrays[name], len(rows), ())
        return
    expected = [
        compare(predicate.op, defined(predicate.left, row), defined(predicate.right, row))
        for row in values
    ]
    assert holds(predicate, lambda _, name: arrays[name], len(rows), ()).tolist() == expected
    for number, alone in enumerate(expected):

        def of_row(_: int, name: str, at: int = number) -> pa.Array:
            return arrays[name][at : at + 1]

        assert holds(predicate, of_row, 1, ()).tolist() == [alone]


@settings(max_examples=200, deadline=None)
@given(case=cases(), epsilon=st.sampled_from((0, 1, 5, 0.1, 1e400, 10**20)), closed=st.booleans())
def test_a_band_is_the_exact_distance(
    case: tuple[Comparison, dict[str, pa.DataType], list[tuple[Any, ...]]],
    epsilon: float,
    closed: bool,
) -> None:
    _, kinds, rows = case
    arrays = {"x": column(kinds["x"], [row[0] for row in rows]),
              "z": column(kinds["z"], [row[2] for row in rows])}  # fmt: skip
    if any(value(kinds[name], None).kind not in ("integer", "decimal", "float", "null")
           for name in "xz"):  # fmt: skip
        return
    band = Near(((X, Z),), epsilon, closed)
    expected = []
    for row in rows:
        apart = calculate("-", value(kinds["x"], row[0]), value(kinds["z"], row[2]))
        size = apart._replace(number=None if apart.number is None else abs(apart.number))
        expected.append(compare("<=" if closed else "<", size, constant(epsilon)))
    assert holds(band, lambda _, name: arrays[name], len(rows), ()).tolist() == expected


def test_a_number_with_a_point_is_what_was_written_beside_decimals() -> None:
    kind = pa.decimal128(38, 2)
    prices = pa.array([Decimal("12345678901234567.89"), Decimal("12345678901234567.88")], kind)
    query = ps.WindowJoin(
        [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")],
        on="k",
        where="a.x = 12345678901234567.89",
        within="1 s",
    )
    (term,) = query.filters
    assert holds(term, lambda _, name: prices, 2, ()).tolist() == [True, False]


TWO = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]


def found_by(where: str, a: dict[str, pa.Array], b: dict[str, pa.Array]) -> int:
    """How many of one tuple of each stream meet, of which the second comes in a push of its own."""
    join = ps.WindowJoin(TWO, on="k", where=where, within="1 s").start()
    for name, columns in (("a", a), ("b", b)):
        found = join.push({name: pa.table({"ts": [0], "k": [1], **columns})})
    return found.num_rows


@pytest.mark.parametrize(
    "where",
    ["a.d * a.d * a.d * a.d * a.d > b.f", "a.d * 1e300 > b.f", "a.d / 1e-300 > b.f"],
)
def test_a_number_that_no_float_holds_is_infinite(where: str) -> None:
    large = pa.array([Decimal(10) ** 75], pa.decimal256(76, 0))
    assert found_by(where, {"d": large}, {"f": pa.array([5.0])}) == 1
    assert found_by(where, {"d": pc.negate(large)}, {"f": pa.array([5.0])}) == 0


def test_a_time_of_day_and_half_a_duration() -> None:
    noon, one = (pa.array([hour * 3_600_000_000], pa.time64("us")) for hour in (12, 13))
    two_hours = pa.array([7_200_000_000], pa.duration("us"))
    assert found_by("a.t + a.u / 2 = b.t", {"t": noon, "u": two_hours}, {"t": one}) == 1
    twelve_hours = pa.array([86_400_000_000], pa.duration("us"))
    assert found_by("a.t + a.u / 2 >= b.t", {"t": noon, "u": twelve_hours}, {"t": one}) == 0


@pytest.mark.parametrize("op", ["=", ">=", "<="])
def test_a_decimal_that_is_rounded_once(op: str) -> None:
    """Its digits are one more than a float can count to."""
    written = pa.array([Decimal("90071992547409.93")], pa.decimal128(18, 2))
    assert found_by(f"a.d {op} b.f", {"d": written}, {"f": pa.array([90071992547409.93])}) == 1


def test_a_number_longer_than_a_decimal_of_arrow() -> None:
    assert found_by("a.f < 1.23456789012345678901e-80", {"f": pa.array([0.0])}, {}) == 1
