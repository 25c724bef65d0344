"""Into how many buckets keys are divided: a number that must not change under a checkpoint.

Unless it is given it is four for each shuffle partition, and how many of these there are is
for Spark to say when a batch runs: a query that is started again keeps the partitions of its
checkpoint, whatever the session says by then. Spark tells its tasks, so they are asked, not
the session. Bucket 0 is called in every batch, so a number that was changed by hand is refused
before anything is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark import TaskContext

__all__ = ["MOST_BUCKETS", "BucketCount"]

MOST_BUCKETS: Final = (1 << 15) - 1
_PER_PARTITION: Final = 4
_PARTITIONS: Final = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class BucketCount:
    """given: by the user. partitions: the session's, for where no task is running."""

    given: int | None
    partitions: int = 1

    def here(self) -> int:
        """The number, in this task."""
        if self.given is not None:
            return self.given
        task = TaskContext.get()
        told = task.getLocalProperty(_PARTITIONS) if task is not None else None
        partitions = int(told) if told is not None else self.partitions
        return min(_PER_PARTITION * partitions, MOST_BUCKETS)
