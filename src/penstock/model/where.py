"""A where clause: SQL text and functions in, predicates out.

Of SQL only what is listed here is understood; anything else is refused with the words it stands in
and their place. Columns are written `stream.column`, with double quotes around names that are
no plain words.

    =  <>  <  <=  >  >=  BETWEEN  IS NOT DISTINCT FROM      between expressions of one stream each
    abs(a.x - b.y) <= 5                                     a band
    sqrt(power(a.x - b.x, 2) + power(a.y - b.y, 2)) <= 5    a distance, in any number of columns
    + - * / %                                               within a side
    AND                                                     between all of these
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any, Final, NoReturn

import sqlglot
from sqlglot import exp

from penstock.errors import QueryError
from penstock.model.predicate import (
    Arithmetic,
    Column,
    Comparison,
    Constant,
    Expression,
    Near,
    Predicate,
)
from penstock.model.udf import Udf

__all__ = ["Where", "parse_expression", "parse_where"]

Where = str | Udf | Sequence[str | Udf]

Node = Any  # of sqlglot's tree

_COMPARISONS: Final[dict[Any, str]] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "is",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED: Final = {"=": "=", "is": "is", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ARITHMETIC: Final[dict[Any, str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_KNOWN: Final = (
    "a where clause is comparisons (=, <>, <, <=, >, >=, BETWEEN, IS NOT DISTINCT FROM) of "
    "columns written stream.column, abs(a.x - b.y) <= number, or a distance, joined by AND"
)


_KNOWN_EXPRESSION: Final = (
    "it is numbers and columns written stream.column, with +, -, * and / between them"
)


def parse_where(where: Where, streams: Sequence[str]) -> tuple[Predicate, ...]:
    """The predicates of a clause, or of several, over streams of these names."""
    parts = [where] if isinstance(where, str | Udf) else where
    if not isinstance(parts, Sequence) or not parts:
        _refuse_part(where)
    predicates: list[Predicate] = []
    for part in parts:
        if isinstance(part, Udf):
            predicates.append(part.predicate(streams))
        else:
            predicates += _parse_text(part, streams)
    return tuple(predicates)


def parse_expression(text: Any, streams: Sequence[str], what: str) -> Expression:
    """Arithmetic over the columns of one stream, written as in a where clause."""
    try:
        tree = sqlglot.parse_one(text)
        expression = _Reader(text, streams, what).side(tree)
    except (sqlglot.errors.SqlglotError, TypeError) as error:
        told = str(error).splitlines()[0]
        raise QueryError(f"cannot read {what}={text!r}: {told}") from None
    if not expression.columns:
        raise QueryError(f"{what} must use a column of a stream, got {text!r}; write 'a.price'")
    return expression


def _refuse_part(got: Any) -> NoReturn:
    raise QueryError(
        f"where must be SQL text, a ps.udf, or a list of these, got {got!r}; "
        "write for example 'a.x = b.y'"
    )


def _parse_text(text: str, streams: Sequence[str]) -> tuple[Predicate, ...]:
    if not isinstance(text, str) or not text.strip():
        _refuse_part(text)
    try:
        tree = sqlglot.parse_one(text)
    except sqlglot.errors.SqlglotError as error:
        told = str(error).replace("\033[4m", "").replace("\033[0m", "").splitlines()[0]
        raise QueryError(f"cannot read where={text!r}: {told}; {_KNOWN}") from None
    return tuple(_Reader(text, streams).conjuncts(tree))


class _Reader:
    def __init__(self, text: str, streams: Sequence[str], what: str = "where") -> None:
        self._text = text
        self._what = what
        self._known = _KNOWN if what == "where" else _KNOWN_EXPRESSION
        self._streams = list(streams)

    def conjuncts(self, node: Node) -> Iterator[Predicate]:
        node = _bare(node)
        if isinstance(node, exp.And):
            yield from self.conjuncts(node.left)
            yield from self.conjuncts(node.right)
        elif isinstance(node, exp.Between):
            value = self.side(node.this)
            yield Comparison(">=", value, self.side(node.args["low"]))
            yield Comparison("<=", value, self.side(node.args["high"]))
        elif isinstance(node, exp.Not) and isinstance(_bare(node.this), exp.NullSafeNEQ):
            inner = _bare(node.this)
            yield Comparison("is", self.side(inner.left), self.side(inner.right))
        elif type(node) in _COMPARISONS:
            yield self._comparison(node)
        else:
            self._refuse(node)

    def _comparison(self, node: Node) -> Predicate:
        op, left, right = _COMPARISONS[type(node)], _bare(node.this), _bare(node.expression)
        for near, bound, said in ((left, right, op), (right, left, _MIRRORED[op])):
            pairs = self._pairs(near)
            if pairs is not None:
                limit = self.side(bound)
                if said not in ("<", "<=") or not isinstance(limit, Constant):
                    self._refuse(node, "a distance must be < or <= a number")
                if not isinstance(limit.value, int | float) or limit.value < 0:
                    self._refuse(node, "a distance must be < or <= a number of zero or more")
                return Near(tuple(pairs), limit.value, said == "<=")
        return Comparison(op, self.side(left), self.side(right))

    def _pairs(self, node: Node) -> list[tuple[Expression, Expression]] | None:
        """The coordinates of a distance; None if it is none."""
        if isinstance(node, exp.Abs):
            difference = _bare(node.this)
            return [self._difference(difference)] if isinstance(difference, exp.Sub) else None
        if isinstance(node, exp.Sqrt):
            return [self._difference(each) for each in self._squares(_bare(node.this))]
        return None

    def _squares(self, node: Node) -> Iterator[Node]:
        """The bases of a sum of squares."""
        if isinstance(node, exp.Add):
            yield from self._squares(_bare(node.this))
            yield from self._squares(_bare(node.expression))
            return
        squared = isinstance(node, exp.Pow) and _bare(node.expression) == exp.Literal.number(2)
        if squared or (isinstance(node, exp.Mul) and _bare(node.this) == _bare(node.expression)):
            yield _bare(node.this)
        else:
            self._refuse(node, "a distance is the square root of a sum of squared differences")

    def _difference(self, node: Node) -> tuple[Expression, Expression]:
        if not isinstance(node, exp.Sub):
            self._refuse(node, "a distance is made of differences between two streams")
        return self.side(node.this), self.side(node.expression)

    def side(self, node: Node) -> Expression:
        """An expression over one stream at most."""
        expression = self._expression(node)
        if len({column.stream for column in expression.columns}) > 1:
            part = "a side of a comparison" if self._what == "where" else f"{self._what}="
            self._refuse(node, f"{part} may use the columns of one stream only")
        return expression

    def _expression(self, node: Node) -> Expression:
        node = _bare(node)
        if isinstance(node, exp.Column):
            return self._column(node)
        if type(node) in _ARITHMETIC:
            left, right = self._expression(node.this), self._expression(node.expression)
            return Arithmetic(_ARITHMETIC[type(node)], left, right)
        if isinstance(node, exp.Neg):
            negated = self._expression(node.this)
            if isinstance(negated, Constant):
                return Constant(-negated.value)
            return Arithmetic("-", Constant(0), negated)
        return Constant(self._constant(node))

    def _column(self, node: exp.Column) -> Column:
        if node.table not in self._streams:
            self._refuse(
                node, f"write columns as stream.column, where the streams are {self._streams}"
            )
        return Column(self._streams.index(node.table), node.name)

    def _constant(self, node: Node) -> Any:
        if isinstance(node, exp.Boolean):
            return node.this
        if isinstance(node, exp.Literal):
            if node.is_string:
                return node.this
            return float(node.this) if re.search("[.eE]", node.this) else int(node.this)
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
            for kind, read in _MOMENTS.items():
                if node.to.this == kind:
                    try:
                        return read(node.this.this)
                    except ValueError:
                        self._refuse(node, "write it as in ISO 8601")
        self._refuse(node)

    def _refuse(self, node: Node, why: str | None = None) -> NoReturn:
        places = [
            each.meta["start"] for each in node.find_all(exp.Identifier) if "start" in each.meta
        ]
        where = f", near character {min(places) + 1}" if places else ""
        raise QueryError(
            f"{self._what}={self._text!r} has a part that is not supported: {node.sql()}{where}; "
            f"{why or self._known}"
        )


_MOMENTS: Final[dict[Any, Any]] = {
    exp.DataType.Type.DATE: date.fromisoformat,
    exp.DataType.Type.TIMESTAMP: datetime.fromisoformat,
    exp.DataType.Type.TIMESTAMPTZ: datetime.fromisoformat,
}


def _bare(node: Any) -> Any:
    """Without parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
