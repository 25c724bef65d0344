"""How a running query is getting on: one record for each batch, in a queue.

Spark reports a batch after it is committed, so the records add up to what the query has done,
also when it is stopped in the middle of the next batch.
"""

from __future__ import annotations

import json
import queue
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from penstock.model.counters import BucketCounts

__all__ = ["BatchProgress", "ProgressQueue"]


@dataclass(frozen=True, kw_only=True)
class BatchProgress(BucketCounts):
    """One batch: what its buckets have counted, added up, and what Spark says of it.

    offsets: of each source, where the batch ended, as the source made them.
    newest_us: the greatest event time in the batch. spark_watermark_us: Spark's, during the
    batch; that of the join is ahead of it by the longest window. None if there is none.
    live, bytes, ghosts: in the windows of the buckets that the batch touched.
    rebuilt: how many of them had to be filled from segments.
    """

    number: int
    seconds: float
    rows: int
    offsets: Sequence[Any]
    newest_us: int | None
    spark_watermark_us: int | None


_MAY_BE_NONE: Final = [each.name for each in fields(BucketCounts) if "None" in str(each.type)]


class ProgressQueue(StreamingQueryListener):
    """A listener that queues a record for each batch, and None when the query has ended."""

    def __init__(self) -> None:
        self.records: queue.SimpleQueue[BatchProgress | None] = queue.SimpleQueue()

    def onQueryStarted(self, event: Any) -> None:
        """Nothing is known yet."""

    def onQueryProgress(self, event: Any) -> None:
        self.records.put(_record(event.progress))

    def onQueryIdle(self, event: Any) -> None:
        """Nothing has changed."""

    def onQueryTerminated(self, event: Any) -> None:
        self.records.put(None)


def _record(progress: Any) -> BatchProgress:
    observed = progress.observedMetrics["penstock"].asDict()
    # A batch without input touches no bucket, and has no counters.
    counters = {
        each.name: observed[each.name] if each.name in _MAY_BE_NONE else observed[each.name] or 0
        for each in fields(BucketCounts)
    }
    return BatchProgress(
        number=progress.batchId,
        seconds=progress.durationMs["triggerExecution"] / 1000,
        rows=progress.numInputRows,
        offsets=[json.loads(source.endOffset) for source in progress.sources],
        **counters,
        newest_us=_microseconds(progress.eventTime.get("max")),
        spark_watermark_us=_microseconds(progress.eventTime.get("watermark")),
    )


def _microseconds(text: str | None) -> int | None:
    """Of an instant as Spark writes it; None for the beginning of 1970, its word for none."""
    seconds = datetime.fromisoformat(text).timestamp() if text else 0.0
    return round(seconds * 1e6) or None
