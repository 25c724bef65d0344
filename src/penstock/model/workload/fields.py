"""What a workload is given, checked and made plain: one form for each of its fields.

A number stands for all streams; a mapping has one for each. Everything that is refused is refused
here, with a PlanError, so that who reads a workload need not ask again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any

from penstock.errors import PlanError, QueryError
from penstock.model.window import BoundWindow, Window, parse_window

__all__ = [
    "Allowed",
    "ByStream",
    "Distinct",
    "by_pair",
    "by_stream",
    "distinct_values",
    "windows_of",
]

ByStream = float | dict[str, float]
Distinct = float | dict[str, float | dict[tuple[str, ...], float]]


@dataclass(frozen=True)
class Allowed:
    """Numbers that a field takes. what: one of them, in errors."""

    what: str
    least: float
    most: float = inf

    def number(self, value: Any, whose: str = "") -> float:
        """One of these as a float."""
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        # NaN fails both comparisons.
        if not is_number or not self.least <= value <= self.most or value == inf:
            ends = f"{self.least:g} or more" if self.most == inf else f"{self.least:g} to 1"
            raise PlanError(f"{self.what}{whose} must be a number, {ends}, got {value!r}")
        return float(value)


def by_stream(value: Any, of: Allowed) -> ByStream:
    """A number for all streams, or one for each."""
    if not isinstance(value, Mapping):
        return of.number(value)
    return {
        _name(name, of.what): of.number(each, f" of stream {name!r}")
        for name, each in value.items()
    }


def distinct_values(value: Any, of: Allowed) -> Distinct:
    """The same; a stream may also have a mapping, with a number for each of its columns."""
    if not isinstance(value, Mapping):
        return of.number(value)
    return {
        _name(name, of.what): _by_columns(each, of, name)
        if isinstance(each, Mapping)
        else of.number(each, f" of stream {name!r}")
        for name, each in value.items()
    }


def _by_columns(value: Mapping[Any, Any], of: Allowed, name: str) -> dict[tuple[str, ...], float]:
    found = {}
    for columns, each in value.items():
        key = (columns,) if isinstance(columns, str) else columns
        if not isinstance(key, tuple) or not key or not all(isinstance(c, str) for c in key):
            raise PlanError(
                f"{of.what} of stream {name!r} is told by column, or by a tuple of several, "
                f"got {columns!r}"
            )
        whose = f" of {_list(key)} of stream {name!r}"
        if tuple(sorted(key)) in found:
            raise PlanError(f"{of.what}{whose} is given twice; give it once")
        found[tuple(sorted(key))] = of.number(each, whose)
    if not found:
        raise PlanError(f"{of.what} of stream {name!r} names no column; name one, or leave it out")
    return found


def by_pair(value: Any, of: Allowed) -> float | dict[tuple[str, str], float]:
    """A number for all pairs of streams, or by the pair, whichever comes first in it."""
    if not isinstance(value, Mapping):
        return of.number(value)
    found: dict[tuple[str, str], float] = {}
    for pair, each in value.items():
        names = tuple(pair) if isinstance(pair, Sequence) and not isinstance(pair, str) else ()
        if len(names) != 2 or names[0] == names[1] or not all(isinstance(n, str) for n in names):
            raise PlanError(f"{of.what} is told by two streams, as ('a', 'b'), got {pair!r}")
        first, second = sorted(names)
        if (first, second) in found:
            raise PlanError(f"{of.what} of {first!r} and {second!r} is given twice; give it once")
        found[first, second] = of.number(each, f" of {first!r} and {second!r}")
    return found


def windows_of(value: Any) -> Window | dict[str, Window]:
    """A window for all streams, or by stream, to be put in the place of the query's own."""
    if not isinstance(value, Mapping):
        return _window(value, "windows")
    return {
        _name(name, "a window"): _window(each, f"the window of stream {name!r}")
        for name, each in value.items()
    }


def _window(value: Any, what: str) -> Window:
    try:
        window = parse_window(value, what)
    except QueryError as error:
        raise PlanError(str(error)) from None
    if isinstance(window, BoundWindow):
        raise PlanError(f"{what} cannot be one side of between=; give the length it stands for")
    return window


def _name(name: Any, what: str) -> str:
    if not isinstance(name, str) or not name:
        raise PlanError(f"{what} is told by the name of a stream, got {name!r}")
    return name


def _list(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
