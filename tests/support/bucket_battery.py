"""The streams of battery.py through buckets as Spark runs them.

Attempts crash and are repeated, and what a worker kept from the last batch may be gone, so that
windows are filled from the store.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.spark.bucket_count import BucketCount
from penstock.spark.rows.blobs import Parts, read_blobs
from penstock.spark.rows.packing import Packer, blob_schemas
from penstock.spark.state.bucket import Bucket
from penstock.spark.state.hot import ProcessMemory
from support.battery import Kind, Size, batches
from support.simulator import AttemptStore, Committed, Crash

BUCKETS = 2
SCHEMA = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int64())])


def packed(binding: Binding, batch: dict[str, pa.Table]) -> list[tuple[Parts, Parts]]:
    """For each bucket, the rows that stay in it and its guests."""
    buckets: list[tuple[Parts, Parts]] = [({}, {}) for _ in range(BUCKETS)]
    schemas = blob_schemas(binding)
    for number, table in enumerate(batch.values()):
        rows = table.cast(SCHEMA).combine_chunks().to_batches()
        for blobs in Packer(binding, number, BucketCount(BUCKETS), tick_all=False)(rows):
            for row in blobs.to_pylist():
                if row["time"] is not None:
                    continue  # a tick
                read = read_blobs(schemas, [row["stream"]], [row["data"]])
                for parts, more in zip(buckets[row["bucket"]], read, strict=True):
                    for which, found in more.items():
                        parts.setdefault(which, []).extend(found)
    return buckets


def on_buckets(kind: Kind, seed: int, size: Size, limits: ps.Limits) -> tuple[int, float, float]:
    """Results, how many are said to be lost, and the variance of that."""
    window, rows, pushes, _ = size
    query = kind.query(window)
    binding = Binding.of(query).bound_with(dict.fromkeys(range(len(query.names)), SCHEMA))
    plan = Plan.of(query, limits=limits)
    random = np.random.default_rng(seed)
    committed = [Committed() for _ in range(BUCKETS)]
    workers = [ProcessMemory() for _ in range(2)]
    produced, lost, variance = 0, 0.0, 0.0
    watermark = BEGINNING
    for batch in batches(kind.tables(seed, rows), rows, pushes):
        for number, (home, guests) in enumerate(packed(binding, batch)):
            done: Any = None
            while done is None:
                store = AttemptStore(committed[number], crash_at=int(random.integers(0, 20)))
                worker = workers[int(random.random() < 0.3)]
                try:
                    attempt = Bucket(binding, plan, worker, (BUCKETS, 1))
                    done = attempt.step(str(number), store, home, watermark, guests)
                except Crash:
                    continue
            committed[number] = replace(store.committed(), timers=frozenset())
            produced += done.results.num_rows
            lost += done.lost
            variance += done.lost_variance
        watermark = max(int(table["ts"].to_numpy().max()) for table in batch.values()) - 1000
    return produced, lost, variance
