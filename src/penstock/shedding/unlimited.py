"""What a join without limits has in the place of a shedder: nothing goes, and nothing is lost.

So the driver and the metrics call the same in every join. Whoever has to know whether there are
limits asks for `limits`, which are None here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from penstock.kernels.arena import Words
from penstock.model.binding import Binding

__all__ = ["MOST_CHUNK_ROWS", "Unlimited"]

MOST_CHUNK_ROWS: Final = 1 << 16


class _NoGhosts:
    """Nothing is shed, so that nothing is to be remembered."""

    held = 0

    def begin(self) -> None:
        """Before a run of the loop."""

    def note(self) -> None:
        """After it."""

    def make(self, watermark: int) -> None:
        """Room for ghosts, which the loop asks for under limits only."""
        raise AssertionError(f"room for ghosts at {watermark}, in a join without limits")


class _NoLosses:
    """Counters that stay at zero."""

    def __init__(self, streams: int) -> None:
        self.shed: Words = np.zeros(streams, np.int64)
        self.unprobed: Words = np.zeros(streams, np.int64)


class Unlimited:
    """Has what the driver and the metrics ask a `Shedder` for."""

    limits: None = None
    late_bytes: None = None
    bytes_beside = 0

    def __init__(self, streams: int) -> None:
        self.ghosts = _NoGhosts()
        self.losses = _NoLosses(streams)

    def check(self, binding: Binding) -> None:
        """All columns fit."""

    def bind(self, binding: Binding) -> None:
        """Nothing is learned of streams."""

    def chunk_rows(self) -> int:
        """How many rows of a stream are worked on at once."""
        return MOST_CHUNK_ROWS

    def write_values(self, stream: int, values: npt.NDArray[np.float64]) -> None:
        """Nothing is chosen by what it is worth."""

    def allocate(self, times: Mapping[int, Words]) -> None:
        """Everything is dealt with."""

    def make_room(self, rows: Mapping[int, int], watermark: int) -> None:
        """There is room."""

    def keep_bytes(self, watermark: int) -> None:
        """There is no limit."""
