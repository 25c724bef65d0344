"""What a benchmark hands back, and how contestants take turns on the clock."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Measurement", "Times", "interleave", "seconds"]


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


@dataclass
class Times:
    """Seconds of several runs of one thing, on the wall clock and of the processor."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The middle one on the wall clock."""
        return statistics.median(self.wall)

    @property
    def best(self) -> float:
        """The shortest on the wall clock."""
        return min(self.wall)

    @property
    def best_processor(self) -> float:
        """The shortest of the processor, which other work on the machine disturbs least."""
        return min(self.processor)


def seconds(run: Callable[[], object]) -> tuple[float, float]:
    """How long one run takes, on the wall clock and of the processor."""
    gc.collect()
    wall, processor = time.perf_counter(), time.process_time()
    result = run()
    taken = time.perf_counter() - wall, time.process_time() - processor
    del result  # kept until now, so that freeing it is not in the time
    return taken


def interleave(rounds: int, *runs: Callable[[], object]) -> list[Times]:
    """The times of each run. They take turns (A B A B …), so that a slow spell of the
    machine falls on all of them."""
    times = [Times() for _ in runs]
    for _ in range(rounds):
        for run, taken in zip(runs, times, strict=True):
            wall, processor = seconds(run)
            taken.wall.append(wall)
            taken.processor.append(processor)
    return times
