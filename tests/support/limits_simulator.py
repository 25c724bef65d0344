"""The simulated Spark (simulator.py), with joins under limits.

What the committed attempts give out is part of the oracle's answer, and the rest of it is what
they count as lost, batch by batch; in semi joins when all is over, since a row that has met only
what was dropped may yet meet something else. After each committed step a bucket holds no more
than its share. Whatever fails, nothing is lost uncounted, and nothing is counted twice.

To replay a seed: `PYTHONPATH=tests .venv/bin/python -m support.limits_simulator 1234`.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock.model.limits import DROPS, POLICIES, Memory
from penstock.spark.limit_checks import least_bytes
from penstock.spark.state.bucket import BucketStep
from penstock.spark.state.bucket_engine import BucketEngine
from penstock.spark.state.hot import HotState, ProcessMemory
from penstock.spark.state.mapped import MappedFiles
from support.simulator import Simulation


class CheckedMemory(ProcessMemory):
    """In which nothing is kept that is not what it should be."""

    def publish(self, bucket: str, token: str, share: BucketEngine) -> None:
        share.driver.check()
        super().publish(bucket, token, share)


class CheckedFiles(MappedFiles):
    """The same of files."""

    def publish(self, bucket: str, token: str, share: BucketEngine) -> None:
        share.driver.check()
        super().publish(bucket, token, share)


class LimitedSimulation(Simulation):
    """One run of one seed. Each third seed joins three streams."""

    joins = ("inner", "semi")

    def __init__(self, seed: int, scratch: Path) -> None:
        random = np.random.default_rng([seed, 1])
        draw = random.random()
        service: dict[str, Any] = {}
        if random.random() < 0.3:  # about a million rows come in a second of event time
            service["service_rate"] = float(random.choice([1, 1e5, 1e6]))
            service["drop"] = str(random.choice(DROPS))
            self.joins = ("inner",)
        self.limits = ps.Limits(
            memory=Memory(rows=int(random.choice([0, 1, 4, 10, 30]))),
            shed=str(random.choice(list(POLICIES))),
            pool=str(random.choice(["shared", "fixed"])),
            loss="off" if draw < 0.1 else "exact",
            ghosts=int(random.integers(1, 8)) if draw > 0.85 else None,
            seed=seed,
            statistics="4 KiB",
            **service,
        )
        super().__init__(seed, scratch)
        if random.random() < 0.15:
            self._limit_bytes(int(random.choice([100, 2_000, 20_000])))
        self._lost = 0.0
        self._missing: Counter[Any] = Counter()  # of semi joins, what may come later

    def _limit_bytes(self, more: int) -> None:
        """Give each bucket so much more than it takes when it is empty."""
        least = max(least_bytes(self._binding, plan) for plan in self._plans)
        assert self.limits is not None
        self.limits = replace(self.limits, memory=Memory(bytes=self._buckets * (least + more)))
        self._plans = [replace(plan, limits=self.limits) for plan in self._plans]

    def _worker(self) -> HotState:
        if self._random.random() < 0.2:
            return CheckedMemory()
        return CheckedFiles(self._scratch, "query")

    def run(self) -> None:
        super().run()
        if self._is_exact:
            assert self._lost == self._missing.total()

    @property
    def _is_exact(self) -> bool:
        """Whether losses are counted one by one."""
        assert self.limits is not None
        few = self.limits.ghosts is not None or self.limits.memory.bytes is not None
        return self.limits.loss == "exact" and not few

    def _note(self, number: int, done: BucketStep) -> None:
        assert self.limits is not None
        share = self.limits.share(number, self._buckets)
        if share.memory.rows is not None:
            assert done.live <= share.memory.rows
        else:
            assert done.bytes <= share.memory.bytes
        assert self.limits.service_rate is not None or done.unprobed == 0
        assert share.ghosts is None or done.ghosts <= share.ghosts
        assert (done.lost is None) == (self.limits.loss == "off")
        self._lost += done.lost or 0.0

    def _judge(self, got: Counter[Any], expected: Counter[Any]) -> None:
        self._missing += expected
        assert got <= self._missing
        self._missing -= got
        if self._is_exact and self._how == "inner":
            assert self._lost == self._missing.total()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        LimitedSimulation(int(sys.argv[1]), Path(directory)).run()
