"""The join that is measured: two streams of a workload, on equal keys."""

from __future__ import annotations

import penstock as ps

__all__ = ["join_within"]


def join_within(window: str) -> ps.WindowJoin:
    """The streams left and right, both with this window and no lateness."""
    return ps.WindowJoin(
        [ps.Stream("left", time="ts"), ps.Stream("right", time="ts")], on="k", within=window
    )
