"""Random numbers by position: the number at an offset depends on nothing before it.

A lane is one endless sequence of 64-bit numbers, named by a seed and a tuple of integers.
Number i of a lane is the i-th output of SplitMix64 started at the lane's base; that
generator adds a constant to its state and mixes it, so its i-th output needs no loop.
Hence a row is a pure function of (seed, offset), whatever the batch it comes in.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["draw", "mix", "unit"]

_GOLDEN: Final = 0x9E3779B97F4A7C15
_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF


def mix(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's finaliser: scrambles 64 bits, one to one. Works in place."""
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return bits


def draw(seed: int, lane: tuple[int, ...], start: int, stop: int) -> npt.NDArray[np.uint64]:
    """Numbers `start` to `stop` of a lane, each of 64 random bits."""
    states = np.arange(start + 1, stop + 1, dtype=np.uint64)
    states *= np.uint64(_GOLDEN)
    states += np.uint64(_base(seed, lane))
    return mix(states)


def unit(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """The same numbers as fractions in [0, 1), of 53 bits each."""
    return (bits >> np.uint64(11)).astype(np.float64) * np.float64(2.0**-53)


def _base(seed: int, lane: tuple[int, ...]) -> int:
    base = np.array([seed & _MASK], dtype=np.uint64)
    for part in lane:
        # Mixing between the parts keeps lane (1, 2) apart from (2, 1) and (3,).
        base = mix(base + np.uint64((part * _GOLDEN + 1) & _MASK))
    return int(base[0])
