"""The engine: what a running join, a bucket on Spark and a batch DataFrame all hold.

A batch of each stream is released (late rows, rows without a key and filtered rows leave, the rest
is put in order) and then run through the loop, at once or when its turn comes:

    intake -> release -> gate -> driver -> results

All that can be refused about a batch is refused by `release`, before anything has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.engine.arrivals import Arrivals, Intake
from penstock.engine.driver import Driver
from penstock.engine.gate import Gate
from penstock.engine.promises.marked_rows import split
from penstock.engine.promises.promises import Promise
from penstock.engine.release import Breaks, Released, alone_in, release
from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.windows.allocator import Allocator

__all__ = ["Engine"]


class Engine:
    """driver: over the windows. gate: before it, with the tuples whose turn has not come."""

    def __init__(
        self,
        binding: Binding,
        plan: Plan,
        memory: Allocator | None = None,
        *,
        by_contents: bool = False,
        keep_matched: bool = False,
        forgets_early: bool = True,
    ) -> None:
        """by_contents: break ties of one time by what is in tuples, not by their arrival.
        keep_matched, forgets_early: as in `Driver`."""
        self.driver = Driver(
            binding, plan, memory, keep_matched=keep_matched, forgets_early=forgets_early
        )
        self.gate = Gate(binding.query, by_contents=by_contents)

    def release(
        self, binding: Binding, intakes: Mapping[int, Intake], watermark: int
    ) -> dict[int, Released]:
        """What a batch brings to the loop, bound to schemas that may be new. A batch that is
        refused leaves nothing behind."""
        released: dict[int, Released] = {}
        promises, breaks = self.driver.promises, None
        with self.gate.unless_refused():
            for stream in intakes if promises is None else promises.derived.sources_first(intakes):
                if promises is not None:
                    before = {each: other.arrivals for each, other in released.items()}
                    breaks = partial(promises.broken, binding, before)
                intake = intakes[stream]
                released[stream] = self._released(binding, stream, intake, watermark, breaks)
        return released

    def _released(
        self, binding: Binding, stream: int, intake: Intake, watermark: int, breaks: Breaks | None
    ) -> Released:
        marked = split(binding, stream, intake)
        released = release(binding, stream, intake, watermark, breaks, marked.tuples)
        identified = self.gate.identified(binding, stream, released.arrivals)
        return released._replace(arrivals=identified, marked=marked)

    def take(
        self,
        released: Mapping[int, Released],
        watermark: int,
    ) -> pa.Table:
        """The results of a released batch, and of what has waited for this watermark."""
        arrivals = {stream: each.arrivals for stream, each in released.items()}
        marked = [each.marked.closing for each in released.values() if each.marked is not None]
        closings = [each for each in marked if each is not None]
        return self._enter(arrivals, watermark, alone_in(released), closings)

    def run(
        self,
        arrivals: Mapping[int, Arrivals],
        watermark: int,
        alone: Mapping[int, Arrivals] | None = None,
    ) -> pa.Table:
        """The same of arrivals that were put together otherwise, and are not identified yet."""
        binding = self.driver.binding
        identified = {
            stream: self.gate.identified(binding, stream, each) for stream, each in arrivals.items()
        }
        return self._enter(identified, watermark, alone)

    def pass_time(self, watermark: int, closings: Sequence[Promise] = ()) -> pa.Table:
        """The results that the watermark alone brings out, or promises."""
        return self._enter({}, watermark, None, closings)

    def _enter(
        self,
        arrivals: Mapping[int, Arrivals],
        watermark: int,
        alone: Mapping[int, Arrivals] | None = None,
        closings: Sequence[Promise] = (),
    ) -> pa.Table:
        """alone: tuples that come out without having been in a window, at once."""
        entry = self.gate.let_in(arrivals, watermark)
        results = self.driver.run(entry.arrivals, entry.watermark, alone, closings)
        self.gate.forget_keys(self.driver.windows)
        return results

    @property
    def earliest(self) -> int | None:
        """The time that the watermark must be past for something to happen by itself."""
        # Where arrivals are counted, ends are numbers, and only what comes moves them on.
        counts_arrivals = self.driver.binding.query.counts_arrivals
        first_end = None if counts_arrivals else self.driver.first_end
        times = [self.gate.earliest, first_end]
        return min((each for each in times if each is not None), default=None)

    def dump(self) -> dict[str, Any]:
        """Everything in it, as plain values, record batches, and the buffers themselves."""
        waiting = self.gate.dump() if self.driver.binding.query.counts else None
        return {"driver": self.driver.dump(), "waiting": waiting}

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Restore what an engine of the same binding and plan dumped, on its buffers."""
        self.driver.load(dumped["driver"])
        if dumped["waiting"] is not None:
            self.gate.load(dumped["waiting"], self.driver.binding)
