"""Choosing one of two integers without a branch.

Where a search goes next is a toss-up to the processor, and a wrong guess costs it more than
the whole step. Written as a condition, the compiler takes the choice for a foreseeable one.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.core import types
from numba.extending import intrinsic

__all__ = ["choose"]


def _choose(_typing: Any, condition: Any, this: Any, that: Any) -> Any:
    """choose(condition, this, that): `this` if the condition holds, else `that`."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        chosen = builder.select(*arguments)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    return types.int64(types.boolean, types.int64, types.int64), generate


def _plainly(condition: bool, this: int, that: int) -> int:
    return this if condition else that


choose = _plainly if numba.config.DISABLE_JIT else intrinsic(_choose)
