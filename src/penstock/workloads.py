"""Sample streams: the front door of `penstock.samples`, under the name it had before."""

from penstock.samples import Nexmark, uniform, zipf, zipf_pair
from penstock.samples import SampleStreams as Workload

__all__ = ["Nexmark", "Workload", "uniform", "zipf", "zipf_pair"]
