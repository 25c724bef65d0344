"""Units of time: those of Arrow in microseconds, and which integers look as if they were others.

Integers as times are microseconds since 1970.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PER_UNIT_US", "likely_unit"]

PER_UNIT_US: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}

# Of the years 2001 to 2100, in seconds. As microseconds they are the first hour of 1970.
_FIRST_SECOND: Final = 1_000_000_000
_LAST_SECOND: Final = 4_100_000_000
_PER_SECOND: Final = {"seconds": 1, "milliseconds": 1_000}


def likely_unit(lowest: int, highest: int) -> str | None:
    """The unit that integers between these are more likely to be in; None if microseconds."""
    for unit, per_second in _PER_SECOND.items():
        if _FIRST_SECOND * per_second <= lowest <= highest <= _LAST_SECOND * per_second:
            return unit
    return None
