"""Whole numbers of a column, calculated exactly, in 64 bits wherever they fit.

A calculation runs over all rows in 64 bits first. Bounds go with the values: when the bounds of a
result fit in 64 bits, nothing is looked at row by row. When they do not, the rows whose own
result might not fit are *doubtful*, and the caller calculates these again with integers of any
size. Both ways give the exact value, so a row never shows which rows stand beside it.

    x = [3, 2**40]    bounds 3 .. 2**40
    x * x             bounds 9 .. 2**80: the second row is doubtful, the first is 9
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.kernels.arena import Flags

__all__ = ["Calculation", "Whole"]

_LEAST: Final = -(1 << 63)
_GREATEST: Final = (1 << 63) - 1
_SURE: Final = 2.0**62  # floats up to here stand for integers that fit, whatever was rounded
_CLAMP: Final = (1 << 62) + (1 << 53)

Array = npt.NDArray[Any]


class Whole(NamedTuple):
    """values: 64-bit integers, or Python's if a calculation is wide; without a dimension if
    all rows have the same. low, high: bounds of the values, in 64 bits."""

    values: Array
    low: int
    high: int

    @property
    def fits(self) -> bool:
        """Whether all values are in 64 bits."""
        return self.low >= _LEAST and self.high <= _GREATEST

    @property
    def farthest(self) -> int:
        """How far from zero its values are at most."""
        return max(abs(self.low), abs(self.high))


class Calculation:
    """Operations on whole numbers of some rows. wide: with integers of any size.

    doubtful: the rows whose results so far may be wrong, because they did not fit; None: no row.
    """

    def __init__(self, rows: int, *, wide: bool = False) -> None:
        self.rows = rows
        self.wide = wide
        self.doubtful: Flags | None = None

    def doubt(self, rows: Any) -> None:
        """Have these rows, or all or none of them, calculated again."""
        if np.any(rows):
            asked = np.broadcast_to(rows, self.rows)
            self.doubtful = asked.copy() if self.doubtful is None else self.doubtful | asked

    def constant(self, value: int) -> Whole:
        """One number for all rows."""
        if self.wide:
            return Whole(np.array(value, object), 0, 0)
        small = value if _LEAST <= value <= _GREATEST else 0  # never read: see `_made`
        return Whole(np.array(small, np.int64), value, value)

    def column(self, values: Array) -> Whole:
        """64-bit values, or Python's if the calculation is wide."""
        if self.wide or not values.size:
            return Whole(values, 0, 0)
        return Whole(values, int(np.minimum.reduce(values)), int(np.maximum.reduce(values)))

    def plus(self, left: Whole, right: Whole) -> Whole:
        """Sums."""
        low, high = left.low + right.low, left.high + right.high
        return self._made(np.add, left, right, low, high, np.add)

    def minus(self, left: Whole, right: Whole) -> Whole:
        """Differences."""
        low, high = left.low - right.high, left.high - right.low
        return self._made(np.subtract, left, right, low, high, np.add)

    def times(self, left: Whole, right: Whole) -> Whole:
        """Products."""
        corners = [one * other for one in left[1:] for other in right[1:]]
        return self._made(np.multiply, left, right, min(corners), max(corners), np.multiply)

    def shifted(self, whole: Whole, digits: int) -> Whole:
        """With N zeros behind them. digits: N."""
        return self.times(whole, self.constant(10**digits)) if digits else whole

    def quotient(self, left: Whole, right: Whole) -> Whole:
        """Quotients without their fraction; no divisor is zero."""
        if self.wide:
            return self._made(_QUOTIENT, left, right, 0, 0, np.add)
        most = left.farthest
        both_positive = left.low >= 0 and right.low >= 0
        divide = np.floor_divide if both_positive else _truncated
        low = 0 if both_positive else -most
        return self._made(divide, left, right, low, most, lambda one, other: one)

    def remainder(self, left: Whole, right: Whole) -> Whole:
        """Remainders with the sign of the dividend; no divisor is zero."""
        if self.wide:
            return self._made(_REMAINDER, left, right, 0, 0, np.add)
        most = min(left.farthest, right.farthest)
        return self._made(np.fmod, left, right, -most, most, np.minimum)

    def without_sign(self, whole: Whole) -> Whole:
        """Distances from zero."""
        most = whole.farthest
        return self._made(lambda one, _: np.abs(one), whole, whole, 0, most, lambda one, _: one)

    def compared(self, compare: Callable[..., Any], left: Whole, right: Whole) -> Any:
        """What a comparison of numpy's says of each row."""
        if not self.wide and not (left.fits and right.fits):
            if left.high < right.low or left.low > right.high:  # then any two of them show it
                return compare(np.int8(left.low > right.low), np.int8(left.low < right.low))
            self.doubt(True)
        return np.asarray(compare(left.values, right.values), np.bool_)

    def _made(
        self,
        operation: Callable[..., Any],
        left: Whole,
        right: Whole,
        low: int,
        high: int,
        size: Callable[..., Any],
    ) -> Whole:
        """low, high: bounds of the result. size: how far it is from zero at most, by how far
        what it is made of is."""
        if self.wide:
            return Whole(np.asarray(operation(left.values, right.values), object), 0, 0)
        if not (left.fits and right.fits):
            self.doubt(True)
            low, high = -_CLAMP, _CLAMP
        elif low < _LEAST or high > _GREATEST:
            self.doubt(~(size(_size(left.values), _size(right.values)) <= _SURE))
            low, high = -_CLAMP, _CLAMP
        return Whole(np.asarray(operation(left.values, right.values)), low, high)


def _size(values: Array) -> Array:
    return np.abs(values.astype(np.float64))


def _truncated(left: Array, right: Array) -> Array:
    """Quotients of 64 bits, rounded towards zero: numpy rounds down."""
    down = np.floor_divide(left, right)
    return down + (((left < 0) != (right < 0)) & (down * right != left))


def _quotient(left: int, right: int) -> int:
    return -(-left // right) if (left < 0) != (right < 0) else left // right


def _remainder(left: int, right: int) -> int:
    return left - right * _quotient(left, right)


_QUOTIENT: Final = np.frompyfunc(_quotient, 2, 1)
_REMAINDER: Final = np.frompyfunc(_remainder, 2, 1)
