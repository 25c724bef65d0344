"""Comparisons and arithmetic go by value, whatever the types, and whichever term finds tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from math import inf
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps

pytestmark = pytest.mark.jit_off

I16, I32, I64, U8, U64 = pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()
F32, F64, MONEY, LONG = pa.float32(), pa.float64(), pa.decimal128(10, 2), pa.decimal128(38, 2)
MAX, MIN = 2**63 - 1, -(2**63)
CENTS = [Decimal(cents) / 100 for cents in range(0, 40, 3)]

Values = Sequence[Any]
Case = tuple[str, pa.DataType, Values, pa.DataType, Values, Callable[[Any, Any], bool]]


def one_apart(a: int, b: int) -> bool:
    return abs(a - b) <= 1


def a_dime_apart(a: Decimal, b: Decimal) -> bool:
    return abs(a - b) <= Decimal("0.1")


def of_fifteen(a: Decimal, b: Decimal) -> bool:
    return a == Decimal("0.15") and a <= b


def day_before_moment(a: int, b: int) -> bool:
    return a * 86_400 * 10**9 <= b


# What is asked of the columns x, their types and values, and what that is in Python.
CASES: tuple[Case, ...] = (
    ("abs(a.x - b.x) <= 30000", I16, [20000], I16, [-20000, 0], lambda a, b: abs(a - b) <= 30000),
    ("abs(a.x - b.x) <= 1", I32, [0, 2**31 - 1], I32, [-(2**31), 1], one_apart),
    ("abs(a.x - b.x) <= 1", I64, [0, MAX], I64, [MIN, MAX - 1], one_apart),
    ("abs(a.x - b.x) <= 1", U8, [0, 1, 200], U8, [0, 1, 199], one_apart),
    ("abs(a.x - b.x) <= 1", U64, [0, 1, 2**64 - 1], U64, [1, 2**64 - 2], one_apart),
    ("abs(a.x - b.x) <= 0.1", LONG, CENTS, MONEY, CENTS, a_dime_apart),
    ("abs(a.x - b.x) <= 1e400", F64, [inf, 1.0], F64, [-inf, 3.0], lambda a, b: True),
    ("abs(a.x - b.x) < 0.5", F32, [0.25, 1.5], F64, [0.5, 1.0], lambda a, b: abs(a - b) < 0.5),
    (
        "sqrt(power(a.x - b.x, 2) + power(a.x - b.x, 2)) <= 100000", I32, [0],
        I32, [50_000, 80_000],
        lambda a, b: 2 * (a - b) ** 2 <= 10**10,
    ),
    ("a.x + 1 = b.x", I64, [MAX, 5], I64, [MIN, 6], lambda a, b: a + 1 == b),
    ("a.x * 2 < b.x", I64, [2**62 + 1, 1], I64, [5, -5], lambda a, b: a * 2 < b),
    ("b.x BETWEEN a.x - 1 AND a.x + 1", I64, [MAX, 5], I64, [MAX, 6, 8], one_apart),
    (
        "a.x BETWEEN b.x - 0.1 AND b.x + 0.1", MONEY, CENTS, MONEY, CENTS,
        a_dime_apart,
    ),
    ("a.x = 0.15 AND a.x <= b.x", MONEY, CENTS, MONEY, CENTS, of_fifteen),
    ("a.x < b.x", F64, [1e300, 1.0], I64, [2**53 + 1, 2], lambda a, b: a < b),
    ("a.x < b.x", U64, [2**63 + 5, 1], I64, [2**53 + 1, 2, -1], lambda a, b: a < b),
    ("a.x < b.x", I32, [3, -7], MONEY, [Decimal("3.01"), Decimal("-7.01")], lambda a, b: a < b),
    ("a.x < 99999999999999999999 AND a.x <= b.x", I64, [0, 5], I64, [2], lambda a, b: a <= b),
    ("a.x / 2 = b.x", I64, [5, -5, 4], I64, [2, -2], lambda a, b: int(a / 2) == b),
    (
        "a.x % 10 = b.x", I64, [2**60 + 7, -17], I64, [3, 7, -7],
        lambda a, b: (a % 10 if a > 0 else -(-a % 10)) == b,
    ),
    ("10 / a.x <= b.x", I64, [0, 5], I64, [2, 1], lambda a, b: a != 0 and 10 // a <= b),
    ("a.x * a.x / 2 = b.x", I64, [3, 2**32], I64, [4, 5, 2**62], lambda a, b: a * a // 2 == b),
    ("a.x * a.x * a.x * a.x > b.x", I64, [2**40, MIN, 1], I64, [5, 0], lambda a, b: a**4 > b),
    ("a.x / 2 = b.x", U64, [7, 2**64 - 1], U64, [3, 2**63 - 1], lambda a, b: a // 2 == b),
    ("10 / a.x >= b.x", U64, [0, 2], U64, [5, 0], lambda a, b: a != 0 and 10 // a >= b),
    ("1 / a.x <= b.x", MONEY, CENTS, MONEY, [Decimal(11)], lambda a, b: a != 0 and 1 / a <= b),
    ("a.x / -1 < b.x", I64, [MIN, -4], I64, [5, MAX], lambda a, b: -a < b),
    (
        "a.x * 31 % 16 = b.x", I64, [2**61 + 1, 1], I64, [15, 0],
        lambda a, b: a * 31 % 16 == b,
    ),
    (
        "a.x % 0.07 = b.x", LONG, [Decimal(2**60), Decimal("0.08")], MONEY, CENTS[:4],
        lambda a, b: a - int(a / Decimal("0.07")) * Decimal("0.07") == b,
    ),
    # Both sums are rounded to the same float.
    ("a.x + 1e17 = b.x + 1e17", F64, [1.0], F64, [2.0, 100.0], lambda a, b: a + 1e17 == b + 1e17),
    (
        "a.x + 1e17 - 1e17 <= b.x", F64, [1.0, -20.0], F64, [0.0, -20.0],
        lambda a, b: a + 1e17 - 1e17 <= b,
    ),
    ("a.x <= b.x", pa.date32(), [2_932_896, 0], pa.timestamp("ns"), [0, 5], day_before_moment),
    ("a.x > b.x", pa.date32(), [2_932_896, 0], pa.timestamp("ns"), [5], lambda a, b: a > 0),
    (
        "a.x <= b.x", pa.timestamp("s"), [2**40, 0, -(2**40)], pa.timestamp("ns"), [0, 5],
        lambda a, b: a * 10**9 <= b,
    ),
    ("a.x < b.x", pa.string(), ["abcdefgh1", "b"], pa.string(), ["abcdefgh2"], lambda a, b: a < b),
    ("a.x < b.x", pa.date32(), [19_000, 20_000], pa.date32(), [19_500], lambda a, b: a < b),
)  # fmt: skip


def stream(values: Values, data_type: pa.DataType) -> pa.Table:
    plain = I32 if pa.types.is_date(data_type) else data_type
    columns = {"ts": range(len(values)), "k": [1] * len(values), "id": range(len(values))}
    return pa.table({**columns, "x": pa.array(values, plain).cast(data_type)})


@pytest.mark.parametrize("more", ["", " AND a.k = b.k"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} of {case[1]} and {case[3]}")
def test_values_decide(case: Case, more: str) -> None:
    where, left_type, left, right_type, right, holds = case
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    query = ps.WindowJoin(streams, where=where + more, within="1 second")
    expected = {
        (one, other) for one, a in enumerate(left) for other, b in enumerate(right) if holds(a, b)
    }
    for index in (None, "scan", "t_tree"):
        with query.start(indexes=index) as join:
            found = join.push(a=stream(left, left_type), b=stream(right, right_type))
        pairs = zip(found["a_id"].to_pylist(), found["b_id"].to_pylist(), strict=True)
        assert set(pairs) == expected, index


@pytest.mark.parametrize(
    ("where", "left", "right"),
    [
        ("a.x <= b.x", pa.timestamp("us"), I64),
        ("a.x <= b.x", pa.bool_(), I64),
        ("a.x + 1 <= b.x", I64, pa.string()),
        ("abs(a.x - b.x) <= 1", pa.string(), pa.string()),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_taken_in(
    where: str, left: pa.DataType, right: pa.DataType
) -> None:
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    join = ps.WindowJoin(streams, where=where, within="1 second").start()
    one = {"ts": [1], "k": [1], "id": [1]}
    join.push(a=pa.table({**one, "x": pa.nulls(1, left)}))
    with pytest.raises(ps.SchemaError, match="cannot be compared as where= does"):
        join.push(b=pa.table({**one, "x": pa.nulls(1, right)}))
    assert join.metrics.streams["b"].arrived == 0


def test_and_when_the_types_are_given_at_the_start() -> None:
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    query = ps.WindowJoin(streams, where="a.x <= b.x", within="1 second")
    one, other = (pa.schema([("ts", I64), ("x", kind)]) for kind in (I64, pa.string()))
    with pytest.raises(ps.SchemaError, match="cannot be compared as where= does"):
        query.start(schemas={"a": one, "b": other})
