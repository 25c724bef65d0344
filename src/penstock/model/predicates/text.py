"""Predicates as text again, to show a user which one it was."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from penstock.model.predicates.predicate import (
    Arithmetic,
    Call,
    Column,
    Comparison,
    Expression,
    Predicate,
)

__all__ = ["column_text", "predicate_text"]


def predicate_text(predicate: Predicate, streams: Sequence[str]) -> str:
    """A predicate over streams of these names, much as it was written."""
    if isinstance(predicate, Call):
        columns = ", ".join(column_text(column, streams) for column in predicate.arguments)
        return f"udf {predicate.name}({columns})"
    if isinstance(predicate, Comparison):
        left, right = (_text(each, streams) for each in (predicate.left, predicate.right))
        op = "IS NOT DISTINCT FROM" if predicate.op == "is" else predicate.op
        return f"{left} {op} {right}"
    differences = [
        f"{_inner(left, streams)} - {_inner(right, streams)}" for left, right in predicate.pairs
    ]
    if len(differences) == 1:
        distance = f"abs({differences[0]})"
    else:
        distance = f"sqrt({' + '.join(f'power({each}, 2)' for each in differences)})"
    return f"{distance} {'<=' if predicate.closed else '<'} {predicate.epsilon}"


def column_text(column: Column, streams: Sequence[str]) -> str:
    """`stream.column`."""
    return f"{streams[column.stream]}.{column.name}"


def _text(expression: Expression, streams: Sequence[str]) -> str:
    if isinstance(expression, Column):
        return column_text(expression, streams)
    if isinstance(expression, Arithmetic):
        left, right = (_inner(each, streams) for each in (expression.left, expression.right))
        return f"{left} {expression.op} {right}"
    return _literal(expression.value)


def _inner(expression: Expression, streams: Sequence[str]) -> str:
    text = _text(expression, streams)
    return f"({text})" if isinstance(expression, Arithmetic) else text


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        return f"'{quoted}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return str(value)
