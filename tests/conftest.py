"""What all tests share: markers by family, and one small Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import thoroughness  # loads the profile of Hypothesis too

FAMILIES = ("unit", "answer", "agreement", "statistics", "spark", "recovery")

# Of the tests that run queries on Spark `make test` takes one of each kind: a query takes seconds.
QUICK_ON_SPARK = {
    "test_conformance_spark.py::test_on_spark[Spark StreamingJoinSuite: left outer join with a "
    "range of time]",
    "test_conformance_spark.py::test_on_spark[Flink IntervalJoinOperator: sides that are not "
    "alike]",
    "test_spark.py::test_a_stream_and_its_restart",
    "test_spark.py::test_whole_tables",
    "test_spark_limits.py::test_what_is_missing_is_counted[semi join]",
    "test_spark_manners.py::test_a_checkpoint_of_another_join_is_refused_in_plain_words",
    "test_spark_watermarks.py::test_late_rows_and_counters",
    "test_static_spark.py::test_only_counts_come_to_the_driver",
    "test_udf_spark.py::test_a_function_that_fails_on_spark",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", default="1/1", help="of the tests: 2/3 for the second third")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Sets markers, lets pytest choose by them, and takes the part that was asked for."""
    for item in items:
        family = item.path.relative_to(Path(__file__).parent).parts[0]
        if family not in FAMILIES:
            raise pytest.UsageError(f"{item.path} is in none of the families {FAMILIES}")
        item.add_marker(family)
        if "spark" in item.fixturenames and item.nodeid.rpartition("/")[2] not in QUICK_ON_SPARK:
            item.add_marker("slow")
        if tries_more(item):
            item.add_marker("deeper")
    yield
    number, of = map(int, config.getoption("--part").split("/"))
    kept = items[number - 1 :: of]
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept


def tries_more(item: pytest.Item) -> bool:
    """Whether it is random, or its module asks how thorough to be, or `make test` leaves it out."""
    module = getattr(item, "module", None)
    return (
        item.get_closest_marker("slow") is not None
        or getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        or getattr(module, "scaled", None) is thoroughness.scaled
        or getattr(module, "examples", None) is thoroughness.examples
    )


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One for the whole run, tiny and quiet."""
    from pyspark.sql import SparkSession  # only tests on Spark wait for it

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.python.daemon.module", "penstock.spark.daemon")
        .config("spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled", "false")
        .config("spark.driver.memory", "1g")
        # It runs for minutes: to compile less of itself takes less than it saves.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
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
