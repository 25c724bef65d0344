"""Levels of worth: 16 to an octave.

Of two tuples whose worths differ by less than a level, the older is taken for the lesser.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from penstock.kernels.budget.records import LEVELS
from penstock.kernels.jit import kernel

__all__ = ["level_for", "worth_of", "worths_of"]

_LEAST: Final = 2.0**-32  # worths below it are alike
_BASE: Final = (1023 - 32) << 4  # the level of it, as a float's first bits
_SHIFT: Final = 48


@kernel
def level_for(worth: float) -> int:
    """The level of a worth: 0 for none, and higher for more."""
    if not worth >= _LEAST:  # nor where it is no number
        return 0
    level: Any = (np.float64(worth).view(np.int64) >> _SHIFT) - _BASE + 1
    return min(level, LEVELS - 1)


@kernel
def worth_of(level: int) -> float:
    """The worth in the middle of a level."""
    if level == 0:
        return 0.0
    bits = np.int64(((np.int64(level) - 1 + _BASE) << _SHIFT) | (np.int64(1) << (_SHIFT - 1)))
    return bits.view(np.float64)


def worths_of(levels: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The worths in the middle of levels."""
    bits = ((levels - 1 + _BASE) << _SHIFT) | (1 << (_SHIFT - 1))
    return np.where(levels == 0, 0.0, bits.view(np.float64))
