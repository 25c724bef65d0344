"""The join that the demo runs, and how its results are checked.

A result is a person, an auction they put up and a bid they made, within a minute of each
other and of their signing up. Results are compared by number and by a checksum that does not
depend on their order, over all ids and times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.stream import Stream
from penstock.stats.counter import mix
from penstock.window_join import WindowJoin
from penstock.workloads.nexmark import Nexmark

__all__ = ["SHOWN", "WITHIN", "Digest", "auction_query", "embedded_digest"]

WITHIN: Final = "1 minute"
_KEY: Final = {"persons": "id", "auctions": "seller", "bids": "bidder"}
_COMPARED: Final = {
    "person": "persons.id",
    "auction": "auctions.id",
    "bid_on": "bids.auction",
    "bid_at": "bids.date_time",
}
_SELECTED: Final = {
    **_COMPARED,
    "name": "persons.name",
    "city": "persons.city",
    "sells": "auctions.item_name",
    "price": "bids.price",
}
SHOWN: Final = ("event_time", "name", "city", "sells", "price", "bid_on")
_BATCH_EVENTS: Final = 200_000


def auction_query(work: Nexmark, select: Mapping[str, str] = _SELECTED) -> WindowJoin:
    """The join of the three streams on the person."""
    return WindowJoin(
        [Stream(name, time="date_time", lateness=work.disorder) for name in work.STREAMS],
        on=_KEY,
        within=WITHIN,
        select=select,
    )


@dataclass(frozen=True)
class Digest:
    """What results are compared by."""

    rows: int = 0
    checksum: int = 0

    @classmethod
    def of(cls, results: pa.Table) -> Digest:
        """That of some of the results."""
        words = np.zeros(results.num_rows, dtype=np.uint64)
        for name in (*_COMPARED, "event_time"):
            column = pc.cast(results[name], pa.int64()).to_numpy()
            words = mix(words + column.astype(np.uint64))
        return cls(results.num_rows, int(words.sum(dtype=np.uint64)))

    def __add__(self, other: Digest) -> Digest:
        return Digest(self.rows + other.rows, (self.checksum + other.checksum) % (1 << 64))


def embedded_digest(work: Nexmark) -> Digest:
    """That of all results, joined in this process."""
    columns = {name: {_KEY[name], "date_time"} for name in work.STREAMS}
    for column in _COMPARED.values():
        stream, _, name = column.partition(".")
        columns[stream].add(name)
    digest = Digest()
    with auction_query(work, _COMPARED).start() as join:
        for batch in work.batches(_BATCH_EVENTS, {s: sorted(c) for s, c in columns.items()}):
            digest += Digest.of(join.push(batch))
        digest += Digest.of(join.finish())
    return digest
