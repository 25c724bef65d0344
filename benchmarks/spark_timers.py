"""Timers in the join on Spark: the penstock contestant, which notes where its time goes.

Its three Python parts are replaced by ones that note what they do when. Workers write it to
files of a directory, one line for a task; the times are those of the wall clock.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa

from benchmarks.subject import join_within
from penstock.engine import driver
from penstock.spark import operator, processor
from penstock.spark.state import bucket_batch, segments
from penstock.spark.state.mapped import MappedFiles

__all__ = ["read_times", "timed_join"]

_Item = TypeVar("_Item")

# Where each part of a bucket's step is timed: the owner of the function, and its name. What
# is called inside another part counts there only.
_PARTS: Final[list[tuple[str, Any, str]]] = [
    ("hot state", MappedFiles, "claim"),
    ("hot state", MappedFiles, "publish"),
    ("segments", segments, "write_rows"),
    ("segments", segments, "read_rows"),
    ("order", bucket_batch, "release_all"),
    ("kernel", driver, "arrive"),
    ("take", driver.Driver, "_emit"),
    ("rest of the driver", driver.Driver, "run"),
    ("state calls", processor.StateStore, "read_manifest"),
    ("state calls", processor.StateStore, "write_manifest"),
    ("state calls", processor.StateStore, "read_segment"),
    ("state calls", processor.StateStore, "write_segment"),
    ("state calls", processor.StateStore, "remove_segment"),
    ("state calls", processor.StateStore, "wake_at"),
]


class Stopwatch:
    """Seconds by what was being done; what is timed inside something else is taken off it."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._inside: list[float] = []

    def timed(self, what: str, function: Callable[[], _Item]) -> _Item:
        """The result of a call, whose time is noted."""
        self._inside.append(0.0)
        started = time.perf_counter()
        try:
            return function()
        finally:
            taken = time.perf_counter() - started
            self.seconds[what] += taken - self._inside.pop()
            if self._inside:
                self._inside[-1] += taken

    def each(self, what: str, items: Iterable[_Item]) -> Iterator[_Item]:
        """The items; the time until each comes is noted."""
        iterator, end = iter(items), object()
        while True:
            item: Any = self.timed(what, lambda: next(iterator, end))
            if item is end:
                return
            yield item


_watch = Stopwatch()


@functools.cache
def _time_the_parts() -> None:
    """Once in a worker: a bucket's functions note their time."""
    for what, owner, name in _PARTS:
        function = getattr(owner, name)

        def noted(*given: Any, _function: Any = function, _what: str = what) -> Any:
            return _watch.timed(_what, lambda: _function(*given))

        setattr(owner, name, noted)


def _write(directory: str, what: str, watch: Stopwatch, task_s: float) -> None:
    path = Path(directory) / f"{os.getpid()}"
    line = {"at": time.time(), "what": what, "task": task_s, **watch.seconds}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


@dataclass(frozen=True)
class TimedMap:
    """A function for `mapInArrow` that notes its time: waiting for rows, its own work, and
    until Spark has taken what it made."""

    what: str
    inner: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    directory: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        watch, started = Stopwatch(), time.perf_counter()
        for made in watch.each("work", self.inner(watch.each("wait", batches))):
            given = time.perf_counter()
            yield made
            watch.seconds["hand over"] += time.perf_counter() - given
        _write(self.directory, self.what, watch, time.perf_counter() - started)


class TimedProcessor(processor.JoinProcessor):
    """Notes the time of a task by the parts of its steps."""

    directory = ""

    def init(self, handle: Any) -> None:
        super().init(handle)
        self._started = time.perf_counter()
        _watch.seconds.clear()

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
        _time_the_parts()
        batches = _watch.each("read blobs", rows)
        frames = super().handleInputRows(key, batches, timerValues)
        yield from _watch.each("rest of the step", frames)

    def close(self) -> None:
        super().close()
        _write(self.directory, "join", _watch, time.perf_counter() - self._started)


def timed_join(streams: dict[str, Any], window_s: int, directory: str) -> Any:
    """The join, timed; `directory` will hold the times."""
    packer, unpacker = operator.Packer, operator.Unpacker

    def timed_processor(*given: Any, **named: Any) -> TimedProcessor:
        made = TimedProcessor(*given, **named)
        made.directory = directory
        return made

    def timed_map(what: str, made_by: Callable[..., Any]) -> Callable[..., TimedMap]:
        return lambda *given, **named: TimedMap(what, made_by(*given, **named), directory)

    operator.Packer = timed_map("pack", packer)
    operator.Unpacker = timed_map("unpack", unpacker)
    operator.JoinProcessor = timed_processor
    return join_within(f"{window_s} seconds").on_spark(**streams)


def read_times(directory: Path) -> list[dict[str, Any]]:
    """What the workers have written; nothing where there is no such directory."""
    return [
        json.loads(line)
        for file in directory.glob("*")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
