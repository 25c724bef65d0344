"""Buckets under a simulated Spark in which everything fails; see spark_simulator.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_simulator import Simulation

SEEDS = 1000
PER_TEST = 100


@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_every_seed_ends_equal_to_the_oracle(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + PER_TEST):
        scratch = tmp_path / str(seed)
        scratch.mkdir()
        try:
            Simulation(seed, scratch).run()
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
