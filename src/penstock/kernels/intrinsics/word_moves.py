"""Moving words within an array, to a place that may overlap the one they come from.

A loop would go word by word, since the compiler cannot know that the places do not overlap.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

__all__ = ["move"]

_WORD = 8


def _move(_typing: Any, words: Any, to: Any, start: Any, count: Any) -> Any:
    """move(words, to, start, count): words is an array of 8-byte integers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, size, flag = ir.IntType(8).as_pointer(), ir.IntType(64), ir.IntType(1)
        memmove = builder.module.declare_intrinsic(
            "llvm.memmove",
            [byte, byte, size],
            ir.FunctionType(ir.VoidType(), [byte, byte, size, flag]),
        )
        target, source = (
            builder.bitcast(builder.gep(data, [arguments[place]]), byte) for place in (1, 2)
        )
        length = builder.mul(arguments[3], ir.Constant(size, _WORD))
        builder.call(memmove, [target, source, length, ir.Constant(flag, 0)])
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64, types.int64), generate


def _plainly(words: Any, to: int, start: int, count: int) -> None:
    words[to : to + count] = words[start : start + count].copy()


move = _plainly if numba.config.DISABLE_JIT else intrinsic(_move)
