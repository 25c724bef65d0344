"""Planning: what a join costs each way it could be evaluated, and which way is the cheapest."""

from penstock.planning.binary import binary_cost
from penstock.planning.multiway import best_order, multiway_cost
from penstock.shedding.allocation import allocate_both, allocate_cpu, allocate_memory

__all__ = [
    "allocate_both",
    "allocate_cpu",
    "allocate_memory",
    "best_order",
    "binary_cost",
    "multiway_cost",
]
