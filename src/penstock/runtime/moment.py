"""A moment that a user names, in microseconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from penstock.engine.intake import MAX_TS, MIN_TS
from penstock.errors import InputError

__all__ = ["microseconds"]


def microseconds(ts: Any) -> int:
    """A datetime, or whole microseconds."""
    if isinstance(ts, datetime):
        aware = ts if ts.tzinfo is not None else ts.replace(tzinfo=UTC)
        ts = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if not isinstance(ts, int | np.integer) or isinstance(ts, bool):
        raise InputError(f"a moment is a datetime or whole microseconds since 1970, got {ts!r}")
    if not MIN_TS <= ts <= MAX_TS + 1:
        raise InputError(
            f"a moment must lie in the years 1 to 9999, got {ts:,} microseconds; check its unit"
        )
    return int(ts)
