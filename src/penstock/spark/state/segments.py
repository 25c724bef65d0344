"""The segments of one window: immutable pieces of its tuples, or of its ghosts, in a store.

`Remaining` says which rows of a segment are still needed. A segment goes

    at once     when nothing of it remains
    merged      with a neighbour, when there are many
    written     anew, with all others, when less than half of what is stored is needed

So the store holds few segments, and no more than twice what is needed, and a little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import SnapshotError
from penstock.kernels.arena import Words
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.spark.state.manifest import Manifest, Segment, Store
from penstock.spark.state.segment_bytes import NUMBER, TS, columns_kept, read_rows, write_rows

__all__ = ["FEW_ROWS", "MANY_SEGMENTS", "Remaining", "Segments"]

MANY_SEGMENTS: Final = 24  # of a window; beyond it, neighbours of like size become one
FEW_ROWS: Final = 1 << 10  # are not worth writing anew


class Remaining(NamedTuple):
    """Which rows of a window's segments are still needed: those from the time `begin` on or, if
    some may have left early, those with these numbers, which are in order."""

    begin: int = BEGINNING
    numbers: Words | None = None

    def any_in(self, segment: Segment) -> bool:
        """Whether any of them are in a segment."""
        if self.numbers is None:
            return segment.newest >= self.begin
        return len(_within(self.numbers, segment)) > 0


class Segments:
    """Those that a manifest lists of one window. Ghosts of stream j of n are window n + j."""

    def __init__(self, binding: Binding, store: Store, manifest: Manifest, window: int) -> None:
        streams = len(binding.query.streams)
        self._stream = binding.query.names[window % streams]
        self._columns = columns_kept(binding, window) if window < streams else None
        self._number = NUMBER if window < streams else "laid"  # as shedding/saved.py calls it
        self._store = store
        self._manifest = manifest
        self._window = window
        self._listed = manifest.segments[window]

    @property
    def last(self) -> int:
        """The greatest number in them."""
        return self._listed[-1].last if self._listed else -1

    def are_half_empty(self, needed: int) -> bool:
        """Whether they are worth writing anew, if that many of their rows are needed."""
        return sum(each.rows for each in self._listed) > 2 * needed + FEW_ROWS

    def read(self, remaining: Remaining) -> Iterator[pa.Table]:
        """The rows that remain, one segment after another."""
        found = 0
        for segment in self._listed:
            table = self._read(segment, remaining)
            found += len(table)
            yield table
        if remaining.numbers is not None and found != len(remaining.numbers):
            raise SnapshotError(
                f"a bucket of the checkpoint has {found} tuples of stream {self._stream!r} in its "
                f"segments, and should have {len(remaining.numbers)}; restore the checkpoint from "
                "a copy"
            )

    def append(self, tables: Iterable[pa.Table]) -> None:
        """Write these behind the others."""
        self._replace(slice(len(self._listed), None), tables)

    def replace_all(self, tables: Iterable[pa.Table]) -> None:
        """Write these, and forget the others."""
        self._replace(slice(None), tables)

    def forget_all_but(self, remaining: Remaining) -> None:
        """Forget segments of which nothing remains."""
        for at in reversed(range(len(self._listed))):
            if not remaining.any_in(self._listed[at]):
                self._replace(slice(at, at + 1), ())

    def merge(self, remaining: Remaining) -> None:
        """Write the two neighbours with the fewest rows as one, while there are too many."""
        while len(self._listed) > MANY_SEGMENTS:
            rows = [older.rows + newer.rows for older, newer in pairwise(self._listed)]
            at = rows.index(min(rows))
            pair = slice(at, at + 2)
            tables = [self._kept(self._read(each, remaining)) for each in self._listed[pair]]
            # Columns that were added between them are null in the older one.
            self._replace(pair, [pa.concat_tables(tables, promote_options="default")])

    def _kept(self, table: pa.Table) -> pa.Table:
        """Without columns that are not selected any more: they may come back as another type."""
        if self._columns is None:
            return table
        return table.select([name for name in table.column_names if name in self._columns])

    def _replace(self, old: slice, tables: Iterable[pa.Table]) -> None:
        replaced = self._listed[old]
        self._listed[old] = [self._written(table) for table in tables if len(table)]
        for each in replaced:
            self._store.remove_segment(self._window, each.number)

    def _read(self, segment: Segment, remaining: Remaining) -> pa.Table:
        data = self._store.read_segment(self._window, segment.number)
        table = read_rows(self._stream, data)
        if remaining.numbers is None:
            remain = table[TS].to_numpy() >= remaining.begin
        else:
            left = _within(remaining.numbers, segment)
            remain = np.isin(table[self._number].to_numpy(), left, assume_unique=True)
        return table if remain.all() else table.filter(pa.array(remain))

    def _written(self, table: pa.Table) -> Segment:
        number = self._manifest.next_segment
        self._manifest.next_segment += 1
        self._store.write_segment(self._window, number, write_rows(table))
        newest = pc.max(table[TS]).as_py()
        if self._number not in table.column_names:
            return Segment(number, len(table), newest)
        numbers = table[self._number]
        return Segment(number, len(table), newest, numbers[0].as_py(), numbers[-1].as_py())


def _within(numbers: Words, segment: Segment) -> Words:
    """Those from the first number of a segment to its last."""
    begin, end = np.searchsorted(numbers, [segment.first, segment.last + 1])
    return numbers[begin:end]
