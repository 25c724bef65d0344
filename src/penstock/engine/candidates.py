"""Candidates: combinations that the loop found, as sequence numbers, until they are rows.

Columns are taken at most once: what verification needed is reused for the output when all
candidates held.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.padding import event_times, microseconds
from penstock.engine.residual import holds
from penstock.kernels.arena import Words
from penstock.model.binding import Binding
from penstock.windows.key_words import as_kind
from penstock.windows.payload.storage import as_given
from penstock.windows.windows import Windows

__all__ = ["Candidates"]


class Candidates:
    """rows[j]: sequence numbers of stream j; the last row of it: the latest event time.

    of: the window that each stream's tuples are in, if some are ghosts.
    """

    def __init__(
        self, windows: Windows, binding: Binding, rows: Words, of: Sequence[int] | None = None
    ) -> None:
        self._windows = windows
        self._binding = binding
        self._rows = rows
        self._of = of
        self._positions: dict[int, Words] = {}
        self._taken: dict[tuple[int, str], pa.Array] = {}

    def __len__(self) -> int:
        return int(self._rows.shape[1])

    def column(self, stream: int, name: str) -> pa.Array:
        """One column of one stream, in its kept type: a value for each candidate."""
        taken = self._taken.get((stream, name))
        if taken is None:
            payload = self._windows.payloads[self._of[stream] if self._of else stream]
            assert payload is not None, "a stream without tuples has no candidates"
            sequences = self._rows[stream]
            positions = self._positions.get(stream)
            if positions is None:
                positions = self._positions[stream] = payload.positions(sequences)
            taken = payload.columns[name].take(sequences, positions)
            self._taken[stream, name] = taken
        return taken

    def halves(self) -> tuple[Candidates, Candidates]:
        """The same in two parts, for when the bytes of all are too many for one array."""
        middle = len(self) // 2
        return (
            Candidates(self._windows, self._binding, self._rows[:, :middle], self._of),
            Candidates(self._windows, self._binding, self._rows[:, middle:], self._of),
        )

    def verified(self) -> Candidates:
        """Those whose keys are equal by value and not only by hash, and the rest holds too."""
        held = self if self._binding.exact else self._with_equal_keys()
        for predicate in self._binding.query.residuals:
            mask = holds(predicate, held.column, len(held), self._binding.schemas)
            if not mask.all():
                held = held.chosen(mask)
        return held

    @property
    def rows(self) -> Words:
        """The sequence numbers of all streams, and the latest event times."""
        return self._rows

    def sequences(self, stream: int) -> Words:
        """The sequence numbers of a stream."""
        return self._rows[stream]

    def chosen(self, mask: npt.NDArray[np.bool_]) -> Candidates:
        """Some of them."""
        return Candidates(self._windows, self._binding, self._rows[:, mask], self._of)

    def _with_equal_keys(self) -> Candidates:
        equals: npt.NDArray[np.bool_] | None = None
        keys = self._binding.query.keys
        for number, kind in enumerate(self._binding.key_kinds):
            of_first = as_kind(self.column(0, keys[0][number]), kind)
            for stream in range(1, len(keys)):
                of_other = as_kind(self.column(stream, keys[stream][number]), kind)
                equal = pc.equal(of_first, of_other)
                if pc.all(equal, min_count=0).as_py():
                    continue
                mask = equal.to_numpy(zero_copy_only=False).astype(np.bool_)
                equals = mask if equals is None else equals & mask
        return self if equals is None else self.chosen(equals)

    def _latest(self) -> Words:
        """The event time of each: the greatest of its tuples that come out."""
        query = self._binding.query
        if query.counts_arrivals:
            ts = [
                microseconds(self.column(stream, query.streams[stream].time_column))
                for stream in query.given_out
            ]
            latest: Words = np.maximum.reduce(ts)
            return latest
        if len(query.given_out) < len(query.streams):
            return self._windows.timestamps(0, self._rows[0])
        return self._rows[-1].copy()  # the rows are written again for the next chunk

    def batch(self, names: Sequence[str]) -> pa.RecordBatch:
        """The results: the output columns and the event time, under these names."""
        columns = [
            as_given(self.column(out.stream, out.column), out.type) for out in self._binding.output
        ]
        times = event_times(self._binding, self._latest())
        return pa.RecordBatch.from_arrays([*columns, times], names)
