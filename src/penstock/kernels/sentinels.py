"""Numbers that stand for something else, in one place.

A row of a combination has the sequence number of a tuple of each stream. A ghost is written as
~sequence, which is negative; an arrival that should not have looked for partners has SKIPPED added.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BEGINNING", "END_OF_TIME", "NO_LIMIT", "SKIPPED"]

# Beyond every event time and every event time plus a window, and far from overflow.
BEGINNING: Final = -(1 << 62)
END_OF_TIME: Final = 1 << 62

NO_LIMIT: Final = 1 << 62  # in the place of a number of rows, or of a length
SKIPPED: Final = 1 << 61
