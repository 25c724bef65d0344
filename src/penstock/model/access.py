"""Access paths: by what the tuples of a window can be found.

A where clause links streams. Columns that must be equal form classes; the classes over the same
streams are one *group*, and every stream of it has one word for its columns together. The group
of all streams, where there is one, is the key: it links every pair, so nothing else is needed.
Without it each group links its streams, and two streams that no group links may be linked by
*relations*: one expression at most another, or near it.

A stream has one word for each group and each expression it takes part with, at least one. Each
word is an access path of its window. A word is a necessary condition only: what it lets through
is verified afterwards, on values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from penstock.model.predicates.key_terms import chosen_of, classes
from penstock.model.predicates.predicate import (
    Arithmetic,
    Comparison,
    Constant,
    Expression,
    Near,
    Predicate,
)

__all__ = ["Access", "Equal", "Ordered", "Relation", "Word", "access_paths"]

_HUGE: Final = 1e300
_FEW: Final = 4  # numbers added to one expression, each with a rounding


@dataclass(frozen=True)
class Equal:
    """Columns that equal those of the other streams of a group. null_safe: and null equals null."""

    group: int
    columns: tuple[str, ...]
    null_safe: bool = False


@dataclass(frozen=True)
class Ordered:
    """An expression over the stream, in order."""

    expression: Expression


Word = Equal | Ordered


@dataclass(frozen=True)
class Relation:
    """Between a word of one stream and one of another plus `shift`, each (stream, its number).

    op: 'same', 'at most' (the left one is, of the right one), or 'near', within epsilon.
    """

    left: tuple[int, int]
    right: tuple[int, int]
    op: str
    epsilon: float
    shift: float


@dataclass(frozen=True)
class Access:
    """words: of each stream. groups: of each group, which word its streams have for it.
    relations: between ordered words."""

    words: tuple[tuple[Word, ...], ...]
    groups: tuple[dict[int, int], ...]
    relations: tuple[Relation, ...]


def access_paths(keys: Sequence[tuple[str, ...]], predicates: Sequence[Predicate]) -> Access:
    """The words of streams with these keys, none when all are empty, and how they are linked."""
    streams = len(keys)
    if keys[0]:
        words: list[list[Word]] = [[Equal(0, key)] for key in keys]
        return Access(tuple(map(tuple, words)), (dict.fromkeys(range(streams), 0),), ())
    words = [[] for _ in keys]
    groups = _add_groups(words, predicates)
    relations = _add_relations(words, groups, predicates)
    for stream, own in enumerate(words):
        if not own:  # it is read as a whole
            own.append(Equal(len(groups), ()))
            groups.append({stream: 0})
    return Access(tuple(map(tuple, words)), tuple(groups), tuple(relations))


def _add_groups(words: list[list[Word]], predicates: Sequence[Predicate]) -> list[dict[int, int]]:
    groups: list[dict[int, int]] = []
    for op in ("=", "is"):
        columns: dict[tuple[int, ...], list[dict[int, str]]] = {}
        for together in classes(predicates, op):
            chosen = chosen_of(together)
            columns.setdefault(tuple(sorted(chosen)), []).append(chosen)
        for members, of_class in columns.items():
            for stream in members:
                names = tuple(chosen[stream] for chosen in of_class)
                words[stream].append(Equal(len(groups), names, op == "is"))
            groups.append({stream: len(words[stream]) - 1 for stream in members})
    return groups


def _add_relations(
    words: list[list[Word]], groups: Sequence[dict[int, int]], predicates: Sequence[Predicate]
) -> list[Relation]:
    relations = []
    for predicate in predicates:
        streams = {column.stream for column in predicate.columns}
        if len(streams) != 2 or any(streams <= set(group) for group in groups):
            continue
        for left, right, op, epsilon in _ordered(predicate):
            sides, shift = _split(left, right)
            places = []
            for core in sides:
                (stream,) = {column.stream for column in core.columns}
                word = Ordered(core)
                if word not in words[stream]:
                    words[stream].append(word)
                places.append((stream, words[stream].index(word)))
            relations.append(Relation(places[0], places[1], op, epsilon, shift))
    return relations


def _split(left: Expression, right: Expression) -> tuple[tuple[Expression, Expression], float]:
    """Both sides without the numbers that are added to them, and what the right has more of these.

    So both sides of `b.x BETWEEN a.x - 1 AND a.x + 1` are bounds on one word of a. But numbers that
    nearly cancel out stay: floats are rounded where they are added, `a.x + 1e17 = b.x + 1e17` holds
    for an x of 1 and one of 2, and bounds allow for a rounding only as large as the number.
    """
    (one, own), (other, others) = _shifted(left), _shifted(right)
    shift = sum(others) - sum(own)
    numbers = [*own, *others]
    if len(numbers) > _FEW or sum(map(abs, numbers)) > 2 * abs(shift):
        return (left, right), 0.0
    return (one, other), shift


def _shifted(expression: Expression) -> tuple[Expression, list[float]]:
    """An expression as one without numbers that are added to it, and these."""
    if isinstance(expression, Arithmetic) and expression.op in ("+", "-"):
        left, right = expression.left, expression.right
        if isinstance(right, Constant) and _is_number(right.value):
            core, numbers = _shifted(left)
            value = float(right.value)
            return core, [*numbers, value if expression.op == "+" else -value]
        if isinstance(left, Constant) and _is_number(left.value) and expression.op == "+":
            core, numbers = _shifted(right)
            return core, [*numbers, float(left.value)]
    return expression, []


def _is_number(value: object) -> bool:
    """Whether it can be taken out of a sum; one that is huge may not even be a float."""
    is_plain = isinstance(value, int | float) and not isinstance(value, bool)
    return is_plain and -_HUGE < value < _HUGE  # type: ignore[operator]  # int | float


def _ordered(predicate: Predicate) -> list[tuple[Expression, Expression, str, float]]:
    """What a predicate says of the order of two expressions, each over one stream."""
    if isinstance(predicate, Near):
        # The points are no further apart in any one column.
        return [
            (left, right, "near", inf if predicate.epsilon > _HUGE else float(predicate.epsilon))
            for left, right in predicate.pairs
            if len({column.stream for column in left.columns | right.columns}) == 2
        ]
    if not isinstance(predicate, Comparison):
        return []
    left, right = predicate.left, predicate.right
    if predicate.op == "=":
        return [(left, right, "same", 0.0)]
    if predicate.op in ("<", "<="):
        return [(left, right, "at most", 0.0)]
    if predicate.op in (">", ">="):
        return [(right, left, "at most", 0.0)]
    return []
