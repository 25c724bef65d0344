"""What a session must be set to, checked before a query is built.

A setting that is missing is set if the session allows it at run time; one that is set to
something else is the user's, and refused with the line that would put it right.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable
from typing import Any, Final

from penstock.errors import PlanError, PlanWarning

__all__ = ["prepare_session", "shuffle_partitions"]

_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_HDFS_BACKED: Final = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

_POLICY: Final = "spark.sql.streaming.multipleWatermarkPolicy"

_DAEMON: Final = "spark.python.daemon.module"

_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_DEFAULT_PARTITIONS: Final = 200
_LOCAL: Final = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*\d+\s*)?\])?")

# Set when they are missing: changelogs instead of whole snapshots at each commit, no counting
# of rows, which reads before every write, and Arrow batches that are also bounded in bytes: a
# row of ours is a blob, and a batch bounded in rows alone would take gigabytes.
_WANTED: Final = {
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}


def prepare_session(spark: Any, streaming: bool) -> None:
    """Check and set what the join needs of a session."""
    if hasattr(spark, "_sc"):
        _use_this_python(spark)
        _use_our_daemon(spark)
    else:
        _check_python_of_server(spark)
    _choose_partitions(spark, streaming)
    if not streaming:
        return
    provider = spark.conf.get(_PROVIDER, _HDFS_BACKED)
    if provider == _HDFS_BACKED:
        _set(spark, _PROVIDER, _ROCKSDB)
    elif provider != _ROCKSDB:
        raise PlanError(
            f"the join keeps its state in RocksDB, and {_PROVIDER} is {provider!r}; "
            f'set spark.conf.set("{_PROVIDER}", "{_ROCKSDB}")'
        )
    if spark.conf.get(_POLICY, "min") != "min":
        raise PlanError(
            f"{_POLICY} is {spark.conf.get(_POLICY)!r}, which lets the fastest stream say what is "
            f'late; set spark.conf.set("{_POLICY}", "min")'
        )
    for name, value in _WANTED.items():
        if spark.conf.get(name, None) is None:
            _set(spark, name, value)


def _set(spark: Any, name: str, value: str) -> None:
    try:
        spark.conf.set(name, value)
    except Exception as error:  # classic and Connect sessions raise different ones
        raise PlanError(
            f"the join needs {name}={value}, which this session does not let us set: {error}; "
            f"start it with --conf {name}={value}"
        ) from error


def shuffle_partitions(spark: Any) -> int:
    """How many a session has."""
    return int(spark.conf.get(_PARTITIONS, str(_DEFAULT_PARTITIONS)))


def _choose_partitions(spark: Any, streaming: bool) -> None:
    """On a local master, if nobody has set how many, take as many as there are cores.

    Spark's default of 200 is for clusters: each partition is a task in every batch, with a state
    store and a call of Python, and a batch of a few rows takes half a minute on a laptop.
    """
    if spark.conf.get(_PARTITIONS, None) is not None:
        return
    cores = _local_cores(spark.conf.get("spark.master", ""))
    if cores is not None:
        _set(spark, _PARTITIONS, str(cores))
    elif streaming:
        warnings.warn(
            f"{_PARTITIONS} is not set, and Spark's default of {_DEFAULT_PARTITIONS} stays with "
            "the checkpoint: every batch runs as many tasks, however few its rows; before "
            f'on_spark, add spark.conf.set("{_PARTITIONS}", n), with n about the number of cores',
            PlanWarning,
            stacklevel=5,
        )


def _local_cores(master: str) -> int | None:
    """The cores of a master on one machine; None for any other."""
    found = _LOCAL.fullmatch(master.strip())
    if found is None:
        return None
    if found[1] == "*":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(int(found[1] or 1), 1)


def _use_this_python(spark: Any) -> None:
    """On a local master workers are children of this process: they use its Python.

    Spark takes PYSPARK_PYTHON, else the python3 of PATH, which outside an active virtual
    environment does not have penstock. It has read the variable when the session was made;
    what it made of it can be changed in a classic session.
    """
    master = spark.conf.get("spark.master", "")
    chosen = os.environ.get("PYSPARK_PYTHON") or spark.conf.get("spark.pyspark.python", None)
    if chosen or not master.startswith("local"):
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark._sc.pythonExec = sys.executable


def _use_our_daemon(spark: Any) -> None:
    """On a local master, if nobody has named another daemon, workers fork from a parent that has
    imported everything. Spark asks for its name when it needs the first worker."""
    is_local = _local_cores(spark.conf.get("spark.master", "")) is not None
    if not is_local or os.environ.get("PYSPARK_PYTHON") != sys.executable:
        return  # another Python may not have it
    live = spark._sc._jsc.sc().conf()  # not a copy, as all that is public here is
    if not live.contains(_DAEMON):
        live.set(_DAEMON, "penstock.spark.daemon")


def _check_python_of_server(spark: Any) -> None:
    """A Connect server chose its Python when it was started: see whether it has penstock."""
    if getattr(spark, "_penstock_is_there", False):
        return
    try:
        spark.range(1).mapInArrow(_same, "id bigint").collect()
    except Exception as error:  # whatever the server made of the worker's
        if "No module named 'penstock'" not in str(error):
            raise
        raise PlanError(
            "the Python of this Spark Connect server's workers has no penstock; install it there, "
            f"or start the server with PYSPARK_PYTHON set to one that has it, such as "
            f"{sys.executable}"
        ) from error
    spark._penstock_is_there = True


def _same(batches: Iterable[Any]) -> Iterable[Any]:
    return batches
