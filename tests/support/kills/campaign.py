"""A query, and somebody who kills its processes at random moments.

The moments, the victims and the order of the sorts are drawn from the seed. Input is written
as fast as it is read. After the last kill the query works off what is left; what the sink
has committed then has to be the embedded join's answer, row for row, each as often.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from support.kills.feed import Feed
from support.kills.hot_state import holding
from support.kills.processes import MARK, Process, find, kill, kill_all, victims

LOCAL = "local[2,{failures}]"
CLUSTER = "local-cluster[2,1,1024]"

_AHEAD = 6  # files that wait to be read, so that there is always a batch to be caught in
_LONGEST_WAIT_S = 4.0  # before a kill
_LONGEST_STEPS_S = 0.04  # about what the buckets of a task take
_POLL_S = 0.05


@dataclass
class Report:
    """What was done to a query, and what it answered."""

    seed: int
    master: str
    kills: Counter[str] = field(default_factory=Counter)
    in_a_batch: int = 0  # kills that came between the plan of a batch and its commit
    drivers: int = 0
    failed_queries: int = 0
    batches: int = 0
    rebuilt: int = 0
    expected: int = 0
    missing: int = 0
    surplus: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        kills = ", ".join(f"{count} {sort}" for sort, count in sorted(self.kills.items()))
        exact = "exact" if self.is_exact else f"{self.missing} MISSING, {self.surplus} SURPLUS"
        return (
            f"{self.master.partition('[')[0]}: killed {kills}, {self.in_a_batch} of them in a "
            f"batch; {self.drivers} drivers, {self.failed_queries} failed queries, "
            f"{self.batches} batches, {self.rebuilt} buckets rebuilt; "
            f"{self.expected} results, {exact} (seed {self.seed}, {self.seconds:.0f} s)"
        )

    @property
    def is_exact(self) -> bool:
        return not self.missing and not self.surplus


class Campaign:
    """One query with its kills."""

    def __init__(
        self, directory: Path, seed: int, master: str, kills: Mapping[str, int], most_s: float
    ) -> None:
        self._directory = directory
        self._random = random.Random(f"kills {seed}")
        self._mark = secrets.token_hex(8)
        self._sorts = [sort for sort, count in kills.items() for _ in range(count)]
        self._deadline = time.monotonic() + most_s
        self._feed = Feed(directory / "in", seed)
        self._driver: subprocess.Popen[bytes] | None = None
        self._report = Report(seed, master)
        for name in ("scratch", "temporary", "spark"):
            (directory / name).mkdir()
        # Executors of local-cluster write into Spark's own directory: give them one.
        for each in Path(pyspark.__file__).parent.iterdir():
            (directory / "spark" / each.name).symlink_to(each)

    def run(self) -> Report:
        """Kill, and compare; nothing that was started is left behind, however it ends."""
        began = time.monotonic()
        try:
            self._start()
            self._until(self._committed_after(-1))
            self._random.shuffle(self._sorts)
            for sort in self._sorts:
                self._kill(sort)
            (self._directory / "enough").touch()
            self._until(lambda: "finished" in (each["event"] for each in self._story()))
        finally:
            self._clean_up()
        self._count()
        self._report.seconds = time.monotonic() - began
        return self._report

    def _kill(self, sort: str) -> None:
        """One kill, at a moment after the query has started, or after its next commit."""
        self._until(lambda: "started" in (each["event"] for each in self._story()))
        if self._random.random() < 0.5:
            self._until(self._committed_after(_newest(self._directory, "commits")))
        moment = time.monotonic() + self._random.uniform(0, _LONGEST_WAIT_S)
        self._until(lambda: time.monotonic() > moment)
        while True:
            living = self._victims(sort)
            if sort == "step":  # not always in the first of a task's buckets
                time.sleep(self._random.uniform(0, _LONGEST_STEPS_S))
            if living and kill(self._random.choice(living)):
                break
        self._report.kills[sort] += 1
        planned, committed = (_newest(self._directory, log) for log in ("offsets", "commits"))
        self._report.in_a_batch += planned > committed
        if sort == "driver":
            assert self._driver is not None, "it has been started"
            self._driver.kill()
            self._driver.wait()
            self._start()

    def _victims(self, sort: str) -> list[Process]:
        """The living processes of a sort, in order; waits until there is one.

        A worker in a step is one that has windows in its hands. That takes milliseconds of
        a batch, so it is looked for without a pause.
        """
        if sort != "step":
            self._until(lambda: victims(self._life_mark, sort))
            return sorted(victims(self._life_mark, sort))
        while True:
            self._go_on()
            soon = time.monotonic() + _POLL_S
            while time.monotonic() < soon:
                holders = [
                    find(self._life_mark, each) for each in holding(self._directory / "scratch")
                ]
                if any(holders):
                    return [each for each in holders if each is not None]

    def _start(self) -> None:
        """Another driver. What the last one started dies by itself, or does its worst."""
        life = self._report.drivers
        self._report.drivers += 1
        tests = str(Path(__file__).parents[2])
        environment = {
            **os.environ,
            MARK: self._life_mark,
            "PYTHONPATH": os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH")])),
            "PYSPARK_PYTHON": sys.executable,
            "PENSTOCK_SCRATCH": str(self._directory / "scratch"),
            "SPARK_HOME": str(self._directory / "spark"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        command = [sys.executable, "-m", "support.kills.driver", str(self._directory)]
        command += [str(self._report.seed), str(life), self._report.master]
        with (self._directory / "drivers.log").open("ab") as log:
            self._driver = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    @property
    def _life_mark(self) -> str:
        return f"{self._mark}-{self._report.drivers}"

    def _until(self, condition: Callable[[], Any]) -> None:
        while not condition():
            self._go_on()
            time.sleep(_POLL_S)

    def _go_on(self) -> None:
        """See that all is well, and keep the input ahead of the query."""
        if self._driver is not None and self._driver.poll() is not None:
            raise AssertionError(f"the driver ended by itself\n{self._told()}")
        if time.monotonic() > self._deadline:
            raise AssertionError(f"no end in sight\n{self._told()}")
        if not (self._directory / "enough").exists():
            read = _files_read(self._directory)
            self._feed.write(max(0, read + _AHEAD - self._feed.files))

    def _committed_after(self, batch: int) -> Callable[[], bool]:
        return lambda: _newest(self._directory, "commits") > batch

    def _story(self, life: int | None = None) -> Iterator[dict[str, Any]]:
        """What a driver has told; the line it died in is left out."""
        life = self._report.drivers - 1 if life is None else life
        file = self._directory / f"life-{life}.jsonl"
        text = file.read_text() if file.exists() else ""
        return (json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n")

    def _told(self) -> str:
        log = (self._directory / "drivers.log").read_text(errors="replace")
        return f"{self._report}\n{list(self._story())[-5:]}\n{log[-4000:]}"

    def _clean_up(self) -> None:
        for life in range(self._report.drivers + 1):
            kill_all(f"{self._mark}-{life}")
        if self._driver is not None:
            self._driver.kill()
            self._driver.wait()

    def _count(self) -> None:
        for life in range(self._report.drivers):
            for each in self._story(life):
                self._report.failed_queries += each["event"] == "failed"
                self._report.rebuilt += each.get("rebuilt") or 0
        self._report.batches = _newest(self._directory, "commits") + 1
        expected = rows_of(self._feed.answer())
        got = rows_of(pq.read_table(self._directory / "committed.parquet"))
        self._report.expected = expected.total()
        self._report.missing = (expected - got).total()
        self._report.surplus = (got - expected).total()


def _newest(directory: Path, log: str) -> int:
    """The number of the last batch in one of the checkpoint's logs, -1 if there is none."""
    entries = (directory / "checkpoint" / log).glob("*")
    return max((int(each.name) for each in entries if each.name.isdigit()), default=-1)


def _files_read(directory: Path) -> int:
    """How many files of the slower stream are in planned batches."""
    sources = [directory / "checkpoint" / "sources" / str(number) for number in range(2)]
    return min(map(_files_in_log, sources))


def _files_in_log(log: Path) -> int:
    """A log of Spark's has a file for a batch; every tenth holds all that went before it."""
    compacted = max((int(each.stem) for each in log.glob("*.compact")), default=-1)
    entries = [each for each in log.glob("*") if each.stem.isdigit()]
    counted = [each for each in entries if int(each.stem) > compacted or each.suffix]
    counted = [each for each in counted if int(each.stem) >= compacted]
    return sum(len(each.read_text().splitlines()) - 1 for each in counted)  # a version first


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    columns = [table[name].to_pylist() for name in sorted(table.column_names)]
    return Counter(zip(*columns, strict=True))
