"""Numbers that change as time goes on: each holds from its time to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.errors import InputError
from penstock.kernels.arena import Words
from penstock.model.window import FOREVER

__all__ = ["StepFunction", "parse_steps", "parse_time"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class StepFunction(NamedTuple):
    """begins: times in microseconds, in order. values: what holds from each of them on; the first
    holds before it too."""

    begins: Words
    values: Words

    def lowest(self, times: Words) -> Words:
        """The least that holds from each of these times to the next, without that one itself."""
        least: Words = self.values[np.maximum(np.searchsorted(self.begins, times, "right") - 1, 0)]
        behind = np.searchsorted(times, self.begins, "right") - 1
        np.minimum.at(least, behind[behind >= 0], self.values[behind >= 0])
        return least


def parse_steps(given: Sequence[Any], what: str, value: Callable[[Any], int]) -> StepFunction:
    """From pairs of a time and what holds from it on."""
    advice = f"{what} must be pairs of a time and what holds from it on, in order of time"
    if not given or not all(
        isinstance(each, Sequence) and not isinstance(each, str) and len(each) == 2
        for each in given
    ):
        raise InputError(f"{advice}, got {given!r}")
    begins = [parse_time(time, what) for time, _ in given]
    if any(later <= earlier for earlier, later in pairwise(begins)):
        raise InputError(f"{advice}, got times that are not in order: {given!r}; sort them")
    values = [value(each) for _, each in given]
    return StepFunction(np.array(begins, np.int64), np.array(values, np.int64))


def parse_time(given: Any, what: str) -> int:
    """Microseconds since 1970, from these, a datetime or ISO text."""
    advice = f"{what} needs times as whole microseconds, datetimes or text like '2026-01-01T12:00Z'"
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            raise InputError(f"{advice}, got {given!r}") from None
    if isinstance(given, datetime):
        zoned = given if given.tzinfo is not None else given.replace(tzinfo=UTC)
        return (zoned - _EPOCH) // timedelta(microseconds=1)
    if not isinstance(given, int | np.integer) or isinstance(given, bool):
        raise InputError(f"{advice}, got {given!r}")
    if abs(int(given)) > FOREVER:
        raise InputError(f"{advice}, got {given!r}, which is after all times; check its unit")
    return int(given)
