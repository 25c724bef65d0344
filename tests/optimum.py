"""The offline optimum: the most results any policy could give, knowing all that will come.

For a join of two streams by equality over windows of time, with memory for so many tuples after
every instant. It is the minimum-cost flow of Das, Gehrke and Riedewald (section 4.1), made
smaller. A time line has a node for every instant and carries the units of memory that are idle.
Of one key of one stream only the number of tuples kept matters, for the newest live longest; so
each has one chain, with a node for every instant at which the other stream brings the key:

    line    ... --> 1 --> 2 --> 3 --> 4 --> ...
                    |     |     ^     ^
                    v     v     |     |      tuples arrive at 1 and 2, others at 3 and 4
    chain           +-----+---> 3 --> 4

A tuple's unit leaves the line when the tuple arrives, for the next node of its chain; it follows
the chain and returns to the line at any node. Each arc of a chain earns one result for each
arrival at its end, and takes no more units than tuples that live until then. Tuples of one
instant meet whatever is kept: those results are the same for all policies, and a unit that
returns may serve an arrival of that instant.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np
from ortools.graph.python import min_cost_flow

__all__ = ["Arrivals", "optimum"]

# The tuples of a stream: time and key, in order of time.
Arrivals = Sequence[tuple[int, Hashable]]
# From node, to node, capacity, cost of a unit.
_Arc = tuple[int, int, int, int]
_UNBOUNDED: Final = 1 << 30


def optimum(
    left: Arrivals,
    right: Arrivals,
    windows: tuple[int, int],
    memory: int | tuple[int, int],
    counted_from: int | None = None,
) -> int:
    """The most results that come at `counted_from` or later.

    windows: of the two streams, closed: w instants of the paper are a window of w - 1.
    memory: tuples that may be kept, of both streams together or of each.
    """
    start = min((ts for ts, _ in (*left, *right)), default=0)
    start = start if counted_from is None else counted_from
    sides = ((left, right, windows[0]), (right, left, windows[1]))
    if isinstance(memory, int):
        kept = _most(sides, memory, start)
    else:
        kept = sum(_most((side,), units, start) for side, units in zip(sides, memory, strict=True))
    of_left = Counter(left)
    return kept + sum(of_left[arrival] for arrival in right if arrival[0] >= start)


def _most(sides: Sequence[tuple[Arrivals, Arrivals, int]], units: int, start: int) -> int:
    """What tuples kept of these (stream, other stream, window) earn in one pool of memory."""
    instants = sorted({ts for own, other, _ in sides for ts, _ in (*own, *other)})
    # The end of the line comes after all instants, so that there is an arc even for one of them.
    line = {ts: node for node, ts in enumerate(instants)}
    arcs: list[_Arc] = [(node, node + 1, units, 0) for node in range(len(instants))]
    nodes = len(instants) + 1
    for own, other, window in sides:
        met = _times_by_key(other)
        for key, times in _times_by_key(own).items():
            if key in met:
                nodes = _add_chain(arcs, nodes, line, _Chain(times, met[key], window, start))
    if not arcs:
        return 0
    flow = min_cost_flow.SimpleMinCostFlow()
    flow.add_arcs_with_capacity_and_unit_cost(*np.array(arcs, dtype=np.int64).T)
    flow.set_nodes_supplies(np.array([0, len(instants)]), np.array([units, -units]))
    status = flow.solve()
    if status != flow.OPTIMAL:
        raise AssertionError(f"the flow has no optimum: {status}")
    return -int(flow.optimal_cost())


class _Chain(NamedTuple):
    """When the key arrives, in its own stream and in the other; results count from `start` on."""

    own: list[int]
    met: list[int]
    window: int
    start: int


def _add_chain(arcs: list[_Arc], node: int, line: dict[int, int], chain: _Chain) -> int:
    """Numbers the nodes of a chain from `node` on; returns the next free number."""
    before = chain.own[0]
    for ts, count in sorted(Counter(chain.met).items()):
        cost = -count if ts >= chain.start else 0
        # Own arrivals [living, entering) were there before the node before this one.
        living = bisect_left(chain.own, ts - chain.window)
        entering = max(living, bisect_left(chain.own, before))
        arriving = bisect_left(chain.own, ts)
        if entering > living:
            arcs.append((node - 1, node, entering - living, cost))
        arcs += [(line[own], node, 1, cost) for own in chain.own[entering:arriving]]
        arcs.append((node, line[ts], _UNBOUNDED, 0))
        node += 1
        before = ts
    return node


def _times_by_key(arrivals: Arrivals) -> dict[Hashable, list[int]]:
    times: defaultdict[Hashable, list[int]] = defaultdict(list)
    for ts, key in arrivals:
        times[key].append(ts)
    return dict(times)
