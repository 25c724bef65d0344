"""A where clause: SQL text and functions in, predicates out.

Of SQL only what is listed here is understood; anything else is refused with the words it stands in
and their place: kinds of nodes that are not listed, and what is said in a node but not read from it
(`_READ`). Columns are written `stream.column`, with double quotes around names that are no plain
words.

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
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn

import sqlglot
from sqlglot import exp

from penstock.errors import QueryError
from penstock.model.predicates.predicate import (
    Arithmetic,
    Column,
    Comparison,
    Constant,
    Expression,
    Near,
    Predicate,
)
from penstock.model.predicates.udf import Udf

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


# What is read of each node. All else that one says is refused: a word that is left out could
# turn the answer round.
_TWO_SIDES: Final = frozenset(["this", "expression"])
_READ: Final[dict[Any, frozenset[str]]] = {
    **dict.fromkeys([*_COMPARISONS, *_ARITHMETIC], _TWO_SIDES),
    **dict.fromkeys([exp.And, exp.NullSafeNEQ, exp.Pow], _TWO_SIDES),
    **dict.fromkeys([exp.Paren, exp.Not, exp.Neg, exp.Abs, exp.Sqrt], frozenset(["this"])),
    **dict.fromkeys([exp.Boolean, exp.DataType], frozenset(["this"])),
    exp.Between: frozenset(["this", "low", "high"]),
    exp.Column: frozenset(["this", "table"]),
    exp.Identifier: frozenset(["this", "quoted"]),
    exp.Literal: frozenset(["this", "is_string"]),
    exp.Cast: frozenset(["this", "to"]),
}

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
        tree = _tree(text)
    except (sqlglot.errors.SqlglotError, TypeError, ValueError) as error:
        raise QueryError(f"cannot read {what}={text!r}: {_first_line(error)}") from None
    expression = _Reader(text, streams, what).side(tree)
    if not expression.columns:
        raise QueryError(f"{what} must use a column of a stream, got {text!r}; write 'a.price'")
    return expression


def _tree(text: str) -> Node:
    """The one statement in a text."""
    trees = [tree for tree in sqlglot.parse(text) if tree is not None]
    if len(trees) != 1:
        raise ValueError(f"it has {len(trees)} statements, not one")
    return trees[0]


def _first_line(error: Exception) -> str:
    return str(error).replace("\033[4m", "").replace("\033[0m", "").splitlines()[0]


def _refuse_part(got: Any) -> NoReturn:
    raise QueryError(
        f"where must be SQL text, a ps.udf, or a list of these, got {got!r}; "
        "write for example 'a.x = b.y'"
    )


def _parse_text(text: str, streams: Sequence[str]) -> tuple[Predicate, ...]:
    if not isinstance(text, str) or not text.strip():
        _refuse_part(text)
    try:
        try:
            tree = _tree(text)
        except (sqlglot.errors.SqlglotError, ValueError) as error:
            raise QueryError(
                f"cannot read where={text!r}: {_first_line(error)}; {_KNOWN}"
            ) from None
        return tuple(_Reader(text, streams).conjuncts(tree))
    except RecursionError:
        raise QueryError(
            f"where={text[:60]!r}... is nested too deeply to be read, in {len(text)} characters; "
            "leave out parentheses, or give its terms as a list"
        ) from None


class _Reader:
    def __init__(self, text: str, streams: Sequence[str], what: str = "where") -> None:
        self._text = text
        self._what = what
        self._known = _KNOWN if what == "where" else _KNOWN_EXPRESSION
        self._streams = list(streams)

    def conjuncts(self, node: Node) -> Iterator[Predicate]:
        """The terms that AND connects, however many, in their order."""
        waiting = [node]
        while waiting:
            node = self._bare(waiting.pop())
            if type(node) is exp.And:
                waiting += [node.expression, node.this]
            else:
                yield from self._term(node)

    def _term(self, node: Node) -> Iterator[Predicate]:
        kind = type(node)
        if kind is exp.Between:
            value = self.side(node.this)
            yield Comparison(">=", value, self.side(node.args["low"]))
            yield Comparison("<=", value, self.side(node.args["high"]))
        elif kind is exp.Not and type(inner := self._bare(node.this)) is exp.NullSafeNEQ:
            yield Comparison("is", self.side(inner.this), self.side(inner.expression))
        elif kind in _COMPARISONS:
            yield self._comparison(node)
        else:
            self._refuse(node)

    def _comparison(self, node: Node) -> Predicate:
        op = _COMPARISONS[type(node)]
        left, right = self._bare(node.this), self._bare(node.expression)
        for near, bound, said in ((left, right, op), (right, left, _MIRRORED[op])):
            pairs = self._pairs(near)
            if pairs is not None:
                limit = self.side(bound)
                if said not in ("<", "<=") or not isinstance(limit, Constant):
                    self._refuse(node, "a distance must be < or <= a number")
                if not _is_number(limit.value) or limit.value < 0:
                    self._refuse(node, "a distance must be < or <= a number of zero or more")
                return Near(tuple(pairs), limit.value, said == "<=")
        return Comparison(op, self.side(left), self.side(right))

    def _pairs(self, node: Node) -> list[tuple[Expression, Expression]] | None:
        """The coordinates of a distance; None if it is none."""
        if type(node) is exp.Abs:
            difference = self._bare(node.this)
            return [self._difference(difference)] if type(difference) is exp.Sub else None
        if type(node) is exp.Sqrt:
            return list(self._squares(self._bare(node.this)))
        return None

    def _squares(self, node: Node) -> Iterator[tuple[Expression, Expression]]:
        """The differences in a sum of squares."""
        kind = type(node)
        if kind is exp.Add:
            yield from self._squares(self._bare(node.this))
            yield from self._squares(self._bare(node.expression))
            return
        if kind in (exp.Pow, exp.Mul):
            base, other = self._bare(node.this), self._bare(node.expression)
            if kind is exp.Pow and self.side(other) == Constant(2):
                yield self._difference(base)
                return
            # As the model reads them: sqlglot takes names that differ in their case for equal.
            if kind is exp.Mul and type(base) is type(other) is exp.Sub:
                difference = self._difference(base)
                if difference == self._difference(other):
                    yield difference
                    return
        self._refuse(node, "a distance is the square root of a sum of squared differences")

    def _difference(self, node: Node) -> tuple[Expression, Expression]:
        if type(node) is not exp.Sub:
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
        node = self._bare(node)
        kind = type(node)
        if kind is exp.Column:
            return self._column(node)
        if kind in _ARITHMETIC:
            left, right = self._expression(node.this), self._expression(node.expression)
            return Arithmetic(_ARITHMETIC[kind], left, right)
        if kind is exp.Neg:
            negated = self._expression(node.this)
            if not isinstance(negated, Constant):
                return Arithmetic("-", Constant(0), negated)
            if not _is_number(negated.value):
                self._refuse(node, "only a number can have a sign")
            return Constant(-negated.value)
        return Constant(self._constant(node))

    def _column(self, node: Node) -> Column:
        name, table = node.this, node.args.get("table")
        for each in (name, table):
            if each is not None and type(each) is not exp.Identifier:
                self._refuse(node)
        if table is None or self._bare(table).name not in self._streams:
            self._refuse(
                node, f"write columns as stream.column, where the streams are {self._streams}"
            )
        return Column(self._streams.index(table.name), self._bare(name).name)

    def _constant(self, node: Node) -> Any:
        kind = type(node)
        if kind is exp.Boolean:
            return node.this
        if kind is exp.Literal:
            if node.is_string:
                return node.this
            try:
                return _number(node.this)
            except ValueError:
                self._refuse(
                    node,
                    "write a number in digits, with a point or e if need be, and at most "
                    f"{_MOST_DIGITS} of them",
                )
        if kind is exp.Cast:
            text, to = self._bare(node.this), self._bare(node.args["to"])
            if type(text) is exp.Literal and text.is_string and to.this in _MOMENTS:
                try:
                    moment = _MOMENTS[to.this](text.this)
                except ValueError:
                    self._refuse(node, "write it as in ISO 8601")
                if to.this == exp.DataType.Type.TIMESTAMPTZ and moment.tzinfo is None:
                    self._refuse(node, "say which zone it is in, as in '2026-01-01T00:00:00+00:00'")
                return moment
        self._refuse(node)

    def _bare(self, node: Node) -> Node:
        """Without parentheses; refused if it says anything that is not read."""
        while True:
            read = _READ.get(type(node), frozenset())
            # What is not in _READ at all is refused by whoever finds that it is none of these.
            unread = [
                name
                for name, value in node.args.items()
                if value not in (None, False, []) and type(node) in _READ and name not in read
            ]
            if unread:
                self._refuse(node, f"penstock does not read {_UNREAD.get(unread[0], unread[0])}")
            if type(node) is not exp.Paren:
                return node
            node = node.this

    def _refuse(self, node: Node, why: str | None = None) -> NoReturn:
        places = [
            each.meta["start"] for each in node.find_all(exp.Identifier) if "start" in each.meta
        ]
        said = _said(node)
        if not places and self._text.count(said) == 1:
            places = [self._text.index(said)]
        where = f", near character {min(places) + 1}" if places else ""
        raise QueryError(
            f"{self._what}={self._text!r} has a part that is not supported: {said}{where}; "
            f"{why or self._known}"
        )


def _said(node: Node) -> str:
    try:
        text: str = node.sql(unsupported_level=sqlglot.ErrorLevel.IGNORE)
    except Exception:  # sqlglot reads more than it can write
        return type(node).__name__
    return text


# What users would call arguments that are not read.
_UNREAD: Final = {
    "db": "names of more than two parts: make a field of a struct a column of its own",
    "symmetric": "SYMMETRIC: write the lower bound first",
    "expressions": "the parameters of a type",
}

_MOMENTS: Final[dict[Any, Any]] = {
    exp.DataType.Type.DATE: date.fromisoformat,
    exp.DataType.Type.TIMESTAMP: datetime.fromisoformat,
    exp.DataType.Type.TIMESTAMPTZ: datetime.fromisoformat,
}


_MOST_DIGITS: Final = 1_000  # before the point or behind it, of a number in a text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _number(text: str) -> int | float | Decimal:
    """A float, or a decimal if no float is written so."""
    if not re.search("[.eE]", text):
        return int(text)
    try:
        written, nearest = Decimal(text), float(text)
    except InvalidOperation:
        raise ValueError(f"no decimal is written as {text}") from None
    if abs(written.adjusted()) > _MOST_DIGITS:
        raise ValueError(f"{text} has more than {_MOST_DIGITS} digits")
    is_float = written == Decimal(repr(nearest)) or abs(nearest) == float("inf")
    return nearest if is_float else written
