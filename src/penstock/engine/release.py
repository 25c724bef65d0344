"""The release stage: from a batch to arrivals that may enter the loop.

Over time windows nothing has to wait: a combination is complete as soon as its tuples are
there. What is behind the watermark is late and set aside; what has no key can meet nothing
and goes no further; the rest is put in order of time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals, Intake
from penstock.model.binding import Binding
from penstock.state.keys import key_words
from penstock.state.storage import as_kept, take_rows

__all__ = ["Released", "release"]


class Released(NamedTuple):
    """arrivals: for the loop. late: rows behind the watermark, None when there are none.
    keyless: how many in time had a null or NaN for a key."""

    arrivals: Arrivals
    late: pa.RecordBatch | None
    keyless: int


def release(binding: Binding, stream: int, intake: Intake, watermark: int) -> Released:
    """Split a batch of one stream at the watermark and order what is in time."""
    batch, ts, late = intake.batch, intake.ts, None
    if intake.earliest < watermark:
        behind = ts < watermark
        late = take_rows(batch, np.flatnonzero(behind))
        batch, ts = take_rows(batch, np.flatnonzero(~behind)), ts[~behind]
    columns = {name: as_kept(batch.column(name)) for name in binding.kept[stream]}
    keys, present = key_words(
        [columns[name] for name in binding.query.keys[stream]], binding.key_kinds
    )
    arrivals = Arrivals(ts, keys, columns)
    if present is not None:
        arrivals = arrivals.take(np.flatnonzero(present))
    return Released(arrivals.in_time_order(), late, len(ts) - len(arrivals))
