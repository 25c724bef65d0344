"""Spark as a bucket sees it, with everything that can go wrong: seeded, so that it replays.

A run feeds batches to buckets. Each bucket's step is attempted until one attempt commits, and
attempts crash at any state call, at the commit, or after it was done elsewhere; they run
twice, and late, as zombies; the files of the hot state vanish, shrink and change; every attempt
sees its rows in another order. Buckets that nothing comes to are called when a timer of theirs
goes off, and only then. Only what the committed attempts gave out counts, and it has to be the
oracle's answer.

Half of the seeds have windows that count rows or arrivals. There the oracle's order of arrival is
that of the rows' contents, for `id` comes first by name and grows; and what comes out of a batch
is what the oracle has after the one before, since the watermark is that of its start.

Some of the others have no key: there every row goes to all buckets, as a guest to all but one.

To replay a seed: `PYTHONPATH=tests .venv/bin/python -m support.simulator 1234`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

import penstock as ps
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.spark.bucket_count import BucketCount
from penstock.spark.rows.blobs import Parts, read_blobs
from penstock.spark.rows.packing import Packer, blob_schemas
from penstock.spark.state import bucket as bucket_module
from penstock.spark.state import segments
from penstock.spark.state.bucket import Bucket
from penstock.spark.state.hot import HotState, ProcessMemory
from penstock.spark.state.mapped import MappedFiles
from support.oracle import PRESERVED, Combination, OracleStream, Row, Step, Term, answer
from support.scenario import window_of
from support.strategies import BLOBS_OF_ONE_HASH

SCHEMA = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.binary()), ("id", pa.int64())])
LONG_AFTER = 1 << 50  # on Spark no stream ends: what is in a window of rows stays there
KEYS = [*BLOBS_OF_ONE_HASH, b"key 2", b"key 3", b""]


def _is_near(a: Row, b: Row) -> bool:
    return abs(a["id"] - b["id"]) <= 9


def _differs(a: Row, b: Row) -> bool | None:
    return None if None in (a["k"], b["k"]) else bool(a["k"] != b["k"])


# Joins without a key: what a user writes, and what it says in Python.
WITHOUT_KEY: list[tuple[Any, list[Term]]] = [
    ("abs(a.id - b.id) <= 9", [(("a", "b"), _is_near)]),
    (
        "a.id < b.id AND b.id % 4 <> 0",
        [(("a", "b"), lambda a, b: a["id"] < b["id"]), (("b",), lambda b: b["id"] % 4 != 0)],
    ),
    ("a.k <> b.k", [(("a", "b"), _differs)]),
    ("a.k IS NOT DISTINCT FROM b.k", [(("a", "b"), lambda a, b: a["k"] == b["k"])]),
    (
        ps.udf(lambda a, b: np.abs(a.to_numpy() - b.to_numpy()) <= 9, ["a.id", "b.id"]),
        [(("a", "b"), _is_near)],
    ),
]


class Crash(Exception):
    """An attempt died."""


@dataclass
class Committed:
    """What a bucket has in the state store, and when it is to be called."""

    manifest: bytes | None = None
    segments: dict[tuple[int, int], bytes] = field(default_factory=dict)
    timers: frozenset[int] = frozenset()


class AttemptStore:
    """The store as one attempt sees it: its writes are its own until they are committed."""

    def __init__(self, committed: Committed, crash_at: int) -> None:
        self.manifest = committed.manifest
        self.segments = dict(committed.segments)
        self.timers = committed.timers
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
        self.timers |= {watermark}

    def committed(self) -> Committed:
        return Committed(self.manifest, self.segments, self.timers)


class Simulation:
    """One run of one seed."""

    limits: ps.Limits | None = None
    joins = ("inner", "left", "right", "full", "semi", "anti")

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
        self._counts = self.limits is None and seed % 2 == 1
        self._how = "inner"
        if streams == 2:
            self._how = str(self._random.choice(self.joins))
        self._buckets = 2
        if self._counts:
            self._count()
        where, self._terms = None, []
        if streams == 2 and not self._counts and self._random.random() < 0.5:
            where, self._terms = WITHOUT_KEY[int(self._random.integers(len(WITHOUT_KEY)))]
            self._how = "inner"
            self._buckets = int(self._random.integers(1, 5))
            self._oracle = [replace(stream, key=()) for stream in self._oracle]
        # It always holds, but then all ids are kept, which break ties.
        always = "a.id <> b.id" if self._how in ("semi", "anti") and self._counts else None
        query = ps.WindowJoin(
            [
                ps.Stream(
                    stream.name,
                    time="ts",
                    window=window_of(stream),
                    lateness=f"{stream.lateness_us} us",
                )
                for stream in self._oracle
            ],
            on=None if where else "k",
            where=where or always,
            how=self._how,
        )
        self._binding = Binding.of(query).bound_with(dict.fromkeys(range(streams), SCHEMA))
        other = dict.fromkeys(query.names, "buckets(2)" if query.keys[0] else "t_tree")
        self._plans = [Plan.of(query, each, limits=self.limits) for each in (None, other)]
        self._division = (self._buckets, 1)
        self._workers = [self._worker() for _ in range(2)]

    def _count(self) -> None:
        """Give some of the streams windows that count, or all of them the same."""
        random, count = self._random, lambda: int(self._random.choice([1, 2, 5, 30]))
        kind = str(random.choice(["per key", "per key", "rows", "arrivals"]))
        if kind == "arrivals":
            each = [{"arrivals": count()}] * len(self._oracle)
        else:
            each = [
                {"rows": count(), "per_key": kind == "per key" or bool(random.random() < 0.3)}
                if random.random() < 0.6
                else {}
                for _ in self._oracle
            ]
            each[int(random.integers(len(each)))] = {"rows": count(), "per_key": kind == "per key"}
        self._oracle = [
            replace(stream, window_us=inf, **window) if window else stream
            for stream, window in zip(self._oracle, each, strict=True)
        ]
        self._buckets = 2 if kind == "per key" else 1

    def _worker(self) -> HotState:
        if self._random.random() < 0.2:
            return ProcessMemory()
        return MappedFiles(self._scratch, "query")

    def run(self) -> None:
        """Compare what comes out, batch by batch, with the oracle's answer."""
        few, many = (int(self._random.choice(each)) for each in ((2, 1024), (3, 24)))
        with mock.patch.multiple(segments, FEW_ROWS=few, MANY_SEGMENTS=many):
            self._run()

    def _run(self) -> None:
        steps = self._steps()
        nothing: dict[str, list[Any]] = {stream.name: [] for stream in self._oracle}
        later = Step(nothing, advance=dict.fromkeys(nothing, LONG_AFTER))
        outcomes = answer(self._oracle, [*steps, later], where=self._terms, how=self._how)
        outcomes = outcomes[: len(steps) + 1]
        committed = [Committed() for _ in range(self._buckets)]
        watermark = BEGINNING
        given_out = self._binding.query.given_out  # of others ids are not kept
        refused = self.limits is not None and self._how == "semi"
        if self._random.random() < 0.3 and not refused:
            committed = self._with_history(steps.pop(0), committed)
            outcomes = outcomes[1:]
        # After the last batch, what its watermark lets go, and one long after it.
        turns = pairwise([[], *(outcome.results for outcome in outcomes), []])
        results = [self._at_once(each) + self._later(last) for last, each in turns]
        steps += [Step(nothing)] * 2
        outcomes.append(outcomes[-1])
        for step, outcome, expected_results in zip(steps, outcomes, results, strict=True):
            got: Counter[Any] = Counter()
            late: Counter[Any] = Counter()
            blobs = self._packed(step)
            for number in range(self._buckets):
                calls: list[tuple[Parts, Parts] | None] = []
                calls += [blobs[number]] if any(blobs[number]) else []
                due = {each for each in committed[number].timers if each <= watermark}
                calls += [None] if due else []
                for call in calls:  # rows first, then timers
                    committed[number].timers -= set() if call else due
                    committed[number], done = self._committed(
                        number, committed[number], call, watermark
                    )
                    if done is None:
                        continue
                    self._note(number, done)
                    got.update(self._rows(done.results))
                    for stream, batch in done.late.items():
                        if stream not in given_out:
                            continue
                        late.update((stream, each) for each in batch.column("id").to_pylist())
            expected = Counter(
                tuple(row and row["id"] for row in rows) for rows, _ in expected_results
            )
            expected_late = Counter(
                (number, row["id"])
                for number, stream in enumerate(self._oracle)
                for row in outcome.late[stream.name]
                if number in given_out
            )
            self._judge(got, expected)
            assert late == expected_late
            watermark = int(max(outcome.watermark, BEGINNING))

    def _note(self, number: int, done: bucket_module.Step) -> None:
        """What a committed step of a bucket says of itself."""

    def _judge(self, got: Counter[Any], expected: Counter[Any]) -> None:
        """Compare what a batch brought."""
        assert got == expected

    def _at_once(self, results: list[Combination]) -> list[Combination]:
        """Those that come out in the batch of their last tuple."""
        return [each for each in results if not self._waits(each)]

    def _later(self, results: list[Combination]) -> list[Combination]:
        """Those that come out when a batch begins with the watermark that lets them go."""
        return [each for each in results if self._waits(each)]

    def _waits(self, result: Combination) -> bool:
        rows, _ = result
        alone = self._how in PRESERVED and (None in rows or len(rows) == 1)
        has_keys = all(row is None or row["k"] is not None for row in rows)
        return has_keys and (alone or self._counts)

    def _steps(self) -> list[Step]:
        random, steps, now = self._random, [], 1000
        number = 0
        grain = int(random.choice([1, 6])) if self._counts else 1  # the larger, the more ties
        for _ in range(int(random.integers(3, 12))):
            rows: dict[str, list[dict[str, Any]]] = {}
            for stream in self._oracle:
                batch = []
                for _ in range(int(random.integers(0, 8))):
                    number += 1
                    ts = (now + int(random.integers(-6, 10))) // grain * grain
                    key = None if random.random() < 0.1 else KEYS[random.integers(len(KEYS))]
                    batch.append({"ts": ts, "k": key, "id": number})
                rows[stream.name] = batch
            steps.append(Step(rows))
            now += int(random.integers(0, 12))
        return steps

    def _packed(self, step: Step, *, history: bool = False) -> list[tuple[Parts, Parts]]:
        """For each bucket, the rows that stay in it and its guests."""
        buckets: list[tuple[Parts, Parts]] = [({}, {}) for _ in range(self._buckets)]
        schemas = blob_schemas(self._binding)
        count = BucketCount(self._buckets)
        for number, stream in enumerate(self._oracle):
            rows = step.rows[stream.name]
            if not rows:
                continue
            batch = pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)
            middle = int(self._random.integers(0, len(rows) + 1))
            for part in (batch[:middle], batch[middle:]):
                for packed in Packer(self._binding, number, count, tick_all=history)([part]):
                    for row in packed.to_pylist():
                        if row["time"] is not None:
                            continue  # a tick
                        read = read_blobs(schemas, [row["stream"]], [row["data"]])
                        for parts, more in zip(buckets[row["bucket"]], read, strict=True):
                            for which, batches in more.items():
                                parts.setdefault(which, []).extend(batches)
        return buckets

    def _with_history(self, step: Step, before: list[Committed]) -> list[Committed]:
        """The first batch as history: in one part or in two, in any order."""
        newest = {
            number: max(row["ts"] for row in step.rows[stream.name])
            for number, stream in enumerate(self._oracle)
            if step.rows[stream.name]
        }
        blobs = self._packed(step, history=True)
        split = int(self._random.integers(len(self._oracle) + 1))
        after = []
        for number in range(self._buckets):
            state = before[number]
            for part in (range(split), range(split, len(self._oracle))):
                home, guests = blobs[number]
                assert not guests
                rows = {stream: home[stream] for stream in part if stream in home}
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
                bucket = Bucket(self._binding, self._plans[0], self._worker(), self._division)
                bucket.begin(store, blobs, newest)
            except Crash:
                continue
            return store.committed()

    def _committed(
        self,
        number: int,
        before: Committed,
        blobs: tuple[Parts, Parts] | None,
        watermark: int,
    ) -> tuple[Committed, bucket_module.Step | None]:
        """Attempt a step until one attempt commits; others may have run beside it."""
        while True:
            finished = []
            for _ in range(int(self._random.choice([1, 1, 2]))):
                self._damage()
                store = AttemptStore(before, crash_at=self._crash_at())
                worker = self._workers[int(self._random.integers(len(self._workers)))]
                plan = self._plans[int(self._random.random() < 0.1)]
                attempt = Bucket(self._binding, plan, worker, self._division)
                try:
                    if blobs:
                        home, guests = (self._mixed(each) for each in blobs)
                        done = attempt.step(str(number), store, home, watermark, guests)
                    else:
                        done = attempt.wake(str(number), store, watermark)
                except Crash:
                    continue
                finished.append((store.committed(), done))
            if finished and self._random.random() < 0.8:
                return finished[int(self._random.integers(len(finished)))]

    def _mixed(
        self, blobs: Mapping[int, Sequence[pa.RecordBatch]]
    ) -> dict[int, list[pa.RecordBatch]]:
        """The same rows in the order that one attempt sees them in."""
        mixed = {}
        for stream, parts in blobs.items():
            rows = [part.take(pa.array(self._random.permutation(len(part)))) for part in parts]
            mixed[stream] = [rows[place] for place in self._random.permutation(len(rows))]
        return mixed

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
        names = [f"{stream.name}_id" for stream in self._oracle]
        columns = [results[name].to_pylist() for name in names if name in results.column_names]
        return list(zip(*columns, strict=True))


def run_seeds(simulation: type[Simulation], seeds: range, scratch: Path) -> None:
    """Simulations of these seeds, one after the other; the one that fails is named."""
    for seed in seeds:
        of_seed = scratch / str(seed)
        of_seed.mkdir()
        try:
            simulation(seed, of_seed).run()
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        Simulation(int(sys.argv[1]), Path(directory)).run()
