"""A row of numbers as a row of small bars."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

__all__ = ["sparkline"]

_LEVELS: Final = "▁▂▃▄▅▆▇█"


def sparkline(values: Collection[float]) -> str:
    """One character a value, the highest of them full."""
    highest = max(values, default=0.0)
    return "".join(
        _LEVELS[min(int(value / highest * len(_LEVELS)), len(_LEVELS) - 1)] if highest else " "
        for value in values
    )
