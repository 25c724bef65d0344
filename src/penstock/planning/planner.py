"""The planner: of all plans that give the answer, the one that costs the least per second.

Two choices depend on each other. Given the orders in which arrivals probe, it is known who comes to
which path of which window, and every path takes the index that is cheapest for itself. Given the
indexes, the arrivals of every stream take the order that is cheapest for themselves. Where there
are few orders, up to four streams, all of them are gone through, and the plan is the cheapest there
is. Beyond, both choices are made in turns until neither changes, from several beginnings, and of
five streams orders are changed one by one as long as that helps: no single change makes that plan
cheaper, but two at once might. From eight streams on orders are made by taking the cheapest next
one, so that a join starts at once.

What a user has fixed is kept. Of plans that cost the same the usual one is taken: hash before
trees before scan, and next always a stream that is linked. So a plan is a function of its input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, prod
from typing import Any, Final

from penstock.model.limits import Limits
from penstock.model.plan import Index, Plan, parse_index
from penstock.model.plan import Indexes as GivenIndexes
from penstock.model.query import Query
from penstock.model.steps import linked_order
from penstock.planning.costs import Cost
from penstock.planning.multiway import cheapest_order, rounded
from penstock.planning.plan_costs import Indexes, Orders, Path, PlanCosts, Visits

__all__ = ["Choice", "Fixed", "Planner", "fixed_of"]

_FEW_ORDERS: Final = 1_296  # of four streams
_EXACT_ORDERS: Final = 6  # streams, beyond which a good order has to do
_CLIMBED_STREAMS: Final = 5  # 24 orders of each
_FEW_INDEXES: Final = 4_096
_LISTED_STREAMS: Final = 5  # 24 orders of each
_ROUNDS: Final = 20  # two or three are usual

GivenOrders = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Fixed:
    """What a user has chosen: an index for each path, and an order for each stream; None where it
    is left to the planner."""

    indexes: tuple[tuple[Index | None, ...], ...]
    orders: tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True)
class Choice:
    """A plan and what it costs."""

    indexes: Indexes
    orders: Orders
    cost: Cost

    def plan(self, query: Query, limits: Limits | None = None) -> Plan:
        """As the engine takes it."""
        names = query.names
        return Plan.of(
            query,
            {name: list(paths) for name, paths in zip(names, self.indexes, strict=True)},
            {
                name: [names[each] for each in order]
                for name, order in zip(names, self.orders, strict=True)
            },
            limits,
        )

    def is_same_plan(self, other: Choice) -> bool:
        """Whatever they cost."""
        return (self.indexes, self.orders) == (other.indexes, other.orders)


def fixed_of(
    query: Query,
    indexes: GivenIndexes | None = None,
    probe_orders: GivenOrders | None = None,
    limits: Limits | None = None,
) -> Fixed:
    """What was given, checked."""
    plan = Plan.of(query, indexes, probe_orders, limits)
    given: Mapping[str, Any]
    given = indexes if isinstance(indexes, Mapping) else dict.fromkeys(query.names, indexes)
    chosen = []
    for name, words in zip(query.names, query.access.words, strict=True):
        own = given.get(name)
        if own is None or isinstance(own, str | Index):
            one = None if own is None else parse_index(own)
            chosen.append(tuple(one if one and one.serves(word) else None for word in words))
        else:
            chosen.append(tuple(parse_index(each) for each in own))
    orders = zip(query.names, plan.probe_orders, strict=True)
    return Fixed(
        tuple(chosen),
        tuple(order if name in (probe_orders or {}) else None for name, order in orders),
    )


class Planner:
    """Looks for the cheapest plan of a query."""

    def __init__(self, costs: PlanCosts, fixed: Fixed) -> None:
        self.costs = costs
        self.fixed = fixed
        self._best: dict[tuple[Path, Visits], tuple[float, Index]] = {}
        # All orders are gone through by numbers: those of visits, in the order of places.
        self._visits: dict[Visits, int] = {(): 0}
        self._places = [*costs.paths, *((window, None) for window in costs.streams)]
        self._numbers: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}
        self._priced: dict[tuple[int, tuple[int, ...]], float] = {}

    def choose(self) -> Choice:
        """The cheapest plan."""
        return self._with_best_indexes(min(self._orders(), key=self._cost))

    def improved(self, chosen: Choice) -> Choice:
        """What a plan becomes when orders and indexes are chosen anew in turns, from it on."""
        return self._with_best_indexes(self._settled(chosen.indexes, self._usual()))

    def runners_up(self, chosen: Choice, count: int) -> list[Choice]:
        """The next best plans: with other indexes, and with another order of one stream and the
        indexes that are best then."""
        asked, read = self.costs.traffic(chosen.orders)
        others = [
            Choice(indexes, chosen.orders, self.costs.cost_of_traffic(indexes, asked, read))
            for indexes in self._other_indexes(chosen, asked)
        ]
        for origin, given in enumerate(self.fixed.orders):
            if given is None and len(chosen.orders) <= _LISTED_STREAMS:
                for order in permutations(chosen.orders[origin]):
                    orders = (*chosen.orders[:origin], order, *chosen.orders[origin + 1 :])
                    others.append(self._with_best_indexes(orders))
        found: list[Choice] = []
        for choice in sorted(others, key=lambda each: rounded(each.cost.total)):
            if len(found) < count and not any(map(choice.is_same_plan, [chosen, *found])):
                found.append(choice)
        return found

    # Indexes, when the orders are known.

    def _candidates(self, path: Path) -> list[Index]:
        given = self.fixed.indexes[path[0]][path[1]]
        return self.costs.candidates(path) if given is None else [given]

    def _best_index(self, path: Path, visits: Visits) -> tuple[float, Index]:
        """The cheapest of a path, and its cost; none where nobody comes, whatever was given."""
        key = path, visits
        if key not in self._best:
            candidates = self._candidates(path) if visits else [Index("scan")]
            priced = [
                (rounded(self.costs.direction(path, index, visits).total), index)
                for index in candidates
            ]
            self._best[key] = min(priced, key=lambda each: each[0])
        return self._best[key]

    def _cost(self, orders: Orders) -> float:
        """What these orders cost with the best indexes."""
        by_place = zip(*map(self._numbered, range(len(orders)), orders), strict=True)
        return rounded(sum(map(self._price, range(len(self._places)), by_place)))

    def _numbered(self, origin: int, order: tuple[int, ...]) -> tuple[int, ...]:
        """The visits of one stream's arrivals to each place, by number; 0 where there are none."""
        key = origin, order
        if key not in self._numbers:
            numbers = dict.fromkeys(self._places, 0)
            for window, word, visit in self.costs.visits(origin, order):
                visits = ((origin, visit),)
                numbers[window, word] = self._visits.setdefault(visits, len(self._visits))
            self._numbers[key] = tuple(numbers.values())
        return self._numbers[key]

    def _price(self, place: int, numbers: tuple[int, ...]) -> float:
        """What these visits cost there: with the best index, or when the window is read."""
        key = place, numbers
        if key not in self._priced:
            known = list(self._visits)
            visits = sum((known[number] for number in numbers), ())
            window, word = self._places[place]
            self._priced[key] = (
                self.costs.reading(window, visits)
                if word is None
                else self._best_index((window, word), visits)[0]
            )
        return self._priced[key]

    def _with_best_indexes(self, orders: Orders) -> Choice:
        asked, read = self.costs.traffic(orders)
        best = {path: self._best_index(path, asked.get(path, ()))[1] for path in self.costs.paths}
        indexes = self._by_window(best)
        return Choice(indexes, orders, self.costs.cost_of_traffic(indexes, asked, read))

    def _other_indexes(self, chosen: Choice, asked: Mapping[Path, Visits]) -> Iterator[Indexes]:
        """All combinations, or where these are many those that differ in one index."""
        options = {
            path: self._candidates(path) if path in asked else [Index("scan")]
            for path in self.costs.paths
        }
        if prod(map(len, options.values())) <= _FEW_INDEXES:
            for combination in product(*options.values()):
                yield self._by_window(dict(zip(options, combination, strict=True)))
            return
        own = {(window, word): chosen.indexes[window][word] for window, word in options}
        for path, candidates in options.items():
            for index in candidates:
                yield self._by_window({**own, path: index})

    def _by_window(self, by_path: Mapping[Path, Index]) -> Indexes:
        return tuple(
            tuple(by_path[window, word] for word in range(len(words)))
            for window, words in enumerate(self.costs.access.words)
        )

    # Orders, when the indexes are known.

    def _orders(self) -> Iterable[Orders]:
        """Those that are worth looking at, the usual one first."""
        usual = self._usual()
        free = sum(order is None for order in self.fixed.orders)
        if factorial(len(usual) - 1) ** free <= _FEW_ORDERS:
            return product(
                *(
                    permutations(own) if given is None else [given]
                    for given, own in zip(self.fixed.orders, usual, strict=True)
                )
            )
        candidates = {path: self._candidates(path) for path in self.costs.paths}
        beginnings = (
            {path: each[min(place, len(each) - 1)] for path, each in candidates.items()}
            for place in range(max(map(len, candidates.values())))
        )
        settled = [self._settled(self._by_window(each), usual) for each in beginnings]
        return settled if len(usual) > _CLIMBED_STREAMS else [*map(self._climbed, settled)]

    def _climbed(self, orders: Orders) -> Orders:
        """On from these, as long as another order of one stream is cheaper with the indexes that
        are best then."""
        best, cost = orders, self._cost(orders)
        for origin, given in enumerate(self.fixed.orders):
            for order in permutations(orders[origin]) if given is None else ():
                other = (*orders[:origin], order, *orders[origin + 1 :])
                if self._cost(other) < cost:
                    best, cost = other, self._cost(other)
        return orders if best == orders else self._climbed(best)

    def _usual(self) -> list[tuple[int, ...]]:
        streams = len(self.fixed.orders)
        return [linked_order(self.costs.access, origin, streams) for origin in range(streams)]

    def _settled(self, indexes: Indexes, usual: Sequence[tuple[int, ...]]) -> Orders:
        """Orders and indexes in turns, from these indexes on, until they stay."""
        orders: Orders = ()
        for _ in range(_ROUNDS):
            before = orders
            orders = tuple(
                self._best_order(origin, indexes, usual[origin]) if given is None else given
                for origin, given in enumerate(self.fixed.orders)
            )
            if orders == before:
                break
            indexes = self._with_best_indexes(orders).indexes
        return orders

    def _best_order(self, origin: int, indexes: Indexes, usual: tuple[int, ...]) -> tuple[int, ...]:
        """Of the arrivals of one stream. The others go by their places in the usual order, for of
        equals the one with the lowest numbers is taken."""

        def added(before: Sequence[int], place: int) -> float:
            return self.costs.added(origin, [usual[each] for each in before], usual[place], indexes)

        places = cheapest_order(tuple(range(len(usual))), added, _EXACT_ORDERS)
        return tuple(usual[place] for place in places)
