"""The service rate: how it is allocated to the streams, from how fast they come.

Before a chunk is worked on, rates are estimated from what has come of late, and the service rate
is allocated so that the most results are to be expected (shedding.allocation); each stream then
has a chance, the part of its tuples that is dealt with. Before the first tuple, rates come from
what waits to be worked on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

import numpy as np
import numpy.typing as npt

from penstock.kernels.arena import Words
from penstock.kernels.sentinels import BEGINNING, NO_LIMIT
from penstock.model.limits import Limits
from penstock.model.query import Query
from penstock.model.window import FOREVER
from penstock.shedding.allocation import allocate_both, allocate_cpu, allocate_memory
from penstock.shedding.output_rate import checked_drop, output_rate
from penstock.shedding.sharing import portions
from penstock.windows.windows import Windows

__all__ = ["Service"]

Rates = npt.NDArray[np.float64]

_SECOND_US: Final = 1_000_000.0
_LN_2: Final = float(np.log(2.0))
_LOOKS: Final = {"exact": 1.0, "sampled": 1 / 16, "off": 0.0}
_LEAST_RATE: Final = 1e-300
_WORTH_IT: Final = 1.1
_FEW: Final = 64  # arrivals that change rates little


class Service:
    """Of one join, with a service rate or without."""

    def __init__(self, limits: Limits, windows: Windows) -> None:
        self.windows = windows
        self._looked_at = -1
        self.limit(limits)
        windows.state.budget["credited_at"] = windows.state.budget["began"] = BEGINNING
        windows.state.quotas["chance"] = 1.0

    def limit(self, limits: Limits) -> None:
        """Keep these limits from now on."""
        self._limits = limits
        budget = self.windows.state.budget[0]
        budget.service_rate = (limits.service_rate or 0.0) / _SECOND_US
        budget.drops = limits.drop == "tuple"
        budget.looks = _LOOKS[limits.loss]
        self._looked_at = -1

    def allocate(self, query: Query, times: Mapping[int, Words]) -> None:
        """Give each stream its chance, and its part of the memory, before arrivals with these
        times."""
        limits, state = self._limits, self.windows.state
        if limits.service_rate is None and limits.pool != "allocated":
            return
        arrived = int(state.quotas["arrived"].sum())
        if self._looked_at >= 0 and arrived - self._looked_at < _FEW:
            return
        rates = self._rates() if arrived else _rates_of(times, len(query.names))
        if not rates.any():
            return
        self._looked_at = arrived
        if limits.pool == "allocated":
            self._divide(query, rates)
        served = self._served(query, rates, self._tuples(query, rates))
        # A stream that has not come yet is not held up when it does.
        state.quotas["chance"] = np.where(
            rates > 0, np.minimum(served / np.maximum(rates, _LEAST_RATE), 1.0), 1.0
        )

    def _divide(self, query: Query, rates: Rates) -> None:
        """Give each stream its part of the memory. What is kept for another division is lost, so
        it must be worth it: of streams that are as fast either may be ahead by chance."""
        limits, quotas = self._limits, self.windows.state.quotas
        rows, whole = max(limits.memory.rows, 1), self._whole(query, rates)
        probing = [rates.tolist()]
        if limits.service_rate is not None and limits.drop == "probe":
            probing.append(list(allocate_both(rows, limits.service_rate, probing[0]).rates))
        divisions = [allocate_memory(each, rows, caps=whole) for each in probing]

        def expected(windows: Sequence[float]) -> float:
            return output_rate(rates.tolist(), windows, self._served(query, rates, windows))

        best = max(divisions, key=expected)
        if expected(best) > _WORTH_IT * expected(np.minimum(quotas["rows"], whole).tolist()):
            quotas["rows"] = portions(limits.memory.rows, best)

    def _served(self, query: Query, rates: Rates, tuples: Sequence[float]) -> Rates:
        """How many tuples of each stream are dealt with in a second, if windows hold `tuples`."""
        limits = self._limits
        if limits.service_rate is None:
            return rates
        floors = [
            min(limits.floors.get(name, 0.0), rate)
            for name, rate in zip(query.names, rates.tolist(), strict=True)
        ]
        drop = checked_drop(limits.drop)
        return np.array(allocate_cpu(rates.tolist(), tuples, limits.service_rate, drop, floors))

    def _rates(self) -> Rates:
        """Tuples a second of each stream. What counts half after a half-life adds up to
        rate * half-life / ln 2, once that has gone on for long."""
        state = self.windows.state
        budget = state.budget[0]
        passed = float(budget.newest - budget.began)
        counted: Rates = state.quotas["came"] * budget.shrink * _SECOND_US
        if passed <= 0.0:
            return np.zeros(len(counted))
        half_life = float(budget.half_life)
        if half_life >= NO_LIMIT:
            return counted / passed
        return counted * _LN_2 / (half_life * -np.expm1(-_LN_2 * passed / half_life))

    def _tuples(self, query: Query, rates: Rates) -> list[float]:
        """Tuples in each window: as many as come in its time, or as are there, if that is no
        measure."""
        live = [float(self.windows.live(stream)) for stream in range(len(rates))]
        if self._limits.pool == "allocated":
            room = self.windows.state.quotas["rows"]
            return np.minimum(room, self._whole(query, rates)).tolist()
        if self._limits.memory.is_limited:
            return live
        return [
            n if whole == inf else whole
            for n, whole in zip(live, self._whole(query, rates), strict=True)
        ]

    def _whole(self, query: Query, rates: Rates) -> list[float]:
        """Tuples in each window when nothing is dropped; of one that does not end, as many as
        there can be."""
        # A stream that has to come first by some time has ends that lie before it.
        lengths = [window.slot_us or max(window.length_us, 0) for window in query.windows]
        rows = self._limits.memory.rows
        most = inf if rows is None else float(rows)
        return [
            rate * length / _SECOND_US if length < FOREVER else most
            for rate, length in zip(rates.tolist(), lengths, strict=True)
        ]


def _rates_of(times: Mapping[int, Words], streams: int) -> Rates:
    """Tuples a second of arrivals with these times, in order; none if they are of one instant."""
    rates = np.zeros(streams)
    given = {stream: ts for stream, ts in times.items() if len(ts)}
    if not given:
        return rates
    span = max(int(ts[-1]) for ts in given.values()) - min(int(ts[0]) for ts in given.values())
    for stream, ts in given.items():
        rates[stream] = len(ts) * _SECOND_US / span if span else 0.0
    return rates
