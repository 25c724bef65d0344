"""A Spark session on this machine alone, quiet, with all it writes in one directory.

The log of Spark, of its Java and of the Python workers goes to a file: a command that shows
something on the terminal has no room for it.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

__all__ = ["LOG", "local_session"]

LOG: Final = "spark.log"
_STANDARD_ERROR: Final = 2
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "1g",
    # For minutes, not days: the second compiler costs more than it saves.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.python.daemon.module": "penstock.spark.daemon",
    # As it is for stateful operators anyway: one parent for all workers, not two.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # Fewer and larger batches between Java and Python.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}


def local_session(name: str, directory: Path, cores: int) -> SparkSession:
    """Start Java and a session with `cores` worker threads; stop it before the directory goes."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the one that has penstock
    os.environ["PENSTOCK_SCRATCH"] = str(directory)
    builder = SparkSession.builder.appName(name).master(f"local[{cores}]")
    for setting, value in _SETTINGS.items():
        builder = builder.config(setting, value)
    builder = builder.config("spark.sql.shuffle.partitions", str(cores))
    builder = builder.config("spark.local.dir", str(directory))
    # When a query is stopped in the middle of a batch, the call it cuts short complains.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    with _standard_error_in(directory / LOG):
        return builder.getOrCreate()


@contextmanager
def _standard_error_in(log: Path) -> Iterator[None]:
    """Processes started meanwhile write there, for as long as they live."""
    sys.stderr.flush()
    kept = os.dup(_STANDARD_ERROR)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), _STANDARD_ERROR)
        yield
    finally:
        os.dup2(kept, _STANDARD_ERROR)
        os.close(kept)
