"""Byte strings, measured and put one behind the other. A span: where one starts, its length."""

from __future__ import annotations

from typing import Any

from penstock.kernels.arena import Words
from penstock.kernels.intrinsics.block_copy import BLOCK, copy_block
from penstock.kernels.jit import kernel

__all__ = ["gather", "measure"]


@kernel
def measure(spans: Words, positions: Words, offsets: Any) -> int:
    """Where the values at positions begin when they stand one behind the other; their length."""
    total = 0
    offsets[0] = 0
    for each in range(len(positions)):
        total += spans[positions[each], 1]
        offsets[each + 1] = total
    return total


@kernel
def gather(
    spans: Words, source: Any, base: int, positions: Words, offsets: Any, target: Any
) -> None:
    """Put the values at positions one behind the other. The last block may write past its end."""
    for each in range(len(positions)):
        start = spans[positions[each], 0] - base
        to = offsets[each]
        for done in range(0, spans[positions[each], 1], BLOCK):
            copy_block(target, to + done, source, start + done)
