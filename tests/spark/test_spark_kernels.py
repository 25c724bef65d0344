"""Compiled kernels that a session distributes: executors take them and compile nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

import penstock as ps
from penstock.kernels.kernel_pack import PACK_NAME, write_pack

# A join of batch DataFrames runs the same kernels in workers, and takes less time to start.
SCRIPT = """
import sys
import penstock as ps
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .getOrCreate()
)
spark.sparkContext.addFile(sys.argv[1])
frame = spark.createDataFrame([(1, 1000), (2, 2000)], "k long, ts long")
frame = frame.selectExpr("k", "timestamp_micros(ts) AS ts")
query = ps.WindowJoin([ps.Stream("a", "ts"), ps.Stream("b", "ts")], on="k", within="1 second")
print("rows", query.on_spark(a=frame, b=frame).count())
spark.stop()
"""


@pytest.mark.timeout(600)  # Java starts, and so do its workers
@pytest.mark.slow
def test_executors_compile_nothing_that_is_in_the_pack(tmp_path: Path) -> None:
    """Their cache is empty when the query starts, and holds kernels of the pack afterwards."""
    times = pa.array([1000, 2000], pa.timestamp("us", "UTC"))
    table = pa.table({"k": [1, 2], "ts": times})
    query = ps.WindowJoin([ps.Stream("a", "ts"), ps.Stream("b", "ts")], on="k", within="1 second")
    with query.start() as join:
        join.push({"a": table, "b": table})
        join.finish()
    pack = tmp_path / PACK_NAME
    write_pack(pack)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    ran = subprocess.run(
        [sys.executable, str(script), str(pack)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
    assert "rows 2" in ran.stdout, ran.stderr[-3000:]
    with zipfile.ZipFile(pack) as packed:
        names = set(packed.namelist())
    found = {file.name for file in (tmp_path / "cache").rglob("penstock.*-*")}
    assert found
    assert found <= names  # what a worker had compiled would be there as well
