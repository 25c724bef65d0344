"""Which way a type is kept.

FixedWidth    numbers, times, decimals, booleans: a flat buffer
ByteStrings   text and binary: [start, length] per position, the bytes in an arena
Segments      nested and everything else: Arrow arrays, few and large
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from penstock.windows.allocator import Allocator
from penstock.windows.payload.arrow_runs import ArrowRuns
from penstock.windows.payload.byte_strings import ByteStrings
from penstock.windows.payload.column import PayloadColumn
from penstock.windows.payload.fixed_width import FixedWidth

__all__ = ["column_for"]


def column_for(data_type: pa.DataType, mask: int, memory: Allocator) -> PayloadColumn:
    """The way to keep a type."""
    if pt.is_boolean(data_type) or _fixed_width(data_type):
        return FixedWidth(data_type, mask, memory)
    if any(test(data_type) for test in _BYTES):
        return ByteStrings(data_type, mask, memory)
    return ArrowRuns(data_type, memory)


_BYTES: Final = (pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary)


def _fixed_width(data_type: pa.DataType) -> bool:
    if not (pt.is_primitive(data_type) or pt.is_decimal(data_type)):
        return pt.is_fixed_size_binary(data_type) and data_type.byte_width > 0
    return bool(data_type.bit_width % 8 == 0)
