"""A promise as the engine takes it: keys that a stream closes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from penstock.kernels.arena import Words

__all__ = ["Closing"]


class Closing(NamedTuple):
    """Keys that a stream closes, from times `at` on. columns: of the key, in its order. is_single:
    whether each has one tuple in the stream, which has come, with this time."""

    stream: int
    words: Words
    columns: Sequence[pa.Array]
    at: Words
    is_single: bool = False

    def taken(self, rows: Words) -> Closing:
        """Some of them."""
        columns = [each.take(pa.array(rows)) for each in self.columns]
        return Closing(self.stream, self.words[rows], columns, self.at[rows])
