"""A checkpoint, looked at before a query goes on from it.

A DataFrame does not know its checkpoint, which is given to the query that writes it. Where it is
named beforehand, Spark's own reader of state says what its buckets were written for, and that is
compared with the query: as each bucket does, but on the driver, and before anything runs.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from penstock.errors import PenstockError, SnapshotError
from penstock.model.binding import Binding
from penstock.spark.bucket_count import BucketCount
from penstock.spark.cold import Manifest

__all__ = ["check_checkpoint"]


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
            return  # where several joins are one behind the other, one of them is this
    if problems:
        raise problems[0]


def _manifests(spark: Any, location: str) -> list[bytes]:
    """That of a bucket of each join in a checkpoint."""
    try:
        operators = spark.read.format("state-metadata").load(location).collect()
    except Exception as error:  # classic and Connect sessions raise different ones
        if _is_new(str(error)):
            return []
        raise SnapshotError(
            f"cannot read the checkpoint {location!r}: {str(error).splitlines()[0]}; "
            "check the path, or leave checkpoint= out"
        ) from error
    found = []
    for operator in {row["operatorId"]: row for row in operators}.values():
        properties = json.loads(operator["operatorProperties"] or "{}")
        if "manifest" not in json.dumps(properties):
            continue  # an aggregation, or the clock of idle timeouts
        reader = spark.read.format("statestore").option("operatorId", operator["operatorId"])
        rows = reader.option("stateVarName", "manifest").load(location).select("value.data")
        found += [bytes(row["data"]) for row in rows.limit(1).collect()]
    return found


def _is_new(problem: str) -> bool:
    """Whether Spark says that there is no batch yet."""
    return any(each in problem for each in ("STDS_", "PATH_NOT_FOUND", "does not exist"))
