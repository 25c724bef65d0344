"""What there is to see of the demo at a moment: its query, its previews, what it waits for."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Final

import pyarrow as pa

from penstock.cli.demo.preview import Preview

__all__ = ["HISTORY", "DemoState", "Wait"]

HISTORY: Final = 36


@dataclass(frozen=True)
class Wait:
    """text: what is going on, and about how long that takes."""

    text: str
    since: float = field(default_factory=time.perf_counter)

    def __str__(self) -> str:
        return f"{self.text}: {time.perf_counter() - self.since:.0f} s so far"


@dataclass
class DemoState:
    """The demo so far.

    total: rows there are to read. rows: read of each stream. seconds, batch_rows: of each
    batch. first_batch_at: when the first one had ended, on the clock of `time.perf_counter`.
    speeds: rows a second of all streams, batch by batch. lag_us: of the watermark, behind the
    newest event time. preview: what the embedded engine found meanwhile. waits: by what they
    are for.
    """

    title: str
    total: int
    rows: dict[str, int]
    started: float = field(default_factory=time.perf_counter)
    first_results_s: float | None = None
    first_batch_at: float | None = None
    seconds: list[float] = field(default_factory=list)
    batch_rows: list[int] = field(default_factory=list)
    stream_speeds: dict[str, float] = field(default_factory=dict)
    speeds: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    results: int = 0
    late: int = 0
    live: int = 0
    peak_live: int = 0
    bytes: int = 0
    rebuilt: int = 0
    lag_us: int | None = None
    examples: pa.Table | None = None
    preview: Preview | None = None
    waits: dict[str, Wait] = field(default_factory=dict)

    @property
    def elapsed_s(self) -> float:
        """Since the command began."""
        return time.perf_counter() - self.started

    @property
    def after_first_batch_s(self) -> float:
        """Since the first batch ended; 0 before."""
        return 0.0 if self.first_batch_at is None else time.perf_counter() - self.first_batch_at

    @property
    def all_rows(self) -> int:
        """Read of all streams together."""
        return sum(self.rows.values())

    @property
    def batch_s(self) -> float:
        """The median of the batches' times."""
        return median(self.seconds or [0.0])

    @property
    def steady_speed(self) -> float:
        """Rows a second, of batches without the first: that one starts the workers."""
        rows, seconds = self.batch_rows, self.seconds
        steady = slice(1, None) if len(rows) > 1 else slice(None)
        return sum(rows[steady]) / max(sum(seconds[steady]), 1e-9)

    def wait(self, what_for: str, text: str) -> None:
        """From now on, wait for this. Without a text: no longer."""
        # Anew, not changed: the display goes through them in a thread of its own.
        others = {key: wait for key, wait in self.waits.items() if key != what_for}
        self.waits = {**others, what_for: Wait(text)} if text else others
