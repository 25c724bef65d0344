"""Rows in as many pieces as one Arrow array of each type can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import pyarrow as pa

from penstock.kernels.arena import Words
from penstock.windows.payload.column import TooLong

__all__ = ["in_pieces"]

Made = TypeVar("Made")


def in_pieces(rows: Words, make: Callable[[Words], Made]) -> Iterator[Made]:
    """Make something of the rows; of each half of them, if all would be too long."""
    try:
        made = make(rows)
    except (TooLong, pa.ArrowInvalid):
        if len(rows) == 1:
            raise
        for half in np.array_split(rows, 2):
            yield from in_pieces(half, make)
        return
    yield made
