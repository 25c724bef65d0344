"""Buckets under a simulated Spark in which everything fails; see support/simulator.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.simulator import Simulation, run_seeds
from support.thoroughness import scaled

SEEDS = scaled(quick=50, all=1000)
PER_TEST = 25


@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_every_seed_ends_equal_to_the_oracle(first: int, tmp_path: Path) -> None:
    run_seeds(Simulation, range(first, first + PER_TEST), tmp_path)
