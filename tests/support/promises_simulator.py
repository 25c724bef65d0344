"""The simulated Spark (simulator.py), with streams that make promises, of which some are broken.

What the committed attempts give out is what the embedded join does, which tests/answer holds
against the definition: results, late rows, rows that break a promise, and keys that are over. Of
marked rows the definition itself (promised.py) says after each step what a bucket holds.

To replay a seed: `PYTHONPATH=tests .venv/bin/python -m support.promises_simulator 1234`.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
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
from penstock.spark.state.bucket import BucketStep
from penstock.spark.state.hot import HotState
from support.limits_simulator import CheckedFiles, CheckedMemory
from support.oracle import OracleStream, Step
from support.promised import KEYS, Kept, Promise, Promised
from support.scenario import window_of
from support.simulator import Committed, Simulation

KINDS = ("marked", "wild", "unique", "clustered", "increasing", "expires")
LONG_AFTER = 1 << 40
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.int64()),
        ("j", pa.int64()),
        ("id", pa.int64()),
        ("is_end", pa.bool_()),
        ("until", pa.timestamp("us", tz="UTC")),
    ]
)


class PromisesSimulation(Simulation):
    """One run of one seed."""

    def __init__(self, seed: int, scratch: Path) -> None:
        self._random = random = np.random.default_rng([seed, 2])
        self._scratch = scratch
        self._kind = KINDS[seed % len(KINDS)]
        count = int(random.choice([2, 2, 3]))
        self._how = "inner"
        if count == 2:
            self._how = str(random.choice(self.joins))
        self._oracle = [
            OracleStream(
                name,
                window_us=int(random.choice([3, 10, 40])),
                lateness_us=int(random.choice([0, 0, 4])),
            )
            for name in "abc"[:count]
        ]
        self._buckets = int(random.integers(1, 5))
        self._query = ps.WindowJoin(
            [self._stream(each) for each in self._oracle],
            on=["k", "j"] if self._kind == "wild" else "k",
            how=self._how,
        )
        self._binding = Binding.of(self._query).bound_with(dict.fromkeys(range(count), SCHEMA))
        other = dict.fromkeys(self._query.names, "buckets(2)")
        self._plans = [Plan.of(self._query, each) for each in (None, other)]
        self._division = (self._buckets, 1)
        self._workers = [self._worker() for _ in range(2)]

    def _worker(self) -> HotState:
        if self._random.random() < 0.2:
            return CheckedMemory()
        return CheckedFiles(self._scratch, "query")

    def _stream(self, stream: OracleStream) -> ps.Stream:
        promises: dict[str, Any] = {"punctuation": "is_end"}
        if self._kind == "expires":
            promises = {"expires": {"b": "until"}} if stream.name == "a" else {}
        elif self._kind in ("unique", "clustered", "increasing"):
            promises = {self._kind: stream.name == "a" or bool(self._random.random() < 0.5)}
        return ps.Stream(
            stream.name,
            time="ts",
            window=window_of(stream),
            lateness=f"{stream.lateness_us} us",
            **promises,
        )

    def _run(self) -> None:
        steps = self._row_steps()
        expected = self._embedded(steps)
        kept = self._promised(steps).kept(lag=1) if self._kind == "marked" else None
        got: dict[str, Counter[Any]] = {name: Counter() for name in expected}
        committed = [Committed() for _ in range(self._buckets)]
        watermark, reached = BEGINNING, dict.fromkeys(self._query.names, BEGINNING)
        nothing: dict[str, list[Any]] = {name: [] for name in reached}
        homes = self._homes()
        for number, step in enumerate([*steps, nothing, nothing]):
            blobs = self._packed_rows(step)
            for bucket in range(self._buckets):
                calls: list[tuple[Parts, Parts] | None] = []
                calls += [blobs[bucket]] if any(blobs[bucket]) else []
                due = {each for each in committed[bucket].timers if each <= watermark}
                calls += [None] if due else []
                for call in calls:  # rows first, then timers
                    committed[bucket].timers -= set() if call else due
                    committed[bucket], done = self._committed(
                        bucket, committed[bucket], call, watermark
                    )
                    if done is None:
                        continue
                    self._add(got, done)
                    if kept is not None and number < len(steps):
                        self._check_live(done, kept[number], lambda k, at=bucket: homes[k] == at)
            for stream in self._oracle:
                times = [row["ts"] - stream.lateness_us for row in step[stream.name]]
                reached[stream.name] = max([reached[stream.name], *times])
            watermark = max(watermark, min(reached.values()))
            if number >= len(steps):
                watermark = LONG_AFTER
        got["over"] = Counter(set(got["over"]))
        if self._kind not in ("marked", "unique", "expires"):
            # What is promised of many keys is about those that are there when it begins to hold,
            # which on Spark is later.
            del expected["over"]
        for name, of_kind in expected.items():
            assert got[name] == of_kind, name

    def _check_live(self, done: BucketStep, kept: Kept, is_here: Callable[[int], bool]) -> None:
        """All that can go has gone, but for tuples that wait behind others for their end."""
        live = [row for rows in kept.live.values() for row in rows if is_here(row["k"])]
        expired = [row for row in kept.expired if is_here(row["k"])]
        assert len(live) <= done.live <= len(live) + len(expired)

    def _row_steps(self) -> list[dict[str, list[dict[str, Any]]]]:
        """The rows of each step; those that are marked are punctuations."""
        random, steps, now, number = self._random, [], 1000, 0
        greatest = dict.fromkeys(self._query.names, 0)
        for _ in range(int(random.integers(2, 9))):
            rows: dict[str, list[dict[str, Any]]] = {}
            for stream in self._oracle:
                batch = []
                for _ in range(int(random.integers(0, 7))):
                    ts = now + int(random.integers(-3, 12))
                    key = int(random.integers(len(KEYS)))
                    if self._kind in ("unique", "clustered", "increasing"):
                        key = greatest[stream.name] + int(random.choice([0, 0, 1]))
                        key += int(random.choice([-1, 3])) if random.random() < 0.1 else 0
                        greatest[stream.name] = max(key, greatest[stream.name])
                    batch.append(self._row(ts, key, number))
                    number += 1
                has_marks = self._kind in ("marked", "wild")
                for _ in range(int(random.choice([0, 0, 1, 3])) if has_marks else 0):
                    ts = now + int(random.choice([0, 6, 13]))
                    row = self._row(ts, int(random.integers(len(KEYS))), number)
                    number += 1
                    if self._kind == "wild" and random.random() < 0.5:
                        row["j" if random.random() < 0.7 else "k"] = None
                    batch.append(row | {"is_end": True})
                rows[stream.name] = sorted(batch, key=lambda row: (row["ts"], row["id"]))
            steps.append(rows)
            now += int(self._random.integers(4, 12))
        return steps

    def _row(self, ts: int, key: int, number: int) -> dict[str, Any]:
        until = ts + int(self._random.integers(0, 30))
        return {"ts": ts, "k": key, "j": number % 2, "id": number, "is_end": False, "until": until}

    def _promised(self, steps: list[dict[str, list[dict[str, Any]]]]) -> Promised:
        """The same for the definition."""
        promises = [
            Promise(number, name, row["k"], row["ts"], is_row=True)
            for number, step in enumerate(steps)
            for name, rows in step.items()
            for row in rows
            if row["is_end"]
        ]
        tuples = [
            Step({name: [row for row in rows if not row["is_end"]] for name, rows in step.items()})
            for step in steps
        ]
        given, _ = Promised(self._oracle, tuples, promises, self._how).without_broken()
        return given

    def _embedded(self, steps: list[dict[str, list[dict[str, Any]]]]) -> dict[str, Counter[Any]]:
        """What comes out of the embedded join."""
        join = self._query.start(schemas=dict.fromkeys(self._query.names, SCHEMA))
        found: dict[str, Counter[Any]] = {
            name: Counter() for name in ("results", "late", "broken", "over")
        }
        for step in steps:
            batches = {
                name: pa.Table.from_pylist(rows, SCHEMA) for name, rows in step.items() if rows
            }
            found["results"].update(self._rows(join.push(batches)))
        for name in self._query.names:
            found["results"].update(self._rows(join.advance(name, LONG_AFTER)))
        for kind, tables in (("late", join.late()), ("broken", join.broken())):
            for name, table in tables.items():
                stream = self._query.position(name)
                if stream not in self._query.given_out:
                    continue  # of others ids are not kept on Spark
                found[kind].update((stream, each) for each in table["id"].to_pylist())
        keys = [column.to_pylist() for column in join.punctuations().columns[:-1]]
        found["over"].update(set(zip(*keys, strict=True)))
        return found

    def _add(self, got: dict[str, Counter[Any]], done: BucketStep) -> None:
        got["results"].update(self._rows(done.results))
        for name in self._query.keys[0]:
            column = f"a_{name}"
            if len(self._query.keys[0]) == 1 and column in done.results.column_names:
                assert (
                    not {(each,) for each in done.results[column].to_pylist()} & got["over"].keys()
                )
        for kind, rows in (("late", done.late), ("broken", done.broken)):
            for stream, batch in rows.items():
                if stream in self._query.given_out:
                    ids = batch.column("id").to_pylist()
                    got[kind].update((stream, each) for each in ids)
        for over in done.over:
            keys = [column.to_pylist() for column in over.columns]
            got["over"].update(zip(*keys, strict=True))

    def _homes(self) -> dict[int, int]:
        """The bucket of each key."""
        homes = {}
        for key in KEYS:
            packed = self._packed_rows({"a": [self._row(0, key, 0)]})
            (homes[key],) = [at for at, (home, _) in enumerate(packed) if home]
        return homes

    def _packed_rows(self, step: dict[str, list[dict[str, Any]]]) -> list[tuple[Parts, Parts]]:
        """For each bucket, the rows that stay in it and what it is to know of others."""
        buckets: list[tuple[Parts, Parts]] = [({}, {}) for _ in range(self._buckets)]
        schemas, count = blob_schemas(self._binding), BucketCount(self._buckets)
        for name, rows in step.items():
            batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
            middle = int(self._random.integers(0, len(rows) + 1))
            packer = Packer(self._binding, self._query.position(name), count)
            for part in (batch[:middle], batch[middle:]):
                for packed in packer([part]) if len(part) else ():
                    for row in packed.to_pylist():
                        read = read_blobs(schemas, [row["stream"]], [row["data"]])
                        for parts, more in zip(buckets[row["bucket"]], read, strict=True):
                            for which, batches in more.items():
                                parts.setdefault(which, []).extend(batches)
        return buckets


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        PromisesSimulation(int(sys.argv[1]), Path(directory)).run()
