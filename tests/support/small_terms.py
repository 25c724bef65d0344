"""Random `where=` terms for small joins, over every documented form."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from support.second_terms import (
    COMPARE,
    NOT_DISTINCT,
    Arithmetic,
    Between,
    Column,
    Comparison,
    Distance,
    Expression,
    Function,
    Literal,
    Term,
)
from support.small_columns import KEYS, NUMBERS, Columns


class TermMaker:
    """Draws terms, and gives the streams the columns that these need."""

    def __init__(self, rng: Random, columns: Columns) -> None:
        self.rng = rng
        self.columns = columns
        self.count = len(columns.of)

    def pair(self) -> tuple[int, int]:
        left, right = self.rng.sample(range(self.count), 2)
        return left, right

    def number(self, stream: int) -> Column:
        return Column(stream, self.columns.number(stream))

    def expression(self, stream: int, depth: int = 2) -> Expression:
        """Arithmetic over the numbers of one stream."""
        if depth == 0 or self.rng.random() < 0.5:
            return self.number(stream)
        left = self.expression(stream, depth - 1)
        literal = Literal(self.rng.choice((-2, 0, 1, 2, 3)))
        right = literal if self.rng.random() < 0.6 else self.expression(stream, depth - 1)
        return Arithmetic(self.rng.choice("+-*/%"), left, right)

    def text_column(self, stream: int) -> Column:
        self.columns.add(stream, "s", KEYS["text"])
        return Column(stream, "s")

    # terms over one stream

    def filter(self) -> Term:
        stream = self.rng.randrange(self.count)
        sign = self.rng.choice(tuple(COMPARE))
        form = self.rng.randrange(5)
        if form == 0:
            return Comparison(sign, self.expression(stream), self.number(stream))
        if form == 1:
            return Comparison(sign, self.text_column(stream), Literal("x"))
        if form == 2:
            low, high = sorted(self.rng.choices((-2, 0, 1, 3), k=2))
            return Between(self.expression(stream), Literal(low), Literal(high))
        if form == 3:
            return Function((self.number(stream),), _is_not_two, _are_not_two)
        literal = Literal(self.rng.choice((-1, 0, 1, 0.5, 2)))
        return Comparison(sign, self.expression(stream), literal)

    # terms over two streams and more

    def between_streams(self) -> Term:
        left, right = self.pair()
        make = self.rng.choice(
            (
                self._comparison,
                self._comparison,
                self._between,
                self._band,
                self._distance,
                self._text,
                self._function,
                self._not_distinct,
                self._times,
            )
        )
        return make(left, right)

    def order(self) -> Term:
        """By which a window can be searched, for two streams without a key."""
        left, right = self.pair()
        return self.rng.choice((self._comparison, self._between, self._band))(left, right)

    def _comparison(self, left: int, right: int) -> Term:
        sign = self.rng.choice(tuple(COMPARE))
        ours, theirs = self.expression(left), self.expression(right)
        if sign == "=" and isinstance(ours, Column) and isinstance(theirs, Column):
            theirs = Arithmetic("+", theirs, Literal(0))  # plain columns must be of one kind
        return Comparison(sign, ours, theirs)

    def _between(self, left: int, right: int) -> Term:
        column = self.number(right)
        low, high = sorted(self.rng.choices((-1, 0, 1, 2), k=2))
        return Between(
            self.number(left),
            Arithmetic("+", column, Literal(low)),
            Arithmetic("+", column, Literal(high)),
        )

    def _band(self, left: int, right: int) -> Term:
        most = self.rng.choice((0, 1, 2, 0.5))
        return Distance(((self.number(left), self.number(right)),), most, self._at_most())

    def _distance(self, left: int, right: int) -> Term:
        for stream in (left, right):
            for name in ("p", "q"):
                kind = NUMBERS[self.rng.choice(("integer", "float"))]
                self.columns.add(stream, name, kind)
        pairs = tuple((Column(left, name), Column(right, name)) for name in ("p", "q"))
        return Distance(pairs, self.rng.choice((1, 2, 5)), self._at_most())

    def _at_most(self) -> str:
        return self.rng.choice(("<=", "<=", "<"))

    def _text(self, left: int, right: int) -> Term:
        sign = self.rng.choice(tuple(COMPARE))
        return Comparison(sign, self.text_column(left), self.text_column(right))

    def _not_distinct(self, left: int, right: int) -> Term:
        return Comparison(NOT_DISTINCT, self.text_column(left), self.text_column(right))

    def _times(self, left: int, right: int) -> Term:
        sign = self.rng.choice(("<>", "<", "<=", ">", ">="))  # `=` needs times of one unit
        return Comparison(sign, Column(left, "ts"), Column(right, "ts"))

    def _function(self, left: int, right: int) -> Term:
        return Function((self.number(left), self.number(right)), _differ, _are_different)


def _is_not_two(value: Any) -> bool | None:
    return None if value is None else value != 2


def _are_not_two(values: pa.Array) -> pa.Array:
    return pa.array([_is_not_two(value) for value in values.to_pylist()], pa.bool_())


def _differ(left: Any, right: Any) -> bool | None:
    """Also where both are null; null where one is."""
    if left is None and right is None:
        return True
    return None if left is None or right is None else float(left) != float(right)


def _are_different(left: pa.Array, right: pa.Array) -> pa.Array:
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return pa.array([_differ(*pair) for pair in pairs], pa.bool_())
