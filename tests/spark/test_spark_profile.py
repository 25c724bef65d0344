"""The profile of a batch times functions by name: each of them is there."""

from __future__ import annotations

import sys
from pathlib import Path


def test_all_that_is_timed_is_there() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from benchmarks.spark_timers import _PARTS  # benchmarks are not installed

    missing = [(owner, name) for _, owner, name in _PARTS if not hasattr(owner, name)]
    assert not missing
