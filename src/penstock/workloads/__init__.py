"""Sample streams: seeded generators that tests, the demo and the benchmarks share."""

from penstock.workloads.workload import Workload, uniform, zipf

__all__ = ["Workload", "uniform", "zipf"]
