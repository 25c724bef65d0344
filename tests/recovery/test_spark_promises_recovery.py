"""Buckets whose streams make promises, under a simulated Spark in which everything fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.promises_simulator import PromisesSimulation
from support.simulator import run_seeds
from support.thoroughness import scaled

SEEDS = scaled(quick=60, all=1200)
PER_TEST = 30


@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_promises_outlive_all_that_fails(first: int, tmp_path: Path) -> None:
    run_seeds(PromisesSimulation, range(first, first + PER_TEST), tmp_path)
