"""What the embedded engine makes of the demo's streams while Spark starts and kernels compile.

A process of its own (`demo_preview_process`) joins the first events and hands over a few of the
results, as Arrow, with what it took.

- `interpreted` runs without the JIT, so it needs no compiled kernels. It takes a millisecond for
  each row, and results are rare among few rows: of the first events it joins only those of the
  busiest sellers. A join by person gives these persons the same results as the whole streams do.
- `compiled` joins all the rows, and leaves the compiled kernels in the cache for Spark's workers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.cli.demo.auctions import KEY, SELECTED, auction_query, columns_of, examples
from penstock.samples.nexmark import Nexmark

__all__ = ["COMPILED", "INTERPRETED", "PREVIEW_EVENTS", "Preview", "preview"]

COMPILED: Final = "compiled"
INTERPRETED: Final = "interpreted"
PREVIEW_EVENTS: Final = 250_000
_SELLERS: Final = 8
_WARM_UP_EVENTS: Final = 20_000
_Batches = Iterable[Mapping[str, pa.RecordBatch]]


@dataclass(frozen=True)
class Preview:
    """kind: how the kernels ran. rows, results: joined, and found. seconds: in the join."""

    kind: str
    rows: int
    results: int
    seconds: float
    examples: pa.Table

    def __str__(self) -> str:
        of = f" of {_SELLERS} sellers" if self.kind == INTERPRETED else ""
        return (
            f"embedded engine, {self.kind}: {self.rows:,} rows{of}, {self.results:,} results, "
            f"{self.seconds:.1f} s"
        )

    def to_arrow(self) -> pa.Table:
        """The examples, with all else as metadata."""
        numbers = {key: str(each) for key, each in asdict(replace(self, examples=None)).items()}
        return self.examples.replace_schema_metadata(numbers)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Preview:
        """Back from `to_arrow`."""
        said = {key.decode(): each.decode() for key, each in (table.schema.metadata or {}).items()}
        return cls(
            said["kind"],
            int(said["rows"]),
            int(said["results"]),
            float(said["seconds"]),
            table.replace_schema_metadata(None),
        )


def preview(kind: str, work: Nexmark) -> Preview:
    """Join the first events of the streams in this process."""
    first = replace(work, events=min(work.events, PREVIEW_EVENTS))
    if kind == INTERPRETED:
        return _joined(kind, first, [_of_the_busiest(first)])
    warm_up = Nexmark(events=_WARM_UP_EVENTS)
    _joined(kind, warm_up, warm_up.batches(_WARM_UP_EVENTS // 4, columns_of(SELECTED)))
    return _joined(kind, first, first.batches(PREVIEW_EVENTS, columns_of(SELECTED)))


def _joined(kind: str, work: Nexmark, batches: _Batches) -> Preview:
    rows, seconds = 0, 0.0
    tables = []
    with auction_query(work).start() as join:
        for batch in batches:
            rows += sum(part.num_rows for part in batch.values())
            before = time.perf_counter()
            tables.append(join.push(batch))
            seconds += time.perf_counter() - before
        tables.append(join.finish())
    found = [table for table in tables if table.num_rows]
    shown = examples(pa.concat_tables(found)) if found else pa.table({})
    return Preview(kind, rows, sum(table.num_rows for table in found), seconds, shown)


def _of_the_busiest(work: Nexmark) -> dict[str, pa.RecordBatch]:
    """All rows of the persons who sell most, of those who sign up in the streams themselves."""
    columns = columns_of(SELECTED)
    sellers, auctions = np.unique(_key(work, "auctions").to_numpy(), return_counts=True)
    is_new = np.isin(sellers, _key(work, "persons").to_numpy())
    sellers, auctions = sellers[is_new], auctions[is_new]
    busiest = pa.array(sellers[np.argsort(-auctions, kind="stable")[:_SELLERS]])
    batch = {}
    for stream in work.STREAMS:
        is_theirs = pc.is_in(_key(work, stream), value_set=busiest)
        batch[stream] = work.batch(stream, 0, work.events, columns[stream]).filter(is_theirs)
    return batch


def _key(work: Nexmark, stream: str) -> pa.Array:
    return work.batch(stream, 0, work.events, [KEY[stream]])[KEY[stream]]
