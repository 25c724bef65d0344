"""The engine: what a running join, a bucket on Spark and a batch DataFrame all hold.

A batch of each stream is released (late rows, rows without a key and filtered rows leave, the rest
is put in order) and then run through the loop, at once or when its turn comes:

    intake -> release -> gate -> driver -> results

All that can be refused about a batch is refused by `release`, before anything has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.arrivals import Arrivals, Intake
from penstock.engine.driver import Driver
from penstock.engine.gate import Gate
from penstock.engine.promises.promises import Promise
from penstock.engine.release import Released, alone_in, closings_in, release_all
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
        numbered: bool = False,
    ) -> None:
        """by_contents: break ties of one time by what is in tuples, not by their arrival.
        keep_matched, numbered: as in `Driver`."""
        self.driver = Driver(binding, plan, memory, keep_matched=keep_matched, numbered=numbered)
        self.gate = Gate(binding.query, by_contents=by_contents)

    def release(
        self, binding: Binding, intakes: Mapping[int, Intake], watermark: int
    ) -> dict[int, Released]:
        """What a batch brings to the loop, bound to schemas that may be new. A batch that is
        refused leaves nothing behind."""
        with self.gate.unless_refused():
            released = release_all(binding, intakes, watermark, self.driver.promises)
            return {
                stream: each._replace(arrivals=self.gate.identified(binding, stream, each.arrivals))
                for stream, each in released.items()
            }

    def take(
        self,
        released: Mapping[int, Released],
        watermark: int,
    ) -> pa.Table:
        """The results of a released batch, and of what has waited for this watermark."""
        arrivals = {stream: each.arrivals for stream, each in released.items()}
        return self._enter(arrivals, watermark, alone_in(released), closings_in(released))

    def run(
        self,
        arrivals: Mapping[int, Arrivals],
        watermark: int,
        alone: Mapping[int, Arrivals] | None = None,
        closings: Sequence[Promise] = (),
    ) -> pa.Table:
        """The same of arrivals that were put together otherwise, and are not identified yet."""
        binding = self.driver.binding
        identified = {
            stream: self.gate.identified(binding, stream, each) for stream, each in arrivals.items()
        }
        return self._enter(identified, watermark, alone, closings)

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
        promises = self.driver.promises
        times = [self.gate.earliest, first_end, None if promises is None else promises.earliest]
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
