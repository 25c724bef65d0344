"""Predicates: what must hold of the tuples of a combination, beside their windows.

A where clause is a conjunction of these. One that is over a single stream filters it before its
window; one that compares plain columns of two streams for equality can become part of the key
that indexes find tuples by; all others are residual and checked on the candidates.

A comparison with a null holds for nothing, except `is`, which is SQL's IS NOT DISTINCT FROM:
nulls are equal to each other there. NaN equals nothing, and is neither less nor greater.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

__all__ = [
    "Arithmetic",
    "Call",
    "Column",
    "Comparison",
    "Constant",
    "Expression",
    "Near",
    "Predicate",
]


@dataclass(frozen=True)
class Column:
    """A column of stream number `stream`."""

    stream: int
    name: str

    @property
    def columns(self) -> frozenset[Column]:
        """All columns in it."""
        return frozenset([self])


@dataclass(frozen=True)
class Constant:
    """A number, a text, a truth value, a date or a timestamp."""

    value: Any

    @property
    def columns(self) -> frozenset[Column]:
        """None."""
        return frozenset()


@dataclass(frozen=True)
class _Operation:
    op: str
    left: Expression
    right: Expression

    @property
    def columns(self) -> frozenset[Column]:
        """All columns in it."""
        return self.left.columns | self.right.columns


class Arithmetic(_Operation):
    """op: one of + - * / %."""


Expression = Column | Constant | Arithmetic


class Comparison(_Operation):
    """op: one of = is <> < <= > >=. Each side is over one stream at most."""


@dataclass(frozen=True)
class Near:
    """The Euclidean distance of two points is at most `epsilon` (below it, if not closed).

    pairs: their coordinates; one pair is a band, `abs(a.x - b.y) <= epsilon`.
    """

    pairs: tuple[tuple[Expression, Expression], ...]
    epsilon: float | int | Decimal
    closed: bool = True

    @property
    def columns(self) -> frozenset[Column]:
        """All columns in it."""
        sides = [each.columns for pair in self.pairs for each in pair]
        return frozenset().union(*sides)


@dataclass(frozen=True)
class Call:
    """A function of the user's says what holds: see `predicates.udf`. name: what it is called."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Column, ...]

    @property
    def columns(self) -> frozenset[Column]:
        """All columns in it."""
        return frozenset(self.arguments)


Predicate = Comparison | Near | Call
