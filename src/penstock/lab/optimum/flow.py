"""The most a holding can earn, as a flow of least cost.

A time line has a node for every instant and carries the units of memory that are idle. A tuple's
unit leaves it at the tuple's arrival, for the node of its first meeting, follows the meetings, each
of which earns its worth, and returns to the line at any of them:

    line    ... --> 1 --> 2 --> 3 --> 4 --> ...
                    |     |     ^     ^
                    v     v     |     |      tuples arrive at 1 and 2, meetings are at 3 and 4
    run             +-----+---> 3 --> 4

An arc of a run takes as many units as tuples have both its meetings. Where tuples share a run, one
that begins later ends no earlier, so that of a key's tuples the newest are the best to hold: how
many is all that the flow has to say. A unit that returns at an instant may serve an arrival of it.
Room that grows or shrinks is a supply or a demand on the line.

This has the optimum of the graph of Das, Gehrke and Riedewald (section 4.1), which has a node for
every tuple and instant.
"""

from __future__ import annotations

import numpy as np

from penstock.errors import PlanError
from penstock.extras import extra
from penstock.kernels.arena import Words
from penstock.kernels.optimum.newest import keep_newest
from penstock.lab.optimum.holding import LARGEST_WORTH, Holding, held

__all__ = ["FlowRangeError", "best_by_flow", "flow_size"]


class FlowRangeError(PlanError):
    """A graph in which values and the number of nodes are too large together."""


def flow_size(holding: Holding) -> int:
    """How many nodes the graph has, about."""
    return len(holding.room) + len(holding.meets)


def best_by_flow(holding: Holding) -> Words:
    """How far each tuple goes in its meetings, so that the most is earned."""
    if not len(holding.at):
        return holding.first.copy()
    if (held(holding, holding.end) <= holding.room).all():
        return holding.end.copy()
    with extra("lab", "the exact optimum"):
        from ortools.graph.python import min_cost_flow

    if int(holding.worth.max()) > LARGEST_WORTH:
        raise AssertionError("worths must be scaled")
    instants, line_room = _line(holding)
    line = len(instants)
    at = np.searchsorted(instants, holding.at)
    meets = np.searchsorted(instants, holding.meets)
    nodes = line + 1 + np.arange(len(meets))
    both = _spanning(holding)
    chained = np.flatnonzero(both)
    covering = _covering(holding)
    flow = min_cost_flow.SimpleMinCostFlow()
    for tails, heads, capacities, costs in (
        (np.arange(line), np.arange(1, line + 1), line_room, np.zeros(line, np.int64)),
        (nodes, meets, covering, np.zeros(len(meets), np.int64)),
    ):
        flow.add_arcs_with_capacity_and_unit_cost(tails, heads, capacities, costs)
    entries = flow.add_arcs_with_capacity_and_unit_cost(
        at, nodes[holding.first], np.ones(len(at), np.int64), -holding.worth[holding.first]
    )
    runs = flow.add_arcs_with_capacity_and_unit_cost(
        nodes[chained], nodes[chained] + 1, both[chained], -holding.worth[chained + 1]
    )
    supplies = np.diff(np.concatenate([[0], line_room, [0]]))
    flow.set_nodes_supplies(np.arange(line + 1), supplies)
    status = flow.solve()
    if status == flow.BAD_COST_RANGE:
        raise FlowRangeError(
            "what all results on the way of a flow are worth is more than it can count, for values "
            f"of {int(holding.worth.max()).bit_length()} bits and {flow_size(holding):,} nodes; "
            "use method='prices'"
        )
    if status != flow.OPTIMAL:
        raise AssertionError(f"the flow has no optimum: {status}")
    following = np.zeros(len(meets), np.int64)
    following[chained] = flow.flows(runs)
    until = holding.first.copy()
    keep_newest(holding.first, np.asarray(flow.flows(entries)), following, until)
    return until


def _line(holding: Holding) -> tuple[Words, Words]:
    """The instants at which a tuple arrives or meets, and the room from each to the next."""
    instants = np.unique(np.concatenate([holding.at, holding.meets]))
    return instants, np.minimum.reduceat(holding.room, instants)


def _covering(holding: Holding) -> Words:
    """How many tuples have each meeting."""
    return _counted(holding.first, holding.end, len(holding.meets))


def _spanning(holding: Holding) -> Words:
    """How many tuples have both each meeting and the next."""
    return _counted(holding.first, holding.end - 1, len(holding.meets))


def _counted(begin: Words, end: Words, length: int) -> Words:
    change = np.bincount(begin, minlength=length + 1) - np.bincount(end, minlength=length + 1)
    return np.cumsum(change)[:length]
