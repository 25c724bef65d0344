"""What all tests share: markers by family, and one small Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import thoroughness  # noqa: F401 - loads the profile of Hypothesis

FAMILIES = ("unit", "answer", "agreement", "statistics", "spark", "recovery")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test has the marker of its family, which is the folder that it stands in."""
    for item in items:
        family = item.path.relative_to(Path(__file__).parent).parts[0]
        if family not in FAMILIES:
            raise pytest.UsageError(f"{item.path} is in none of the families {FAMILIES}")
        item.add_marker(family)


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
