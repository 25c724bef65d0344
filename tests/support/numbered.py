"""The rows of a workload, numbered, so that results can be compared by the numbers alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.samples import SampleStreams


def numbered(work: SampleStreams) -> dict[str, pa.Table]:
    """The streams' rows, each with its place in its stream."""
    ids = pa.array(np.arange(work.rows))
    return {name: work.table(name).append_column("id", ids) for name in work.streams}
