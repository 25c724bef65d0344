"""Spark as a bucket sees it, with everything that can go wrong: seeded, so that it replays.

A run feeds batches to buckets. Each bucket's step is attempted until one attempt commits, and
attempts crash at any state call, at the commit, or after it was done elsewhere; they run
twice, and late, as zombies; the files of the hot state vanish, shrink and change. Only what
the committed attempts gave out counts, and it has to be the oracle's answer.

To replay a seed: `.venv/bin/python tests/spark_simulator.py 1234`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from oracle import OracleStream, Step, answer
from penstock.engine.clock import BEGINNING
from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.spark import bucket as bucket_module
from penstock.spark.bucket import Bucket
from penstock.spark.bucket_count import BucketCount
from penstock.spark.hot import HotState, ProcessMemory
from penstock.spark.mapped import MappedFiles
from penstock.spark.packing import Packer, blob_schema, read_blob

BUCKETS = 2
SCHEMA = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.string()), ("id", pa.int64())])


class Crash(Exception):
    """An attempt died."""


@dataclass
class Committed:
    """What a bucket has in the state store."""

    manifest: bytes | None = None
    segments: dict[tuple[int, int], bytes] = field(default_factory=dict)


class AttemptStore:
    """The store as one attempt sees it: its writes are its own until they are committed."""

    def __init__(self, committed: Committed, crash_at: int) -> None:
        self.manifest = committed.manifest
        self.segments = dict(committed.segments)
        self._calls_left = crash_at

    def _call(self) -> None:
        self._calls_left -= 1
        if self._calls_left == 0:
            raise Crash

    def read_manifest(self) -> bytes | None:
        self._call()
        return self.manifest

    def write_manifest(self, data: bytes) -> None:
        self._call()
        self.manifest = data

    def read_segment(self, stream: int, number: int) -> bytes | None:
        self._call()
        return self.segments.get((stream, number))

    def write_segment(self, stream: int, number: int, data: bytes) -> None:
        self._call()
        self.segments[stream, number] = data

    def remove_segment(self, stream: int, number: int) -> None:
        self._call()
        del self.segments[stream, number]

    def wake_at(self, watermark: int) -> None:
        self._call()

    def committed(self) -> Committed:
        return Committed(self.manifest, self.segments)


class Simulation:
    """One run of one seed."""

    def __init__(self, seed: int, scratch: Path) -> None:
        self._random = np.random.default_rng(seed)
        self._scratch = scratch
        streams = 2 if seed % 3 else 3
        self._oracle = [
            OracleStream(
                name,
                window_us=int(self._random.choice([0, 3, 20])),
                lateness_us=int(self._random.choice([0, 4])),
            )
            for name in ("a", "b", "c")[:streams]
        ]
        query = ps.WindowJoin(
            [
                ps.Stream(
                    stream.name,
                    time="ts",
                    window=f"{stream.window_us} us",
                    lateness=f"{stream.lateness_us} us",
                )
                for stream in self._oracle
            ],
            on="k",
        )
        self._binding = Binding.of(query).bound_with(dict.fromkeys(range(streams), SCHEMA))
        self._plans = [Plan.of(query, "hash"), Plan.of(query, "buckets(2)")]
        self._workers = [self._worker() for _ in range(2)]

    def _worker(self) -> HotState:
        if self._random.random() < 0.2:
            return ProcessMemory()
        return MappedFiles(self._scratch, "query")

    def run(self) -> None:
        """Compare what comes out, batch by batch, with the oracle's answer."""
        steps = self._steps()
        outcomes = answer(self._oracle, steps)
        committed = [Committed() for _ in range(BUCKETS)]
        watermark = BEGINNING
        if self._random.random() < 0.3:
            committed = self._with_history(steps.pop(0), committed)
            outcomes = outcomes[1:]
        for step, outcome in zip(steps, outcomes, strict=True):
            got: Counter[Any] = Counter()
            late: Counter[Any] = Counter()
            blobs = self._packed(step)
            for number in range(BUCKETS):
                committed[number], done = self._committed(
                    number, committed[number], blobs[number], watermark
                )
                got.update(self._rows(done.results))
                for stream, batch in done.late.items():
                    late.update((stream, each) for each in batch.column("id").to_pylist())
            expected = Counter(tuple(row["id"] for row in rows) for rows, _ in outcome.results)
            expected_late = Counter(
                (number, row["id"])
                for number, stream in enumerate(self._oracle)
                for row in outcome.late[stream.name]
            )
            assert got == expected
            assert late == expected_late
            watermark = BEGINNING if outcome.watermark < 0 else int(outcome.watermark)

    def _steps(self) -> list[Step]:
        random, steps, now = self._random, [], 1000
        number = 0
        for _ in range(int(random.integers(3, 12))):
            rows: dict[str, list[dict[str, Any]]] = {}
            for stream in self._oracle:
                batch = []
                for _ in range(int(random.integers(0, 8))):
                    number += 1
                    ts = now + int(random.integers(-6, 10))
                    key = None if random.random() < 0.1 else f"key {random.integers(0, 5)}"
                    batch.append({"ts": ts, "k": key, "id": number})
                rows[stream.name] = batch
            steps.append(Step(rows))
            now += int(random.integers(0, 12))
        return steps

    def _packed(self, step: Step) -> list[dict[int, list[pa.RecordBatch]]]:
        buckets: list[dict[int, list[pa.RecordBatch]]] = [{} for _ in range(BUCKETS)]
        for number, stream in enumerate(self._oracle):
            rows = step.rows[stream.name]
            if not rows:
                continue
            batch = pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)
            middle = int(self._random.integers(0, len(rows) + 1))
            for part in (batch[:middle], batch[middle:]):
                for packed in Packer(self._binding, number, BucketCount(BUCKETS))([part]):
                    for row in packed.to_pylist():
                        if row["data"] is None:
                            continue
                        blob = read_blob(row["data"], blob_schema(self._binding, number))
                        buckets[row["bucket"]].setdefault(number, []).append(blob)
        return buckets

    def _with_history(self, step: Step, before: list[Committed]) -> list[Committed]:
        """The first batch as history: in one part or in two, in any order."""
        newest = {
            number: max(row["ts"] for row in step.rows[stream.name])
            for number, stream in enumerate(self._oracle)
            if step.rows[stream.name]
        }
        blobs = self._packed(step)
        split = int(self._random.integers(len(self._oracle) + 1))
        after = []
        for number in range(BUCKETS):
            state = before[number]
            for part in (range(split), range(split, len(self._oracle))):
                rows = {stream: blobs[number][stream] for stream in part if stream in blobs[number]}
                ticks = {stream: newest[stream] for stream in part if stream in newest}
                state = self._begun(state, rows, ticks)
            after.append(state)
        return after

    def _begun(
        self,
        before: Committed,
        blobs: Mapping[int, Sequence[pa.RecordBatch]],
        newest: Mapping[int, int],
    ) -> Committed:
        while True:
            store = AttemptStore(before, crash_at=self._crash_at())
            try:
                Bucket(self._binding, self._plans[0], self._worker()).begin(store, blobs, newest)
            except Crash:
                continue
            return store.committed()

    def _committed(
        self,
        number: int,
        before: Committed,
        blobs: Mapping[int, Sequence[pa.RecordBatch]],
        watermark: int,
    ) -> tuple[Committed, bucket_module.Step]:
        """Attempt a step until one attempt commits; others may have run beside it."""
        while True:
            finished = []
            for _ in range(int(self._random.choice([1, 1, 2]))):
                self._damage()
                store = AttemptStore(before, crash_at=self._crash_at())
                worker = self._workers[int(self._random.integers(len(self._workers)))]
                plan = self._plans[int(self._random.random() < 0.1)]
                attempt = Bucket(self._binding, plan, worker)
                try:
                    done = attempt.step(str(number), store, blobs, watermark)
                except Crash:
                    continue
                finished.append((store.committed(), done))
            if finished and self._random.random() < 0.8:
                return finished[int(self._random.integers(len(finished)))]

    def _crash_at(self) -> int:
        return int(self._random.integers(1, 12)) if self._random.random() < 0.4 else 0

    def _damage(self) -> None:
        """Let something happen to the files of the hot state."""
        states = [each for each in self._scratch.glob("query/*") if "claimed" not in each.name]
        if not states or self._random.random() > 0.15:
            return
        state = states[int(self._random.integers(len(states)))]
        files = list(state.iterdir())
        victim = files[int(self._random.integers(len(files)))]
        match int(self._random.integers(4)):
            case 0:
                shutil.rmtree(state)
            case 1:
                victim.unlink()
            case 2:
                with victim.open("rb+") as file:
                    file.truncate(victim.stat().st_size // 2)
            case 3:
                (state / "state.json").write_text("{")

    def _rows(self, results: pa.Table) -> list[tuple[int, ...]]:
        columns = [results[f"{stream.name}_id"].to_pylist() for stream in self._oracle]
        return list(zip(*columns, strict=True))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        Simulation(int(sys.argv[1]), Path(directory)).run()
