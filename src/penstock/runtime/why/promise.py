"""The promise by which a tuple could go before its time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.runtime.metrics import time_text

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["promise_against"]


def promise_against(join: Join, stream: int, key: Sequence[pa.Array]) -> str:
    """Which streams have promised to bring no more tuples of a key, so that a tuple of another one
    can meet nothing that comes; empty if it can."""
    promises = join.driver.promises
    if promises is None:
        return ""
    closed = promises.against(stream, key, join.clock.watermark)
    names = join.query.names
    return " and ".join(
        f"{names[other]} has promised no more tuples of its key from {time_text(at)} on"
        for other, at in closed.items()
    )
