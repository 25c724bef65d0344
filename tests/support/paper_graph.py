"""The flow graph of Das, Gehrke and Riedewald as they print it (section 4.1.1, figure 3).

One tuple of each stream comes at every instant. A node x(i):j is the tuple of stream X that came
at i, in memory at j, for the w instants of its life:

    r(0):0 --> r(0):1 --> r(0):2           horizontal: it stays, and earns a result (cost -1) if
                 |          |              what the other stream brings at the arc's end matches
                 v          |
               r(1):1 --> r(1):2 --> ...   others: it goes, and the newcomer has its place
                            v
                          r(2):2 --> ...

The memory is full at all times: M units of flow go from the source to the first M / 2 tuples of
each stream, and from those that are there at the end to the sink. One more takes the path at the
top, of the pairs of one instant. When the memory is shared, a tuple can also make place for the
newcomer of the other stream.

So there is a flow only while all places can be taken by tuples with a life after the instant,
M <= 2w - 2, and M / 2 tuples come. Windows of penstock are closed: w instants are `w - 1`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise

from ortools.graph.python import min_cost_flow

Keys = Sequence[Hashable]
Node = tuple[object, ...]


class Graph:
    """Arcs of capacity 1 between nodes of any name."""

    def __init__(self) -> None:
        self.flow = min_cost_flow.SimpleMinCostFlow()
        self.numbers: dict[Node, int] = {}

    def arc(self, start: Node, end: Node, cost: int = 0) -> None:
        self.flow.add_arc_with_capacity_and_unit_cost(self.number(start), self.number(end), 1, cost)

    def number(self, node: Node) -> int:
        return self.numbers.setdefault(node, len(self.numbers))

    def least_cost(self, source: Node, sink: Node, units: int) -> int | None:
        """Of so many units from the one to the other; None if they do not get there."""
        self.flow.set_node_supply(self.number(source), units)
        self.flow.set_node_supply(self.number(sink), -units)
        status = self.flow.solve()
        if status == self.flow.INFEASIBLE:
            return None
        assert status == self.flow.OPTIMAL, status
        return int(self.flow.optimal_cost())


def papers_optimum(r: Keys, s: Keys, w: int, memory: int, *, shared: bool) -> int | None:
    """The most results; None where the graph as printed has no flow."""
    instants = len(r)
    graph, source, sink = Graph(), ("s",), ("t",)
    for stream, own, other in (("r", r, s), ("s", s, r)):
        newcomers = ("r", "s") if shared else (stream,)
        for i in range(memory // 2):
            graph.arc(source, (stream, i, i))
        for i in range(instants):
            for j in range(i, min(i + w, instants)):
                node = (stream, i, j)
                if j + 1 < min(i + w, instants):
                    graph.arc(node, (stream, i, j + 1), -1 if own[i] == other[j + 1] else 0)
                if j > i:
                    for newcomer in newcomers:
                        graph.arc(node, (newcomer, j, j))
                if j == instants - 1:
                    graph.arc(node, sink)
    top = [source, *(("top", i) for i in range(instants) if r[i] == s[i]), sink]
    for place, (start, end) in enumerate(pairwise(top)):
        graph.arc(start, end, -1 if place else 0)
    cost = graph.least_cost(source, sink, memory + 1)
    return None if cost is None else -cost
