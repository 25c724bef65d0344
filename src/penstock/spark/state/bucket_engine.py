"""The engine of a bucket: its windows, and the tuples that wait to enter them.

On Spark rows come to a bucket in no order that another attempt would see again. So tuples of one
stream and one instant take their turns by what is in them: what is joined is then a function of
the data, not of the attempt, the partitions or the batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals
from penstock.engine.driver import NUMBER
from penstock.engine.engine import Engine
from penstock.engine.intake import event_times
from penstock.engine.promises.promises import Promise
from penstock.kernels import matches, ring
from penstock.kernels.arena import Flags, Words
from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.windows.allocator import Allocator

__all__ = ["BucketEngine"]


class BucketEngine(Engine):
    """The engine of a bucket, with what only its cold state asks for."""

    def __init__(self, binding: Binding, plan: Plan, memory: Allocator | None = None) -> None:
        # Whether tuples may leave before their window ends: they are shed, or go by promises and,
        # in semi joins, once they have matched. If not, time says which remain, and flags which
        # have matched.
        self.leaves_early = plan.limits is not None or binding.query.promises
        # Then they have numbers. Under limits the windows know them.
        self._numbered = self.leaves_early and plan.limits is None
        self.next_numbers = [0] * len(binding.query.streams)
        super().__init__(
            binding,
            plan,
            memory,
            by_contents=True,
            keep_matched=not self.leaves_early,
            numbered=self._numbered,
        )

    def run(
        self,
        arrivals: Mapping[int, Arrivals],
        watermark: int,
        alone: Mapping[int, Arrivals] | None = None,
        closings: Sequence[Promise] = (),
    ) -> pa.Table:
        if self._numbered:
            arrivals = {s: self._with_numbers(s, each) for s, each in arrivals.items()}
        return super().run(arrivals, watermark, alone, closings)

    def _with_numbers(self, stream: int, arrivals: Arrivals) -> Arrivals:
        first = self.next_numbers[stream]
        self.next_numbers[stream] += len(arrivals)
        return self.renumbered(arrivals, np.arange(first, self.next_numbers[stream]))

    def renumbered(self, arrivals: Arrivals, numbers: Words) -> Arrivals:
        """The same with their numbers, if these are kept with the tuples."""
        if not self._numbered:
            return arrivals
        return replace(arrivals, columns={**arrivals.columns, NUMBER: pa.array(numbers)})

    def numbers(self, window: int, sequences: Words) -> Words:
        """The numbers of tuples in a window, or of ghosts, if some may leave early."""
        windows = self.driver.windows
        if not self._numbered:
            return windows.numbers(window, sequences)
        payload = windows.payloads[window]
        assert payload is not None, "on Spark every stream is bound"
        numbers: Words = payload.take(NUMBER, sequences).to_numpy()
        return numbers

    def matched(self, stream: int, begin: int) -> Flags:
        """Which tuples of a window have matched, of those from a time on, oldest first."""
        windows = self.driver.windows
        live = windows.live_sequences(stream)
        live = live[windows.timestamps(stream, live) >= begin]
        flags = np.empty(len(live), np.bool_)
        matches.are_matched(windows.state, stream, live, flags)
        return flags

    def restore_matched(self, stream: int, ends: int, matched: Callable[[int], Flags]) -> None:
        """Mark the tuples that had matched in a window that has been filled. If tuples may leave
        early, those that had matched are buried.

        ends: the watermark at which it was left. matched: which of the N that are still in it had
        matched. The others have had their end, and must not come out again.
        """
        windows = self.driver.windows
        ring.expire(windows.state, stream, ends)
        live = windows.live_sequences(stream)
        done = np.ones(windows.head(stream), np.bool_)
        done[live] = matched(len(live))
        sequences = np.flatnonzero(done)
        if self.leaves_early:
            are_first = np.empty(len(sequences), np.bool_)
            matches.first_matches(windows.state, stream, sequences, True, are_first)
        else:
            matches.mark(windows.state, stream, sequences)

    def oldest(self, stream: int) -> int | None:
        """The event time of the oldest tuple in a window; None when there is none."""
        windows, binding = self.driver.windows, self.driver.binding
        tail, head = windows.tail_and_head(stream)
        if tail == head:
            return None
        first = np.array([tail])
        if not binding.query.counts_arrivals:
            return int(windows.timestamps(stream, first)[0])
        # There the windows have numbers in the place of times.
        payload, name = windows.payloads[stream], binding.query.streams[stream].time_column
        assert payload is not None, "on Spark every stream is bound"
        column = pa.RecordBatch.from_arrays([payload.take(name, first)], [name])
        return event_times(binding.query, stream, column).earliest
