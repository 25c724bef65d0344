"""The join that the demo runs, and how its results are checked.

A result is a person, an auction they put up and a bid they made, within a minute of each
other and of their signing up. Results are compared by number and by a checksum that does not
depend on their order, over all ids and times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.stream import Stream
from penstock.samples.nexmark import Nexmark
from penstock.stats.counter import mix
from penstock.window_join import WindowJoin

__all__ = [
    "KEY",
    "SELECTED",
    "WITHIN",
    "Digest",
    "auction_query",
    "columns_of",
    "embedded_digest",
    "examples",
]

WITHIN: Final = "1 minute"
KEY: Final = {"persons": "id", "auctions": "seller", "bids": "bidder"}
_COMPARED: Final = {
    "person": "persons.id",
    "auction": "auctions.id",
    "bid_on": "bids.auction",
    "bid_at": "bids.date_time",
}
SELECTED: Final = {
    **_COMPARED,
    "name": "persons.name",
    "city": "persons.city",
    "sells": "auctions.item_name",
    "price": "bids.price",
}
_SHOWN: Final = ("event_time", "name", "city", "sells", "price", "bid_on")
_EXAMPLES: Final = 5
_BATCH_EVENTS: Final = 200_000


def auction_query(work: Nexmark, select: Mapping[str, str] = SELECTED) -> WindowJoin:
    """The join of the three streams on the person."""
    return WindowJoin(
        [Stream(name, time="date_time", lateness=work.disorder) for name in work.STREAMS],
        on=KEY,
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
        if not results.num_rows:
            return cls()  # before a stream has begun, a join knows no columns either
        words = np.zeros(results.num_rows, dtype=np.uint64)
        for name in (*_COMPARED, "event_time"):
            column = pc.cast(results[name], pa.int64()).to_numpy()
            words = mix(words + column.astype(np.uint64))
        return cls(results.num_rows, int(words.sum(dtype=np.uint64)))

    def __add__(self, other: Digest) -> Digest:
        return Digest(self.rows + other.rows, (self.checksum + other.checksum) % (1 << 64))


def columns_of(select: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """What the join reads of each stream for these results."""
    columns = {stream: {key, "date_time"} for stream, key in KEY.items()}
    for column in select.values():
        stream, _, name = column.partition(".")
        columns[stream].add(name)
    return {stream: sorted(each) for stream, each in columns.items()}


def embedded_digest(work: Nexmark) -> Digest:
    """That of all results, joined in this process."""
    digest = Digest()
    with auction_query(work, _COMPARED).start() as join:
        for batch in work.batches(_BATCH_EVENTS, columns_of(_COMPARED)):
            digest += Digest.of(join.push(batch))
        digest += Digest.of(join.finish())
    return digest


def examples(results: pa.Table) -> pa.Table:
    """A few results to look at, of as many persons as there are."""
    _, places = np.unique(results["person"].to_numpy(), return_index=True)
    others = np.setdiff1d(np.arange(results.num_rows), places)
    chosen = np.concatenate([places, others[:_EXAMPLES]])[:_EXAMPLES]
    return results.select(_SHOWN).take(pa.array(chosen)).sort_by("event_time")
