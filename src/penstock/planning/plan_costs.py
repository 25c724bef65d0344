"""What the plans of a query cost: the one cost model, applied to every path of every window.

Orders say which paths of which windows are probed, and with how many partial results. Then the
paths are independent of each other (the directions of Kang et al.): each is probed, inserted into
and emptied through its own index, and `planning.costs` has the cost of that. A path that nobody
asks keeps its records and has no index, and a step that is linked to nothing reads the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from penstock.model.plan import Index
from penstock.model.steps import steps_of
from penstock.planning.costs import Cost, Costing, Direction, Visit
from penstock.planning.load import Load
from penstock.planning.machine import weights_here
from penstock.planning.touched import MODELS, NODE_ENTRIES, Structure
from penstock.planning.weights import Weights, weights_of

__all__ = ["CANDIDATES", "Indexes", "Orders", "Path", "PlanCosts", "Setting", "setting_of"]

# In the order in which one is taken of those that cost the same.
CANDIDATES: Final = ("hash", "bplus_tree", "t_tree", "scan")
_NO_INDEX: Final = Index("scan")
_PAPER_NODE: Final = 100
_PAPER_BUCKET: Final = 10.0

Path = tuple[int, int]  # a window, and which of its words
Indexes = tuple[tuple[Index, ...], ...]
Orders = tuple[tuple[int, ...], ...]
Visits = tuple[tuple[int, Visit], ...]  # from which stream, and how


@dataclass(frozen=True)
class Setting:
    """How costs are worked out: the weights, the model of what is touched, and how tuples that
    have expired are removed."""

    weights: Weights
    model: str
    expire: str = "eager"
    interval: float | None = None

    def structure(self, index: Index, tuples: float) -> Structure:
        """The structure that a window of `tuples` is kept in."""
        node = NODE_ENTRIES if self.model == "penstock" else _PAPER_NODE
        bucket = max(tuples, 1.0) / index.buckets if index.buckets else _PAPER_BUCKET
        return Structure(index.name, tuples, bucket, node)


def setting_of(weights: str | Weights | None = None) -> Setting:
    """By the weights: those of a paper go with its model, all others with that of our structures;
    when none are given, those of this machine."""
    known = weights_here() if weights is None else weights_of(weights)
    return Setting(known, known.name if known.name in MODELS else "penstock")


class PlanCosts:
    """The costs of all plans of a query, each part of them worked out once."""

    def __init__(self, load: Load, setting: Setting) -> None:
        self.load = load
        self.setting = setting
        self.access = load.query.access
        self.streams = range(len(load.rates))
        self.paths: list[Path] = [
            (window, word)
            for window in self.streams
            for word in range(len(self.access.words[window]))
        ]
        self._visits: dict[tuple[int, frozenset[int], int], tuple[int | None, Visit]] = {}
        self._combinations: dict[tuple[int, frozenset[int]], float] = {}
        self._directions: dict[tuple[Path, Index, Visits], Direction] = {}
        self.endless = [window.is_endless for window in load.query.windows]
        self._costings: dict[tuple[int, Index], Costing] = {}

    def candidates(self, path: Path) -> list[Index]:
        """The indexes that serve a path and have a weight."""
        word = self.access.words[path[0]][path[1]]
        return [
            index
            for name in CANDIDATES
            if name in self.setting.weights.structures and (index := Index(name)).serves(word)
        ] or [_NO_INDEX]

    def names(self, window: int) -> list[str]:
        """The indexes that serve some path of a window, by name."""
        of_paths = [self.candidates(path) for path in self.paths if path[0] == window]
        return list(dict.fromkeys(index.name for each in of_paths for index in each))

    def visits(self, origin: int, order: Sequence[int]) -> Iterator[tuple[int, int | None, Visit]]:
        """To which windows an arrival comes, by which of their words, and how."""
        for place, window in enumerate(order):
            yield window, *self._visit(origin, order[:place], window)

    def traffic(self, orders: Orders) -> tuple[dict[Path, Visits], dict[int, Visits]]:
        """Who comes to the paths, and to windows that are read as a whole."""
        asked: dict[Path, list[tuple[int, Visit]]] = {}
        read: dict[int, list[tuple[int, Visit]]] = {}
        for origin, order in enumerate(orders):
            for window, word, visit in self.visits(origin, order):
                if word is None:
                    read.setdefault(window, []).append((origin, visit))
                else:
                    asked.setdefault((window, word), []).append((origin, visit))
        return (
            {path: tuple(visits) for path, visits in asked.items()},
            {window: tuple(visits) for window, visits in read.items()},
        )

    def direction(self, path: Path, index: Index, visits: Visits) -> Direction:
        """What a path costs per second with an index, when these come to it."""
        key = path, index, visits
        if key not in self._directions:
            costed = self._costing(path[0], index).direction(path[0], visits)
            # Of a window that never ends nothing has to be removed.
            is_endless = self.endless[path[0]]
            self._directions[key] = replace(costed, expire=0.0) if is_endless else costed
        return self._directions[key]

    def reading(self, window: int, visits: Visits) -> float:
        """What it costs that these read a window as a whole."""
        return self.direction((window, 0), _NO_INDEX, visits).probe

    def added(self, origin: int, before: Sequence[int], window: int, indexes: Indexes) -> float:
        """What one arrival pays to get past a window when it has been to others before."""
        word, visit = self._visit(origin, before, window)
        index = _NO_INDEX if word is None else indexes[window][word]
        return self._costing(window, index).probe(window, visit)

    def cost(self, indexes: Indexes, orders: Orders) -> Cost:
        """What a plan costs per second, by window."""
        asked, read = self.traffic(orders)
        return self.cost_of_traffic(indexes, asked, read)

    def cost_of_traffic(
        self, indexes: Indexes, asked: dict[Path, Visits], read: dict[int, Visits]
    ) -> Cost:
        """The same, when it is known who comes where."""
        parts = [
            [
                self.direction((window, word), index, asked.get((window, word), ()))
                for word, index in enumerate(indexes[window])
            ]
            for window in self.streams
        ]
        for window, visits in read.items():
            parts[window].append(Direction(self.reading(window, visits), 0.0, 0.0))
        return Cost(
            tuple(
                Direction(
                    sum(part.probe for part in of_window),
                    sum(part.insert for part in of_window),
                    sum(part.expire for part in of_window),
                )
                for of_window in parts
            ),
            self.setting.weights.unit,
        )

    def removed(self, expire: str, interval: float | None = None) -> PlanCosts:
        """The same load, with another way to remove what has expired."""
        return PlanCosts(self.load, replace(self.setting, expire=expire, interval=interval))

    def _visit(self, origin: int, before: Sequence[int], window: int) -> tuple[int | None, Visit]:
        """By which word an arrival asks a window when it has been to others before, and how it
        comes: neither depends on the order of those."""
        chosen = frozenset(before)
        key = origin, chosen, window
        if key not in self._visits:
            step = steps_of(self.access, origin, (*before, window))[-1]
            partial = self._partial(origin, chosen)
            matches = self.load.found(step, (origin, *before))
            if partial:  # what is verified was found
                matches = max(matches, self._partial(origin, chosen | {window}) / partial)
            self._visits[key] = step.word, Visit(partial, matches)
        return self._visits[key]

    def _partial(self, origin: int, chosen: frozenset[int]) -> float:
        """Combinations of an arrival and tuples of these windows."""
        key = origin, chosen
        if key not in self._combinations:
            tuples = prod(self.load.tuples[each] for each in chosen)
            self._combinations[key] = tuples * self.load.share(chosen | {origin})
        return self._combinations[key]

    def _costing(self, window: int, index: Index) -> Costing:
        """Of a window with this index. Of what comes to it, tuples of its own stream are inserted
        and those of the others probe, which may be fewer."""
        key = window, index
        if key not in self._costings:
            load = self.load
            self._costings[key] = Costing(
                tuple(
                    load.rates[each] if each == window else load.probe_rates[each]
                    for each in self.streams
                ),
                tuple(self.setting.structure(index, tuples) for tuples in load.tuples),
                (1.0,) * len(load.rates),  # visits say what is found
                self.setting.weights,
                self.setting.model,
                self.setting.expire,
                self.setting.interval,
            )
        return self._costings[key]
