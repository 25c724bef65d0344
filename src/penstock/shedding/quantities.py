"""What the allocation functions are given, checked: numbers per stream, totals, floors and caps.

Nothing here computes an answer. What passes is finite, not negative, and one number per stream, so
the code behind it needs no second look. Every refusal is a `PlanError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from numbers import Real

from penstock.errors import PlanError

__all__ = ["Numbers", "checked_floors", "per_stream", "positive", "share"]

Numbers = Iterable[float]

# A sum of decimal fractions may miss the total it was taken from by its last bits.
_ROUNDING = 1e-12


def positive(name: str, value: float) -> float:
    """A total to share out."""
    if not _is_finite(value) or value <= 0:
        raise PlanError(f"{name} must be finite and above 0, got {value!r}; give how much there is")
    return float(value)


def share(name: str, value: float) -> float:
    """A part of one."""
    if not _is_finite(value) or not 0 <= value <= 1:
        raise PlanError(f"{name} is a share, got {value!r}; give a number from 0 to 1")
    return float(value)


def per_stream(name: str, values: Numbers, streams: int | None = None) -> tuple[float, ...]:
    """One number per stream, for as many streams as given, or for two or more."""
    try:
        numbers = tuple(values)
    except TypeError:
        raise PlanError(
            f"{name} must be one number per stream, got {values!r}; "
            f"give a sequence in the order of the streams"
        ) from None
    if streams is None and len(numbers) < 2:
        raise PlanError(
            f"{name} must be of two or more streams, got {len(numbers)}; give one number per stream"
        )
    if streams is not None and len(numbers) != streams:
        raise PlanError(
            f"{name} must be one number per stream, got {len(numbers)} for {streams} streams; "
            f"give {streams}"
        )
    for stream, value in enumerate(numbers):
        if not _is_finite(value) or value < 0:
            raise PlanError(
                f"{name} must be finite and not negative, got {value!r} for stream {stream}; "
                f"give 0 for a stream that has none"
            )
    return tuple(float(value) for value in numbers)


def checked_floors(
    floors: Numbers | None,
    caps: tuple[float, ...],
    total: float,
    *,
    cap_name: str,
    total_name: str,
) -> tuple[float, ...]:
    """The floors, if each is within its cap and all of them are within the total."""
    if floors is None:
        return (0.0,) * len(caps)
    least = per_stream("floors", floors, len(caps))
    if sum(least) > total * (1 + _ROUNDING):
        raise PlanError(
            f"the floors together are above the {total_name}: got {sum(least)!r} and {total!r}; "
            f"lower the floors or raise the {total_name}"
        )
    for stream, (floor, cap) in enumerate(zip(least, caps, strict=True)):
        if floor > cap:
            raise PlanError(
                f"the floor of stream {stream} is above its {cap_name}: got {floor!r} and {cap!r}; "
                f"lower the floor to {cap!r} or less"
            )
    return least


def _is_finite(value: object) -> bool:
    return type(value) is not bool and isinstance(value, Real) and isfinite(value)
