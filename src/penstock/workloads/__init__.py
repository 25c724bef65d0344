"""Sample streams: seeded generators that tests, the demo and the benchmarks share."""

from penstock.workloads.nexmark import Nexmark
from penstock.workloads.workload import Workload, uniform, zipf, zipf_pair

__all__ = ["Nexmark", "Workload", "uniform", "zipf", "zipf_pair"]
