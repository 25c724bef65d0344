"""Copying short byte strings, which a loop over bytes is slow at.

`copy_block` copies BLOCK bytes, always. Copying a string as whole blocks writes past its end:
harmless when strings are copied one behind the other, since the next one is written over
what was too much, and when both sides have BLOCK bytes to spare at the end. Gathering strings
of 20 characters so is four times faster.
"""

from __future__ import annotations

from typing import Any, Final

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

__all__ = ["BLOCK", "copy_block"]

BLOCK: Final = 32


def _copy_block(_typing: Any, target: Any, to: Any, source: Any, start: Any) -> Any:
    """copy_block(target, to, source, start): both are arrays of bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = ir.VectorType(ir.IntType(8), BLOCK).as_pointer()

        def address(array: int) -> Any:
            view = arrayobj.make_array(signature.args[array])(context, builder, arguments[array])
            return builder.bitcast(builder.gep(view.data, [arguments[array + 1]]), block)

        moved = builder.load(address(2), align=1)
        builder.store(moved, address(0), align=1)
        return context.get_dummy_value()

    return types.void(target, to, source, start), generate


def _plainly(target: Any, to: int, source: Any, start: int) -> None:
    target[to : to + BLOCK] = source[start : start + BLOCK]


copy_block = _plainly if numba.config.DISABLE_JIT else intrinsic(_copy_block)
