"""Student's distribution, for a whole number of degrees of freedom.

With t = sqrt(n) * tan(a), the chance of being within -t and t is a finite sum of powers of cos(a)
(Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4).
"""

from __future__ import annotations

from math import cos, pi, sin, sqrt, tan

__all__ = ["student_quantile"]


def student_quantile(degrees: int, chance: float) -> float:
    """The t for which a value lies within -t and t with this chance.

    degrees: of freedom, 1 or more. chance: above 0 and below 1.
    """
    low, high = 0.0, pi / 2
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _within(degrees, middle) < chance else (low, middle)
    return sqrt(degrees) * tan(low)


def _within(degrees: int, angle: float) -> float:
    """The chance, by the angle a."""
    odd = degrees % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for power in range(1 + odd, degrees, 2):
        total += term
        term *= power / (power + 1) * cos(angle) ** 2
    if odd:
        return 2 / pi * (angle + sin(angle) * total)
    return sin(angle) * total
