"""A checkpoint, looked at before a query goes on from it.

A DataFrame does not know its checkpoint, which is given to the query that writes it. If it is
named beforehand, Spark's own reader of state says what its buckets were written for, and that is
compared with the query: as each bucket does, but on the driver, and before anything runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from penstock.errors import PenstockError, SnapshotError
from penstock.model.binding import Binding
from penstock.spark.bucket_count import BucketCount
from penstock.spark.state.manifest import Manifest

__all__ = ["check_checkpoint"]

# Spark's words for a checkpoint without a batch that was committed.
_NOTHING_YET: Final = (
    "STDS_COMMITTED_BATCH_UNAVAILABLE",
    "STDS_NO_PARTITION_DISCOVERED_IN_STATE_STORE",
    "STDS_OFFSET_LOG_UNAVAILABLE",
    "STDS_OFFSET_METADATA_LOG_UNAVAILABLE",
    "PATH_NOT_FOUND",
    "does not exist",
)


def check_checkpoint(spark: Any, location: str, binding: Binding, count: BucketCount) -> None:
    """Refuse a checkpoint from which this query cannot go on. A new one has nothing to refuse."""
    problems = []
    for data in _manifests(spark, location):
        try:
            partitions = Manifest.partitions_of(data)
            here = replace(count, partitions=partitions)
            Manifest.unpack(data, binding, (here.here(), partitions))
        except PenstockError as error:
            problems.append(error)
        else:
            return  # if several joins are one behind the other, one of them is this
    if problems:
        raise problems[0]


def _manifests(spark: Any, location: str) -> list[bytes]:
    """That of a bucket of each join in a checkpoint."""
    try:
        return list(_read_manifests(spark, location))
    except Exception as error:  # classic and Connect sessions raise different ones
        if _is_new(str(error)):
            return []
        raise SnapshotError(
            f"cannot read the checkpoint {location!r}: {str(error).splitlines()[0]}; "
            "check the path, or leave checkpoint= out"
        ) from error


def _read_manifests(spark: Any, location: str) -> Iterator[bytes]:
    operators = spark.read.format("state-metadata").load(location).collect()
    for operator in {row["operatorId"]: row for row in operators}.values():
        properties = json.loads(operator["operatorProperties"] or "{}")
        if "manifest" not in json.dumps(properties):
            continue  # an aggregation, or the clock of idle timeouts
        reader = spark.read.format("statestore").option("operatorId", operator["operatorId"])
        rows = reader.option("stateVarName", "manifest").load(location).select("value.data")
        yield from (bytes(row["data"]) for row in rows.limit(1).collect())


def _is_new(problem: str) -> bool:
    """Whether Spark says that there is no batch yet."""
    return any(each in problem for each in _NOTHING_YET)
