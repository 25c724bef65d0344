"""One clock: the watermarks of the streams and of the join.

A stream's watermark is its newest event time less its lateness, or what it was advanced to
by hand, whichever is later. If its jumps are capped, a gap in its times that is longer than
the cap moves it on by no more than the cap in one push. The join's is the lowest of them; a
stream that has been silent for longer than its idle timeout is left out. The join's watermark
never goes back, so a stream that returns behind it is late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from penstock.kernels.arena import Words
from penstock.kernels.sentinels import BEGINNING, END_OF_TIME
from penstock.model.arrival_time import ARRIVAL
from penstock.model.query import Query

__all__ = ["BEGINNING", "END_OF_TIME", "Clock"]


class Clock:
    """Watermarks in microseconds; `now` is the wall clock, in seconds."""

    def __init__(self, query: Query, now: Callable[[], float]) -> None:
        self._lateness = [stream.lateness_us for stream in query.streams]
        self._max_jumps = [stream.max_jump_us for stream in query.streams]
        self._timeouts = [stream.idle_timeout_us for stream in query.streams]
        self._by_arrival = [
            number for number, stream in enumerate(query.streams) if stream.time is ARRIVAL
        ]
        self._may_idle = any(timeout is not None for timeout in self._timeouts)
        self._now = now
        self._heard = [now()] * len(query.streams)
        self.watermarks = [BEGINNING] * len(query.streams)
        self.watermark = BEGINNING
        self._brought = [BEGINNING] * len(query.streams)

    def now(self) -> int:
        """The join's watermark at this moment, streams that fell silent left out."""
        return self._lowest(self.watermarks, {})

    def arrival(self, wall_clock: Callable[[], float], watermark: int) -> int:
        """The time of what arrives now. watermark: the join's.

        It is never before what has arrived already, nor late, however the wall clock is set.
        """
        if not self._by_arrival:
            return watermark
        reached = [self.watermarks[stream] for stream in self._by_arrival]
        return max([round(wall_clock() * 1e6), watermark, *reached])

    def reached(self, stream: int, times: Words, latest: int) -> tuple[int, int]:
        """The newest time that moves the watermark once these have come, of which `latest` is the
        greatest; and how many are beyond it, behind a gap that is longer than the cap.

        Before the first push no time is known: its median stands for it, which neither a wrong
        time far ahead nor one far behind can move.
        """
        cap = self._max_jumps[stream]
        self._brought[stream] = max(self._brought[stream], latest)
        if cap is None:
            return latest, 0
        is_first = self.watermarks[stream] == BEGINNING
        before = self.watermarks[stream] + self._lateness[stream]
        if not is_first and latest <= before + cap:
            return latest, 0
        in_order = np.sort(times)
        if is_first:
            before = int(in_order[(len(in_order) - 1) // 2])
        ahead = in_order[np.searchsorted(in_order, before, "right") :]
        gaps = np.flatnonzero(np.diff(ahead, prepend=before) > cap)
        if not len(gaps):
            return latest, 0
        first = int(gaps[0])
        last_before = before if first == 0 else int(ahead[first - 1])
        return last_before + cap, len(ahead) - first

    def greatest(self, stream: int) -> int:
        """The greatest time that a stream has brought."""
        watermark = self.watermarks[stream]
        if watermark == BEGINNING:
            return self._brought[stream]
        # What it brought before a restart moved its watermark.
        return max(self._brought[stream], watermark + self._lateness[stream])

    def after(self, newest: Mapping[int, int], before: int) -> tuple[list[int], int]:
        """The streams' and the join's watermark once tuples up to `newest` are in.

        before: the join's watermark until then, which it never falls behind.
        """
        watermarks = list(self.watermarks)
        for stream, ts in newest.items():
            watermarks[stream] = max(watermarks[stream], ts - self._lateness[stream])
        return watermarks, max(before, self._lowest(watermarks, newest))

    def _lowest(self, watermarks: list[int], speaking: Mapping[int, int]) -> int:
        if not self._may_idle:
            return max(self.watermark, min(watermarks))
        now = self._now()
        heeded = [
            watermarks[stream]
            for stream, timeout_us in enumerate(self._timeouts)
            if stream in speaking
            or timeout_us is None
            or (now - self._heard[stream]) * 1e6 <= timeout_us
        ]
        # While every stream is idle, nothing shows how far time has come.
        return max(self.watermark, min(heeded, default=self.watermark))

    def settle(self, after: tuple[list[int], int], heard: Mapping[int, int]) -> None:
        """Make what `after` returned the present."""
        self.watermarks, self.watermark = after
        now = self._now()
        for stream in heard:
            self._heard[stream] = now

    def advance(self, stream: int, ts: int) -> None:
        """Promise that no tuple of a stream before `ts` is still to come."""
        self.watermarks[stream] = max(self.watermarks[stream], ts)
        self.settle(self.after({}, self.now()), {})

    def restore(self, watermarks: list[int], watermark: int) -> None:
        """Go on from these watermarks; silence is counted from now."""
        self.watermarks, self.watermark = watermarks, watermark

    def listen(self, heard: Sequence[float]) -> None:
        """Count silence from these moments of the wall clock."""
        self._heard = list(heard)

    def finish(self) -> None:
        """All streams have ended."""
        self.watermarks = [END_OF_TIME] * len(self.watermarks)
        self.watermark = END_OF_TIME
