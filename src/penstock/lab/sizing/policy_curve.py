"""The curve of one policy: the recall it has at each memory, and the memory a recall takes it.

Of a whole recording a point is a run: a memory, and the part of the exact results that came out. Of
a sample it is an estimate of both. What makes a tuple go is the same threshold for all keys, of
worth or age or chance; so a run of the sample shows what the whole would hold and produce with the
threshold it has come to. Heavy keys count as they are, the others for as many as they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from penstock.lab.recording.key_sample import Floats
from penstock.lab.recording.recording import Recording
from penstock.lab.sizing.curve import TOLERANCE, trace
from penstock.lab.sizing.intervals import Interval, jackknife, memory_at, recall_at
from penstock.lab.sizing.replay import Exact, Tally, replay
from penstock.model.limits import LEAST_STATISTICS, Limits, Memory

__all__ = ["Curve", "CurvePoint", "Enough", "curve_of"]


@dataclass(frozen=True)
class CurvePoint:
    """memory: in rows. interval: of the recall, where it is an estimate."""

    memory: int
    recall: float
    interval: Interval | None = None


@dataclass(frozen=True)
class Enough:
    """The least memory that has a recall. measured: the recall it had. interval: of the memory,
    where it is an estimate."""

    recall: float
    memory: int
    measured: float
    interval: Interval | None = None


@dataclass(frozen=True)
class Curve:
    """points: in order of memory. enough: for each recall that was asked for, None where no memory
    had it."""

    policy: str
    points: tuple[CurvePoint, ...]
    enough: tuple[Enough | None, ...]


@dataclass(frozen=True)
class _PolicyRun:
    """What a run says of the whole, by estimate: the first of all groups, see `sample`."""

    memories: Floats
    recalls: Floats

    @property
    def recall(self) -> float:
        return float(self.recalls[0])


def curve_of(
    recording: Recording,
    exact: Exact,
    limits: Limits,
    recalls: Sequence[float],
    tick: Callable[[], None],
) -> Curve:
    """Measure the policy of `limits`, with other memories. tick: is called before each run."""
    due = recording.weights @ exact.produced
    limits = _for_sample(recording, limits)

    def measure(rows: int) -> _PolicyRun:
        tick()
        tally = replay(recording, exact.cuts, replace(limits, memory=Memory(rows=rows)))
        return _PolicyRun(
            _memories(recording, exact, tally, rows), recording.weights @ tally.produced / due
        )

    runs = trace(measure, exact.here, recalls)
    if recording.sample is None:
        return _measured(limits.shed, runs, recalls)
    # The fewer tuples are live in a sample, the more their number goes up and down by chance.
    share = recording.sample.share
    known_to = float(np.hypot(TOLERANCE, np.sqrt((1 - share) / max(exact.here, 1))))
    of_sample = _Sampled(share, known_to)
    return _estimated(limits.shed, list(runs.values()), recalls, of_sample)


def _for_sample(recording: Recording, limits: Limits) -> Limits:
    """Statistics as much smaller as the sample is, so that they know the same part of its keys."""
    if recording.sample is None:
        return limits
    part = recording.present / max(recording.rows, 1)
    size = max(int(limits.statistics.bytes * part), LEAST_STATISTICS)
    return replace(limits, statistics=Memory(bytes=size))


def _memories(recording: Recording, exact: Exact, tally: Tally, rows: int) -> Floats:
    """What the whole would hold."""
    if recording.sample is None:
        return np.array([float(rows)])
    # What is never full is as good as the exact join.
    return exact.need.rows if tally.held is None else recording.weights @ tally.held


def _measured(policy: str, runs: Mapping[int, _PolicyRun], recalls: Sequence[float]) -> Curve:
    points = tuple(CurvePoint(memory, run.recall) for memory, run in runs.items())
    enough: list[Enough | None] = []
    for recall in recalls:
        first = next((point for point in points if point.recall >= recall), None)
        enough.append(None if first is None else Enough(recall, first.memory, first.recall))
    return Curve(policy, points, tuple(enough))


class _Sampled(NamedTuple):
    """share: of the whole. known_to: see `jackknife`."""

    share: float
    known_to: float


def _estimated(
    policy: str, runs: Sequence[_PolicyRun], recalls: Sequence[float], sampled: _Sampled
) -> Curve:
    memories = np.stack([run.memories for run in runs], axis=1)  # by estimate and run
    recalled = np.stack([run.recalls for run in runs], axis=1)
    both = list(zip(memories, recalled, strict=True))
    points = []
    for memory, recall in sorted(zip(memories[0], recalled[0], strict=True)):
        others = np.array([recall_at(*each, memory) for each in both])
        low, high = jackknife(others, sampled.share)
        points.append(CurvePoint(round(memory), float(recall), (max(low, 0.0), min(high, 1.0))))
    enough: list[Enough | None] = []
    for recall in recalls:
        if recalled[0].max() < recall:
            enough.append(None)
            continue
        taken = np.array([memory_at(*each, recall) for each in both])
        interval = jackknife(taken, sampled.share, by_factor=True, known_to=sampled.known_to)
        enough.append(Enough(recall, round(float(taken[0])), recall, interval))
    return Curve(policy, tuple(points), tuple(enough))
