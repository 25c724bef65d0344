"""Buckets under limits, under a simulated Spark in which everything fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_limits_simulator import LimitedSimulation

SEEDS = 60
PER_TEST = 20


@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_what_does_not_come_out_is_counted(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + PER_TEST):
        scratch = tmp_path / str(seed)
        scratch.mkdir()
        try:
            LimitedSimulation(seed, scratch).run()
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
