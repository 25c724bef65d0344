"""Every word of a where clause is read, or refused with its place."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

import penstock as ps
from penstock.errors import QueryError
from penstock.model.predicates import where as reading
from penstock.model.predicates.predicate import Column, Comparison, Near
from penstock.model.predicates.where import parse_expression, parse_where

STREAMS = ["a", "b"]

# What is refused, and at which character; None where the parser refuses it itself.
REFUSED: tuple[tuple[str, int | None], ...] = (
    ("a.x BETWEEN SYMMETRIC b.hi AND b.lo", 1),
    ("a.x NOT BETWEEN b.hi AND b.lo", 1),
    ("a.y = b.a.x", 7),
    ("c.b.a.x = a.y", 1),
    ("a.x.y.z.w = b.x", 1),
    ('a."x".y = b.x', 1),
    ("(a.b).x = b.x", 2),
    ("(a.x)[1] = b.x", 2),
    ("a.x = b.*", 7),
    ("a.x(+) = b.x", 1),
    ("CAST(a.x AS INT) = b.x", 6),
    ("a.x::INT = b.x", 1),
    ("a.d = TRY_CAST('2020-01-01' AS DATE)", 7),
    ("a.d = CAST('2020-01-01' AS TIMESTAMP(3))", 28),
    ("a.d = CAST('2020-01-01' AS DATE FORMAT 'YYYY')", None),
    ("a.d = TIMESTAMPTZ '2020-01-01 00:00:00'", None),
    ("a.d = CAST('2020-01-01 00:00:00' AS TIMESTAMPTZ)", 7),
    ("a.d = DATE '2020-13-01'", None),
    ("a.d = CAST(20200101 AS DATE)", 7),
    ("a.x = b.x COLLATE 'de'", 7),
    ("a.x = b.x AS y", 1),
    ("a.x = 5 AS y", 1),
    ("a.x = 1_000", 1),
    ("a.x = 0x1F", 1),
    ("a.x = N'abc'", None),
    ("a.x = -'abc'", 7),
    ("a.x = -TRUE", 7),
    ("a.x = NULL", 7),
    ("a.x = ALL(b.x)", 11),
    ("a.x = ANY(b.x)", 11),
    ("a.x IS b.x", 1),
    ("a.x IN (1, 2)", 1),
    ("a.x LIKE 'y' ESCAPE 'z'", 1),
    ("a.x DIV 2 = b.x", 1),
    ("~a.x = b.x", 2),
    ("a.x = b.x = a.y", 1),
    ("count(DISTINCT a.x) = b.x", 16),
    ("sum(a.x) FILTER (WHERE a.y > 1) = b.x", 5),
    ("sum(a.x) OVER (ORDER BY a.y NULLS FIRST) = b.x", 5),
    ("SAFE_DIVIDE(a.x, 2) = b.x", 13),
    ("abs(a.x) = b.x", 5),
    ("power(a.x, 2) = b.x", 7),
    ("sqrt(power(a.x - b.x, 3)) <= 1", 12),
    ("sqrt(power(a.x - b.x, 2) - power(a.y - b.y, 2)) <= 1", 12),
    ("sqrt((a.x - b.x) * (a.X - b.x)) <= 1", 7),
    ("abs(a.x - b.x, 3) <= 5", None),
    ("a.x = b.x; a.y = b.y", None),
    ("a.x = b.x ORDER BY a.x NULLS FIRST", None),
    ("a.x = DATE '2020-01-01' + INTERVAL '1' DAY", None),
    ("a.x = :p", None),
    ("@a.x = b.x", 4),
    ("CASE WHEN a.x = 1 THEN 1 END = b.x", 11),
    ("a.x = (SELECT 1)", None),
    ("NOT a.x = b.x", 5),
    ("a.x = " + "9" * 5000, None),
)  # fmt: skip


@pytest.mark.parametrize(("text", "place"), REFUSED, ids=[text[:50] for text, _ in REFUSED])
def test_what_is_not_read_is_refused_by_place(text: str, place: int | None) -> None:
    with pytest.raises(QueryError) as raised:
        parse_where(text, STREAMS)
    if place is not None:
        assert f"near character {place};" in str(raised.value)


def test_harmless_words_change_nothing() -> None:
    (plain,) = parse_where("a.x = b.y", STREAMS)
    for text in (
        'a."x" = "b".y',
        "((a.x) = (b.y))",
        "a.x /* the key */ = b.y -- and no more",
        "a.x == b.y;",
        "+a.x = b.y",
    ):
        assert parse_where(text, STREAMS) == (plain,), text
    same = Comparison("is", Column(0, "x"), Column(1, "y"))
    for text in ("a.x IS NOT DISTINCT FROM b.y", "NOT a.x IS DISTINCT FROM b.y", "a.x <=> b.y"):
        assert parse_where(text, STREAMS) == (same,), text
    squares = "sqrt((a.x - b.x) * (a.x - b.x) + pow(a.y - b.y, 2)) < 1.5"
    (near,) = parse_where(squares, STREAMS)
    assert isinstance(near, Near)
    assert len(near.pairs) == 2


def read_nodes() -> list[Any]:
    """Trees that are read as they are, with every class of node that is."""
    texts = (
        "a.x = b.y AND (a.x + 1 < b.y - 2)",
        "a.x <> b.y AND a.x <= b.y AND a.x >= b.y AND a.x > -b.y * 2 / 3 % 5",
        "a.x BETWEEN b.lo AND b.hi AND a.x IS NOT DISTINCT FROM b.x AND a.t = TRUE",
        "NOT a.x IS DISTINCT FROM b.x AND a.d > DATE '2020-01-01' AND a.s = 'text'",
        "sqrt(power(a.x - b.x, 2) + (a.y - b.y) * (a.y - b.y)) <= 5 AND abs(a.x - b.x) <= 5",
    )
    return [(text, sqlglot.parse_one(text)) for text in texts]


def variants() -> list[Any]:
    """For every argument of every class of node that is read, and is not read of it: a tree in
    which it is given."""
    found = []
    for text, tree in read_nodes():
        for number, node in enumerate(tree.walk()):
            for name in type(node).arg_types:
                if name in reading._READ[type(node)]:
                    continue
                for value in (True, exp.Literal.string("said"), [exp.Literal.number(1)]):
                    changed = tree.copy()
                    list(changed.walk())[number].set(name, value)
                    found.append((f"{type(node).__name__}.{name}", text, changed))
    return found


def test_all_classes_that_are_read_are_tried() -> None:
    tried = {type(node) for _, tree in read_nodes() for node in tree.walk()}
    assert tried == set(reading._READ)


def test_no_argument_of_a_node_is_passed_over() -> None:
    for text, _ in read_nodes():
        assert parse_where(text, STREAMS)
    tried = variants()
    assert len(tried) > 100
    for _, text, changed in tried:
        with pytest.raises(QueryError, match="not supported"):
            tuple(reading._Reader(text, STREAMS).conjuncts(changed))


def other_kinds() -> list[Any]:
    """Every class of sqlglot's that stands for a condition or a value and is not read."""
    kinds = {
        kind
        for _, kind in inspect.getmembers(exp, inspect.isclass)
        if issubclass(kind, exp.Condition) and kind not in reading._READ
    }
    return sorted(kinds, key=lambda kind: kind.__name__)


