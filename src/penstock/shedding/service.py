"""The service rate: how it is allocated to the streams, from how fast they come.

Before a chunk is worked on, rates are told by what has come of late, and the service rate is
allocated so that the most results are to be expected (shedding.allocation); each stream then has
a chance, the part of its tuples that is dealt with. Before anything is known of a stream, what
waits to be worked on tells it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from penstock.model.limits import Limits
from penstock.model.query import Query
from penstock.model.window import FOREVER
from penstock.shedding.allocation import allocate_cpu
from penstock.shedding.output_rate import checked_drop
from penstock.state.arena import Words
from penstock.state.budget import NO_LIMIT
from penstock.state.windows import Windows

__all__ = ["Service"]

_SECOND_US: Final = 1_000_000.0
_LN_2: Final = float(np.log(2.0))
_LOOKS: Final = {"exact": 1.0, "sampled": 1 / 16, "off": 0.0}
_FEW: Final = 64  # arrivals that change rates little


class Service:
    """Of one join, with a service rate or without."""

    def __init__(self, limits: Limits, windows: Windows) -> None:
        self.windows = windows
        self._looked_at = -1
        self.limit(limits)
        windows.state.budget["credited_at"] = windows.state.budget["began"] = -(1 << 62)
        windows.state.shares["chance"] = 1.0

    def limit(self, limits: Limits) -> None:
        """Have these limits from now on."""
        self._limits = limits
        budget = self.windows.state.budget[0]
        budget.service_rate = (limits.service_rate or 0.0) / _SECOND_US
        budget.drops = limits.drop == "tuple"
        budget.looks = _LOOKS[limits.loss]
        self._looked_at = -1

    def allocate(self, query: Query, times: Mapping[int, Words]) -> None:
        """Give each stream its chance, before arrivals with these times."""
        service_rate = self._limits.service_rate
        state = self.windows.state
        arrived = int(state.shares["arrived"].sum())
        if service_rate is None or (self._looked_at >= 0 and arrived - self._looked_at < _FEW):
            return
        rates = self._rates() if arrived else _rates_of(times, len(query.names))
        if not rates.any():
            return
        self._looked_at = arrived
        floors = [
            min(self._limits.floors.get(name, 0.0), rate)
            for name, rate in zip(query.names, rates.tolist(), strict=True)
        ]
        served = allocate_cpu(
            rates.tolist(),
            self._tuples(query, rates),
            service_rate,
            checked_drop(self._limits.drop),
            floors,
        )
        # A stream that has not come yet is not held up when it does.
        state.shares["chance"] = np.where(
            rates > 0, np.minimum(np.array(served) / np.maximum(rates, 1e-300), 1.0), 1.0
        )

    def _rates(self) -> npt.NDArray[np.float64]:
        """Tuples a second of each stream. What counts half after a half-life adds up to
        rate * half-life / ln 2, once that has gone on for long."""
        state = self.windows.state
        budget = state.budget[0]
        passed = float(budget.newest - budget.began)
        counted: npt.NDArray[np.float64] = state.shares["came"] * budget.shrink * _SECOND_US
        if passed <= 0.0:
            return np.zeros(len(counted))
        half_life = float(budget.half_life)
        if half_life >= NO_LIMIT:
            return counted / passed
        return counted * _LN_2 / (half_life * -np.expm1(-_LN_2 * passed / half_life))

    def _tuples(self, query: Query, rates: npt.NDArray[np.float64]) -> list[float]:
        """In each window: as many as come in its time, or, where that is no measure, as are."""
        tuples = []
        for stream, (window, rate) in enumerate(zip(query.windows, rates.tolist(), strict=True)):
            length = window.slot_us or window.length_us
            is_whole = length < FOREVER and not self._limits.memory.is_limited
            live = float(self.windows.live(stream))
            tuples.append(rate * length / _SECOND_US if is_whole else live)
        return tuples


def _rates_of(times: Mapping[int, Words], streams: int) -> npt.NDArray[np.float64]:
    """Tuples a second of arrivals with these times, in order; none if they are of one instant."""
    rates = np.zeros(streams)
    given = {stream: ts for stream, ts in times.items() if len(ts)}
    if not given:
        return rates
    span = max(int(ts[-1]) for ts in given.values()) - min(int(ts[0]) for ts in given.values())
    for stream, ts in given.items():
        rates[stream] = len(ts) * _SECOND_US / span if span else 0.0
    return rates
