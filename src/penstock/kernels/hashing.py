"""Hashes of words and of bytes.

Bytes are folded in 8 at a time, little-endian, then the remaining 0 to 7 padded with zeros to 8,
then the length, each by `mix`: the finaliser of MurmurHash3 over `hash * golden + word`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.kernels.jit import kernel

__all__ = ["fold_bytes", "fold_lists", "fold_words", "mix"]

_GOLDEN: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_FIRST: Final = np.uint64(0xFF51_AFD7_ED55_8CCD)
_SECOND: Final = np.uint64(0xC4CE_B9FE_1A85_EC53)
_HALF: Final = np.uint64(33)
_EIGHT: Final = np.uint64(8)


@kernel
def mix(seed: Any, word: Any) -> Any:
    """Fold a word into a hash."""
    value = seed * _GOLDEN + word
    value = (value ^ (value >> _HALF)) * _FIRST
    value = (value ^ (value >> _HALF)) * _SECOND
    return value ^ (value >> _HALF)


@kernel
def fold_words(hashes: Any, words: Any) -> None:
    """Fold a word into each hash."""
    for each in range(len(hashes)):
        hashes[each] = mix(hashes[each], words[each])


@kernel
def fold_bytes(hashes: Any, offsets: Any, data: Any) -> None:
    """Fold the bytes between each offset and the next into a hash."""
    for each in range(len(hashes)):
        start, end = offsets[each], offsets[each + 1]
        value = hashes[each]
        while start + 8 <= end:
            word = np.uint64(0)
            for byte in range(8):
                word |= np.uint64(data[start + byte]) << (np.uint64(byte) * _EIGHT)
            value = mix(value, word)
            start += 8
        word = np.uint64(0)
        for byte in range(end - start):
            word |= np.uint64(data[start + byte]) << (np.uint64(byte) * _EIGHT)
        value = mix(value, word)
        hashes[each] = mix(value, np.uint64(end - offsets[each]))


@kernel
def fold_lists(hashes: Any, offsets: Any, of_values: Any) -> None:
    """Fold the hashes of the values between each offset and the next into a hash."""
    for each in range(len(hashes)):
        value = hashes[each]
        for place in range(offsets[each], offsets[each + 1]):
            value = mix(value, of_values[place])
        hashes[each] = mix(value, np.uint64(offsets[each + 1] - offsets[each]))
