"""What all tests share: how many examples Hypothesis tries, and one small Spark session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from numba import config

settings.register_profile("ci", deadline=None, derandomize=False, print_blob=True, max_examples=60)
# Without the JIT a kernel is about a hundred times slower.
settings.register_profile("jit_off", settings.get_profile("ci"), max_examples=25)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=5_000)
settings.load_profile("jit_off" if config.DISABLE_JIT else os.getenv("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One for the whole run, tiny and quiet."""
    from pyspark.sql import SparkSession  # only tests on Spark wait for it

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Any]:
    """Directories that Spark reads as the streams a and b."""
    from support.spark_files import Source

    return {name: Source(tmp_path / name) for name in "ab"}
