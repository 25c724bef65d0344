"""Values in order as 64-bit words, and what a bound on one word says of another.

Numbers of all types are made floats, and times microseconds as floats; a float's bits, with those
of negative ones turned round, have its order as integers. Text and bytes are their first seven
bytes. Larger values never have smaller words, but different ones may have the same, and
fractions of a float are lost: so words only say what can be, ranges of them are taken a little
wider than they are, and what is found is verified by value.

    word        LEAST .. GREATEST        MISSING, above all: null and NaN, which no range holds
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.kernels.arena import Words
from penstock.kernels.jit import kernel

__all__ = [
    "AT_LEAST", "AT_MOST", "EQUAL", "GREATEST", "LEAST", "MAGNITUDE", "MISSING", "NEAR", "OPS",
    "SAME", "SIGN", "bounds", "read_prefixes",
]  # fmt: skip

MISSING: Final = (1 << 63) - 1
GREATEST: Final = MISSING - 1
LEAST: Final = -(1 << 63)

# What is asked of a word, given another.
EQUAL: Final = 0  # as words that are not in order
SAME: Final = 1
AT_LEAST: Final = 2
AT_MOST: Final = 3
NEAR: Final = 4
OPS: Final = {"=": EQUAL, "same": SAME, "at least": AT_LEAST, "at most": AT_MOST, "near": NEAR}

_SLACK: Final = 16  # words: decimals become floats with an error of a few
_ERROR: Final = 2.0**-49  # of a difference, as a share of what it is made of
SIGN: Final = 63
MAGNITUDE: Final = (1 << 63) - 1


@kernel
def _lowered(word: Any) -> Any:
    return max(word, LEAST + _SLACK) - _SLACK


@kernel
def _raised(word: Any) -> Any:
    return min(word, GREATEST - _SLACK) + _SLACK


@kernel
def _turned(bits: Any) -> Any:
    """The bits of a float as its word, and back."""
    return bits ^ ((bits >> SIGN) & MAGNITUDE)


@kernel
def bounds(word: Any, op: int, epsilon: float, shift: float) -> tuple[Any, Any]:
    """The least and the greatest word that can stand in a relation to `word`, shifted."""
    if op == EQUAL:
        return word, word
    if word == MISSING:
        return GREATEST, LEAST
    least = greatest = word
    if op == NEAR or shift != 0.0:
        value = np.int64(_turned(word)).view(np.float64)
        width = epsilon + (abs(value) + abs(shift) + epsilon) * _ERROR
        if not width < np.inf:
            return LEAST, GREATEST
        low, high = np.float64(value + shift - width), np.float64(value + shift + width)
        least, greatest = _turned(low.view(np.int64)), _turned(high.view(np.int64))
    if op == AT_LEAST:
        return _lowered(least), GREATEST
    if op == AT_MOST:
        return LEAST, _raised(greatest)
    return _lowered(least), _raised(greatest)


@kernel
def read_prefixes(words: Words, offsets: Any, data: Any) -> None:
    """The first seven bytes between each offset and the next, as words."""
    for each in range(len(words)):
        start, end = offsets[each], offsets[each + 1]
        word = np.int64(0)  # an eighth byte would reach its sign
        for byte in range(7):
            word <<= 8
            if start + byte < end:
                word |= np.int64(data[start + byte])
        words[each] = word
