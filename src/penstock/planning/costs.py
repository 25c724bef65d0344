"""The one cost model: what a join costs per unit time, for any number of streams.

Kang et al.'s two streams and Golab and Özsu's many are the same sum. An arrival of stream i probes
the other windows in its order; each of the partial results it has when it comes to window j probes
j once. Then it is inserted into its own window, and one tuple of that window is removed. So

    cost = sum over i of rate_i * (sum over j of partial_ij * probe_j + insert_i + removal_i)

The cost is split by window: window j is probed, inserted into and emptied, which is the direction
i -> j of Kang et al. when there are two streams.

Partial results (Golab and Özsu's examples): an arrival of i is one, of a key among d = v_i. Window
j leaves tuples_j / max(d, v_j) of it, and then d = min(d, v_j). Both depend on which windows went
before, not on their order: `reached` takes a set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from penstock.errors import PlanError
from penstock.planning.touched import (
    EXPIRE_MODES,
    MODELS,
    Structure,
    insert_scattered,
    insert_touched,
    number,
    probe_scattered,
    probe_touched,
    removal_scattered,
    removal_touched,
)
from penstock.planning.weights import Weights

__all__ = ["Cost", "Costing", "Direction", "Visit"]


@dataclass(frozen=True)
class Direction:
    """What one window costs per unit time, in the unit of the weights."""

    probe: float
    insert: float
    expire: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.probe + self.insert + self.expire


@dataclass(frozen=True)
class Cost:
    """What a join costs per unit time. directions: towards each window, in stream order."""

    directions: tuple[Direction, ...]
    unit: str

    @property
    def total(self) -> float:
        """All of it."""
        return sum(direction.total for direction in self.directions)

    @property
    def probe(self) -> float:
        """Of all probes."""
        return sum(direction.probe for direction in self.directions)

    @property
    def insert(self) -> float:
        """Of all insertions."""
        return sum(direction.insert for direction in self.directions)

    @property
    def expire(self) -> float:
        """Of all removals."""
        return sum(direction.expire for direction in self.directions)


@dataclass(frozen=True)
class Visit:
    """An arrival comes to a window. partial: results it has so far, each of which probes.
    matches: what each of them finds."""

    partial: float
    matches: float


@dataclass(frozen=True)
class Costing:
    """What costs are worked out from: the streams, and how the join treats them.

    rates: arrivals per unit time. structures: what each window is kept in. distinct: keys of each
    window. interval: between periodic removals, one unit of time without.
    """

    rates: tuple[float, ...]
    structures: tuple[Structure, ...]
    distinct: tuple[float, ...]
    weights: Weights
    model: str = "kang2003"
    expire: str = "eager"
    interval: float | None = None

    def __post_init__(self) -> None:
        if not len(self.rates) == len(self.structures) == len(self.distinct):
            raise PlanError(
                "rates, windows and distinct must be of the same streams, got "
                f"{len(self.rates)}, {len(self.structures)} and {len(self.distinct)} of them"
            )
        if len(self.rates) < 2:
            raise PlanError(f"a join has two streams or more, got {len(self.rates)}")
        for rate in self.rates:
            number(rate, "a rate")
        for keys in self.distinct:
            number(keys, "the number of distinct keys of a stream", positive=True)
        if self.model not in MODELS:
            raise PlanError(f"no cost model is called {self.model!r}; choose from {MODELS}")
        if self.expire not in EXPIRE_MODES:
            raise PlanError(f"expire must be one of {EXPIRE_MODES}, got {self.expire!r}")
        if self.interval is not None:
            number(self.interval, "interval=, the time between periodic removals,", positive=True)
            if self.expire != "periodic":
                raise PlanError(
                    f"interval= goes with expire='periodic', got it with {self.expire!r}; "
                    "leave it out"
                )

    @property
    def streams(self) -> range:
        """The numbers of the streams."""
        return range(len(self.rates))

    @property
    def _sweep(self) -> float:
        """The time between periodic removals; 0 where there are none."""
        if self.expire != "periodic":
            return 0.0
        return 1.0 if self.interval is None else self.interval

    def reached(self, origin: int, before: Iterable[int], window: int) -> Visit:
        """How an arrival of `origin` comes to a window when it has probed those before."""
        partial, keys = 1.0, self.distinct[origin]
        for each in before:
            partial *= self.structures[each].tuples / max(keys, self.distinct[each])
            keys = min(keys, self.distinct[each])
        return Visit(partial, self.structures[window].tuples / max(keys, self.distinct[window]))

    def kept(self, window: int) -> float:
        """Tuples in a window's structure when it is probed: periodic removal leaves, on average,
        half of what expires in an interval."""
        return self.structures[window].tuples + self.rates[window] * self._sweep / 2

    def pile(self, window: int, visits: Sequence[tuple[int, Visit]]) -> float:
        """Tuples of a window that expire from one removal to the next."""
        rate = self.rates[window]
        if self.expire == "eager" or rate == 0:
            return 1.0
        if self.expire == "periodic":
            return rate * self._sweep
        probes = sum(self.rates[origin] * min(visit.partial, 1.0) for origin, visit in visits)
        return rate / probes if probes > 0 else inf

    def probe(self, window: int, visit: Visit) -> float:
        """What one arrival pays to get past a window."""
        structure = self.structures[window]
        if structure.is_empty:
            return 0.0
        kept, weight = self.kept(window), self.weights.of(structure.index)
        touched = probe_touched(structure, self.model, visit.matches, kept)
        far = self.weights.far_share(kept)
        far *= probe_scattered(structure, self.model, visit.matches, kept)
        return visit.partial * weight.of_probe(touched, far)

    def direction(self, window: int, visits: Sequence[tuple[int, Visit]]) -> Direction:
        """What a window costs when arrivals of these origins come to it so."""
        structure, rate = self.structures[window], self.rates[window]
        weight, kept = self.weights.of(structure.index), self.kept(window)
        if structure.is_empty:
            return Direction(0.0, 0.0, 0.0)
        pile = self.pile(window, visits)
        far = self.weights.far_share(kept)
        insert = insert_touched(structure, self.model, kept)
        removal = removal_touched(structure, self.model, self.expire, pile, kept)
        return Direction(
            sum(self.rates[origin] * self.probe(window, visit) for origin, visit in visits),
            rate * weight.of_update(insert, far * insert_scattered(structure)),
            rate * weight.of_update(removal, far * removal_scattered(structure))
            if pile < inf
            else 0.0,
        )

    def origin(self, origin: int, order: Sequence[int]) -> float:
        """What one arrival of a stream pays for its probes in an order."""
        return sum(
            self.probe(window, self.reached(origin, order[:place], window))
            for place, window in enumerate(order)
        )

    def of_orders(self, orders: Sequence[Sequence[int]]) -> Cost:
        """What the join costs when the arrivals of each stream probe the others in its order."""
        if len(orders) != len(self.rates):
            raise PlanError(
                f"each of the {len(self.rates)} streams needs an order, got {len(orders)} of them"
            )
        for origin, order in enumerate(orders):
            if not _is_order(order, set(self.streams) - {origin}):
                raise PlanError(
                    f"the order of stream {origin} must name every other stream once, "
                    f"got {tuple(order)}"
                )
        directions = []
        for window in self.streams:
            visits = [
                (origin, self.reached(origin, order[: list(order).index(window)], window))
                for origin, order in enumerate(orders)
                if origin != window
            ]
            directions.append(self.direction(window, visits))
        return Cost(tuple(directions), self.weights.unit)


def _is_order(order: Sequence[int], streams: set[int]) -> bool:
    return len(order) == len(streams) and set(order) == streams