def test_no_other_node_is_taken_for_one_that_is_read() -> None:
    kinds = other_kinds()
    assert len(kinds) > 100
    inside, number = sqlglot.parse_one("a.x - b.x"), exp.Literal.number(5)
    for kind in kinds:
        try:
            node = kind(this=inside.this.copy(), expression=inside.expression.copy())
        except NotImplementedError:  # no parser can make one of these
            continue
        for tree in (
            node,
            exp.EQ(this=node.copy(), expression=number.copy()),
            exp.LTE(this=exp.Abs(this=node.copy()), expression=number.copy()),
            exp.LTE(this=exp.Sqrt(this=node.copy()), expression=number.copy()),
        ):
            with pytest.raises(QueryError):
                tuple(reading._Reader("a.x ? b.x", STREAMS).conjuncts(tree))


@pytest.mark.parametrize(
    "text", ["a.x.y", "a.x; a.y", "a.x COLLATE 'de'", "a.x::INT", "a.*", 5, ""]
)
def test_so_is_an_expression(text: Any) -> None:
    assert parse_expression("a.x * 2", STREAMS, "value").columns == {Column(0, "x")}
    with pytest.raises(QueryError, match="value"):
        parse_expression(text, STREAMS, "value")


def test_a_struct_field_says_what_to_do() -> None:
    two = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    with pytest.raises(ps.QueryError, match="make a field of a struct a column of its own"):
        ps.WindowJoin(two, where="b.a.x = a.y", within="1 s")
    with pytest.raises(ps.QueryError, match="SYMMETRIC: write the lower bound first"):
        ps.WindowJoin(two, where="a.x BETWEEN SYMMETRIC b.hi AND b.lo", within="1 s")


@pytest.mark.parametrize(
    "text", ["a.x < 1e9999999999999999999", "a.x < 1e-9999999999999999999", "a.x * 2 > 1e-3000000"]
)
def test_a_number_of_too_many_digits_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="at most 1000 of them"):
        parse_where(text, STREAMS)


def test_any_number_of_terms_is_read_and_deep_nesting_refused_in_words() -> None:
    terms = [f"a.x{number} = b.x{number}" for number in range(2_000)]
    found = parse_where(" AND ".join(terms), STREAMS)
    assert [each.left.name for each in found] == [f"x{number}" for number in range(2_000)]
    with pytest.raises(QueryError, match="nested too deeply"):
        parse_where("(" * 3_000 + "a.x = b.x" + ")" * 3_000, STREAMS)
