"""What a benchmark hands back, and how contestants take turns on the clock."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Measurement", "best", "interleave", "median", "seconds"]


@dataclass(frozen=True)
class Measurement:
    """One number and the bound it has to keep."""

    name: str
    what: str
    measured: float
    required: float
    at_least: bool
    unit: str = "times"
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether the number keeps its bound."""
        if self.at_least:
            return self.measured >= self.required
        return self.measured <= self.required


def seconds(run: Callable[[], object]) -> float:
    """How long one run takes. What it returns is freed before the clock is read again."""
    gc.collect()
    start = time.perf_counter()
    result = run()
    elapsed = time.perf_counter() - start
    del result
    return elapsed


def interleave(rounds: int, *runs: Callable[[], object]) -> list[list[float]]:
    """The seconds of each run in each round. They take turns (A B A B …), so that a slow
    spell of the machine falls on all of them."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, taken in zip(runs, times, strict=True):
            taken.append(seconds(run))
    return times


def median(times: list[float]) -> float:
    """The middle one."""
    return statistics.median(times)


def best(times: list[float]) -> float:
    """The shortest one."""
    return min(times)
