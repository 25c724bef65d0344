"""A contest on Spark: the same input for all, each contestant in a process of its own.

They come one after the other, penstock first and last, so that a machine that turns slower or
faster shows in the numbers. Every one has the same memory, two cores and two partitions.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.process_tree import TreeMemory
from benchmarks.spark_child import CONTESTANTS, Outcome, Task
from benchmarks.spark_input import Shape, write_input
from benchmarks.subject import join_within

__all__ = ["PENSTOCK", "SPARKS_OWN", "Run", "compete", "directory_of_input", "run_alone"]

PENSTOCK: Final = "penstock"
SPARKS_OWN: Final = tuple(name for name in CONTESTANTS if name.startswith("spark"))
WINDOW_S: Final = 60
_DRIVER_MEMORY: Final = "4g"
_SAMPLE_EVERY_S: Final = 0.5
_LONGEST_S: Final = 1200.0
_HERE: Final = str(Path(__file__).resolve().parent.parent)


@dataclass(frozen=True)
class Run:
    """What a contestant did. warm_up: how many of the first batches do not count."""

    contestant: str
    warm_up: int
    outcome: Outcome
    peak_bytes: int

    @property
    def steady_s(self) -> list[float]:
        """Seconds of the batches that count."""
        return self.outcome.batch_s[self.warm_up :]

    @property
    def median_s(self) -> float:
        """The middle one of them."""
        return statistics.median(self.steady_s)

    @property
    def processor_s(self) -> float:
        """The middle one of the batches that count, in seconds of the processor."""
        known = [each for each in self.outcome.processor_s[self.warm_up :] if not math.isnan(each)]
        return statistics.median(known)

    def described(self) -> dict[str, Any]:
        """The numbers, for the record."""
        return {
            "batch_s": self.outcome.batch_s,
            "median_s": self.median_s,
            "processor_s": self.processor_s,
            "state_mb": self.outcome.state_bytes / 1e6,
            "peak_mb": self.peak_bytes / 1e6,
        }


def compete(shape: Shape, contestants: Sequence[str], warm_up: int) -> list[Run]:
    """The runs of all contestants on one input. Their answers must have the same size."""
    with directory_of_input(shape) as directory:
        runs = [run_alone(contestant, directory, warm_up) for contestant in contestants]
    results = {run.contestant: run.outcome.results for run in runs}
    if len(set(results.values())) > 1:
        raise AssertionError(f"the numbers of results differ: {results}")
    batches = {run.contestant: len(run.outcome.batch_s) for run in runs}
    if set(batches.values()) != {shape.batches}:
        raise AssertionError(f"expected {shape.batches} batches, got {batches}")
    return runs


@contextmanager
def directory_of_input(shape: Shape) -> Iterator[Path]:
    """The input in a temporary directory, and the kernels compiled."""
    with join_within(f"{WINDOW_S} seconds").start() as join:
        join.push({name: shape.work.table(name, 0, 1000) for name in shape.work.streams})
    with tempfile.TemporaryDirectory(prefix="penstock-benchmark-") as directory:
        write_input(shape, Path(directory))
        yield Path(directory)


def run_alone(contestant: str, source: Path, warm_up: int) -> Run:
    """One contestant in a process of its own, whose memory is watched."""
    with tempfile.TemporaryDirectory(prefix="penstock-benchmark-") as scratch:
        task = Task(contestant, WINDOW_S, _DRIVER_MEMORY, str(source), scratch)
        command = [sys.executable, "-m", "benchmarks.spark_child", json.dumps(asdict(task))]
        printed, complaints = Path(scratch, "printed"), Path(scratch, "complaints")
        # For what Spark's workers import.
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), _HERE]))
        with printed.open("wb") as output, complaints.open("wb") as errors:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=errors,
                env={**os.environ, "PENSTOCK_SCRATCH": scratch, "PYTHONPATH": path},
            )
            peak_bytes = _watched(process)
        if process.returncode:
            # Without Spark's own frames, which would hide what went wrong.
            lines = complaints.read_text(encoding="utf-8").splitlines()
            said = "\n".join(line for line in lines if not line.startswith("\tat "))
            raise RuntimeError(f"{contestant} failed:\n{said[-8000:]}")
        last_line = printed.read_text().splitlines()[-1]
    return Run(contestant, warm_up, Outcome(**json.loads(last_line)), peak_bytes)


def _watched(process: subprocess.Popen[bytes]) -> int:
    """The peak of a process's memory, when it has ended."""
    memory = TreeMemory(process.pid)
    samples = int(_LONGEST_S / _SAMPLE_EVERY_S)
    try:
        for _ in range(samples):
            memory.sample()
            try:
                process.wait(_SAMPLE_EVERY_S)
            except subprocess.TimeoutExpired:
                continue
            return memory.peak_bytes
        raise RuntimeError(f"{process.args!r} did not end within {_LONGEST_S} s")
    finally:
        process.kill()  # Spark's own processes end with it
