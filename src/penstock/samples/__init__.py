"""Sample streams: seeded generators that tests, the demo and the benchmarks share."""

from penstock.samples.nexmark import Nexmark
from penstock.samples.punctuated import PunctuatedStreams
from penstock.samples.streams import SampleStreams, uniform, zipf, zipf_pair

__all__ = ["Nexmark", "PunctuatedStreams", "SampleStreams", "uniform", "zipf", "zipf_pair"]
