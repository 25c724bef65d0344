"""Lengths of time, written by people and kept as whole microseconds."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Final

from penstock.errors import QueryError

__all__ = ["MAX_DURATION_US", "Duration", "duration_us", "format_us", "signed_us"]

Duration = str | timedelta

# Event times end with the year 9999, so no useful length is longer than that; the cap
# keeps ts + length far inside 64 bits, and kernels need no overflow checks.
MAX_DURATION_US: Final = 10_000 * 366 * 86_400 * 1_000_000

_UNITS_US: Final = {
    **dict.fromkeys(("us", "µs", "microsecond", "microseconds"), 1),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000_000),
    **dict.fromkeys(("w", "week", "weeks"), 604_800_000_000),
}
_PART: Final = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*([A-Za-zµ]+)\s*")
_HINT: Final = (
    "write a number and a unit from microseconds to weeks, "
    "such as '10 minutes' or '1 hour 30 minutes'"
)


def duration_us(value: Duration, what: str) -> int:
    """Whole microseconds of `value`; `what` names it in errors."""
    if isinstance(value, timedelta):
        # Not total_seconds(): a float would round lengths of many years. pandas' have more.
        nanoseconds = getattr(value, "nanoseconds", 0)
        exact = value // timedelta(microseconds=1) + Fraction(nanoseconds, 1000)
    elif isinstance(value, str):
        exact = _parse(value, what)
    else:
        raise QueryError(f"{what} must be text or a timedelta, got {value!r}; {_HINT}")
    if exact < 0:
        raise QueryError(f"{what} cannot be negative, got {value!r}; give zero or more")
    if exact.denominator != 1:
        raise QueryError(f"{what} must be a whole number of microseconds, got {value!r}; round it")
    if exact > MAX_DURATION_US:
        raise QueryError(f"{what} must be at most 10,000 years, got {value!r}; shorten it")
    return int(exact)


def signed_us(value: Duration, what: str) -> int:
    """The same, but it may be negative: `-5 seconds`."""
    if isinstance(value, str) and value.lstrip().startswith("-"):
        return -duration_us(value.lstrip()[1:], what)
    if isinstance(value, timedelta) and value < timedelta(0):
        return -duration_us(-value, what)
    return duration_us(value, what)


def _parse(text: str, what: str) -> Fraction:
    total, position = Fraction(0), 0
    while part := _PART.match(text, position):
        number, unit = part.groups()
        # A single letter counts as it is written: M is months to some.
        unit_us = _UNITS_US.get(unit if len(unit) == 1 else unit.lower())
        if unit_us is None:
            raise QueryError(f"{what} has an unknown unit {unit!r} in {text!r}; {_HINT}")
        if number.startswith("-"):
            raise QueryError(f"{what} cannot be negative, got {text!r}; give zero or more")
        total += Fraction(number) * unit_us
        position = part.end()
    if position == 0 or position != len(text):
        raise QueryError(f"cannot read {what} from {text!r}; {_HINT}")
    return total


def format_us(length_us: int) -> str:
    """The shortest exact text for a length, in its largest whole unit."""
    for name in ("week", "day", "hour", "minute", "second", "millisecond", "microsecond"):
        count, rest = divmod(length_us, _UNITS_US[name])
        if rest == 0 and (count or name == "second"):
            return f"{count} {name}{'' if count == 1 else 's'}"
    raise AssertionError("every whole number is a number of microseconds")
