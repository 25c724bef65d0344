"""Buckets under limits, under a simulated Spark in which everything fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.limits_simulator import LimitedSimulation
from support.simulator import run_seeds
from support.thoroughness import scaled

SEEDS = scaled(quick=20, all=200)
PER_TEST = 20


@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_what_does_not_come_out_is_counted(first: int, tmp_path: Path) -> None:
    run_seeds(LimitedSimulation, range(first, first + PER_TEST), tmp_path)
