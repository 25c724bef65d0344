"""Payload columns of mixed types, and string keys: random bits in, Arrow arrays out.

`PAYLOADS` is the visible list: payload column c of a stream has the type and the maker of
row c (modulo its length). A maker uses only the bits of its own rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.stats.counter import mix, unit

__all__ = ["KEY_CHARACTERS", "PAYLOADS", "key_strings"]

Bits = npt.NDArray[np.uint64]
Maker = Callable[[Bits], pa.Array]

KEY_CHARACTERS: Final = 20
_HEX: Final = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_LETTERS: Final = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz      ", dtype=np.uint8)
_CODES: Final = ("AT", "BR", "CA", "DE", "EG", "FR", "IN", "JP", "KE", "MX", "NO", "US")
_DAYS: Final = 20_000  # dates from 1970 into 2024
_YEAR_US: Final = 31_536_000_000_000


def key_strings(keys: npt.NDArray[np.int64]) -> pa.Array:
    """Each key as 20 characters: 16 hexadecimal digits that differ for different keys
    (a one-to-one scramble, so that keys share no prefix), and 4 more.
    """
    scrambled = mix(keys.astype(np.uint64) + np.uint64(1))
    more = mix(scrambled + np.uint64(1))
    characters = np.empty((len(keys), KEY_CHARACTERS), dtype=np.uint8)
    for place in range(16):
        characters[:, place] = _HEX[(scrambled >> np.uint64(4 * place)) & np.uint64(15)]
    for place in range(KEY_CHARACTERS - 16):
        characters[:, 16 + place] = _HEX[(more >> np.uint64(4 * place)) & np.uint64(15)]
    return _strings(np.full(len(keys), KEY_CHARACTERS, dtype=np.int64), characters.reshape(-1))


def _integers(bits: Bits) -> pa.Array:
    return pa.array((bits >> np.uint64(34)).astype(np.int64))


def _doubles(bits: Bits) -> pa.Array:
    return pa.array(np.round(unit(bits) * 1e6) / 100.0)


def _small_integers(bits: Bits) -> pa.Array:
    return pa.array((bits >> np.uint64(44)).astype(np.int32))


def _booleans(bits: Bits) -> pa.Array:
    return pa.array((bits >> np.uint64(63)).astype(np.bool_))


def _dates(bits: Bits) -> pa.Array:
    return pa.array((unit(bits) * _DAYS).astype(np.int32)).view(pa.date32())


def _timestamps(bits: Bits) -> pa.Array:
    return pa.array((unit(bits) * _YEAR_US).astype(np.int64)).view(pa.timestamp("us"))


def _texts(bits: Bits) -> pa.Array:
    """Words of 4 to 24 characters."""
    lengths = 4 + (bits % np.uint64(21)).astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    within = np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(starts, lengths)
    letters = mix(np.repeat(bits, lengths) + within.astype(np.uint64)) & np.uint64(31)
    return _strings(lengths, _LETTERS[letters])


def _nullable_doubles(bits: Bits) -> pa.Array:
    """One in eight is null."""
    return pa.array(unit(bits) - 0.5, mask=(bits & np.uint64(7)) == 0)


def _codes(bits: Bits) -> pa.Array:
    picks = (unit(bits) * len(_CODES)).astype(np.int8)
    letters = np.frombuffer("".join(_CODES).encode(), dtype=np.uint8).reshape(-1, 2)
    return _strings(np.full(len(bits), 2, dtype=np.int64), letters[picks].reshape(-1))


def _floats(bits: Bits) -> pa.Array:
    return pa.array(unit(bits).astype(np.float32))


PAYLOADS: Final[tuple[tuple[pa.DataType, Maker], ...]] = (
    (pa.int64(), _integers),
    (pa.float64(), _doubles),
    (pa.int32(), _small_integers),
    (pa.bool_(), _booleans),
    (pa.date32(), _dates),
    (pa.timestamp("us"), _timestamps),
    (pa.string(), _texts),
    (pa.float64(), _nullable_doubles),
    (pa.string(), _codes),
    (pa.float32(), _floats),
)


def _strings(lengths: npt.NDArray[np.int64], characters: npt.NDArray[np.uint8]) -> pa.Array:
    if len(characters) > np.iinfo(np.int32).max:
        raise ValueError(
            f"a column of {len(characters):,} characters does not fit one Arrow array of strings; "
            "ask for fewer rows at a time"
        )
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.StringArray.from_buffers(
        len(lengths), pa.py_buffer(offsets), pa.py_buffer(characters)
    )
