"""Sample streams: seeded generators that tests, the demo and the benchmarks share."""

from penstock.samples.nexmark import Nexmark
from penstock.samples.streams import SampleStreams, uniform, zipf, zipf_pair

__all__ = ["Nexmark", "SampleStreams", "uniform", "zipf", "zipf_pair"]
