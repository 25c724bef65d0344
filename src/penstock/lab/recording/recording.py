"""A recording: streams that were written down, made ready to be joined again and again.

Invariant: the rows of each stream are in order of time, so that none is ever late, and have only
the columns that decide the answer. What comes out of its query is only counted: all that a result
has is what it is counted by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Intake
from penstock.engine.intake import take_in
from penstock.engine.release import release
from penstock.engine.residual import bound
from penstock.kernels.arena import Words
from penstock.kernels.sentinels import BEGINNING
from penstock.lab.recording.given_tables import checked_tables, unused_name
from penstock.lab.recording.key_sample import (
    GROUPS,
    Floats,
    Groups,
    KeySample,
    check_divisible,
    sample_weights,
)
from penstock.lab.recording.need import Entering, Need
from penstock.model.binding import Binding
from penstock.model.query import Query
from penstock.window_join import WindowJoin
from penstock.windows.payload.storage import take_rows

__all__ = ["GROUP", "SINCE", "Recording", "WholeRecording", "deciding_columns", "slim_binding"]

# What results are counted by: the group of their key, and in semi joins when their tuple came.
GROUP: Final = "group"
SINCE: Final = "since"


class WholeRecording(NamedTuple):
    """What is known of a recording of which only a sample is here: its rows; how many tuples enter
    the windows of all streams, and how many are live at once."""

    rows: int
    tuples: int
    need: Need


@dataclass(frozen=True)
class Recording:
    """tables: by stream. times: by stream, of each row. entering: the tuples that take part.
    row_bytes: by stream, of a row with all its columns. weights: by estimate and group, what a
    tuple counts for, see `sample`; one estimate and one group, where all rows are here.
    sample, whole: None then."""

    query: WindowJoin
    tables: Mapping[str, pa.RecordBatch]
    times: tuple[Words, ...]
    entering: tuple[Entering, ...]
    row_bytes: tuple[float, ...]
    weights: Floats
    sample: KeySample | None = None
    whole: WholeRecording | None = None

    @classmethod
    def of(
        cls,
        query: WindowJoin,
        tables: Mapping[str, Any],
        *,
        row_bytes: Mapping[str, float] | None = None,
        sample: KeySample | None = None,
        whole: WholeRecording | None = None,
    ) -> Recording:
        """Of the tables of all streams, in any order.

        row_bytes: of rows as they were before columns were left out. sample: to join of these rows,
        and `whole` what they are a part of.
        """
        # Columns that have been left out must not be missed.
        query = replace(query, select=[])
        given = checked_tables(query, tables)
        slim = {
            name: table.select(deciding_columns(query, stream))
            for stream, (name, table) in enumerate(given.items())
        }
        # Nothing comes late.
        in_order = [
            replace(each, lateness="0 seconds", idle_timeout=None, max_jump=None)
            for each in query.streams
        ]
        query = replace(query, streams=in_order)
        binding, intakes = take_in(query, Binding.of(query), slim, 0)
        streams = [
            _prepared(binding, stream, intakes[stream], sample) for stream in range(len(given))
        ]
        batches = [each.intake.batch for each in streams]
        weights, select = np.ones((1, 1)), {}
        if sample is not None:
            assert whole is not None, "a sample is a part of something"
            check_divisible(query)
            groups = np.concatenate([each.entering.groups for each in streams])
            weights = sample_weights(np.bincount(groups, minlength=GROUPS + 1), whole.tuples)
            column = unused_name(GROUP, batches[0].schema.names)
            batches[0] = batches[0].append_column(column, pa.array(streams[0].groups))
            select[GROUP] = f"{query.names[0]}.{column}"
        if query.is_semi:
            select[SINCE] = f"{query.names[0]}.{query.streams[0].time_column}"
        widths = row_bytes or {
            name: table.nbytes / max(len(table), 1) for name, table in given.items()
        }
        return cls(
            replace(query, select=select),
            dict(zip(query.names, batches, strict=True)),
            tuple(each.intake.ts for each in streams),
            tuple(each.entering for each in streams),
            tuple(widths[name] for name in query.names),
            weights,
            sample,
            whole,
        )

    @property
    def rows(self) -> int:
        """How many there are in all."""
        return self.present if self.whole is None else self.whole.rows

    @property
    def present(self) -> int:
        """How many rows are here."""
        return sum(map(len, self.times))

    def groups(self, words: Words) -> Groups:
        """The group of each of these keys; all in one, where all rows are here."""
        return np.zeros(len(words), np.int8) if self.sample is None else self.sample.groups(words)


def slim_binding(query: Query, schemas: Sequence[pa.Schema]) -> Binding:
    """The binding of streams that have only the columns that decide the answer."""
    return bound(Binding.of(replace(query, select=[])), dict(enumerate(schemas)))


def deciding_columns(query: Query, stream: int) -> list[str]:
    """The columns of a stream that the answer depends on."""
    found = {*query.keys[stream], query.streams[stream].time_column}
    for predicate in (*query.filters, *query.residuals):
        found.update(column.name for column in predicate.columns if column.stream == stream)
    return sorted(found)


class _Prepared(NamedTuple):
    """The rows of a stream that are joined, in order; of which groups they are, and which of them
    enter its window."""

    intake: Intake
    groups: Groups
    entering: Entering


def _prepared(binding: Binding, stream: int, intake: Intake, sample: KeySample | None) -> _Prepared:
    groups: Groups = np.zeros(len(intake.ts), np.int8)
    if sample is not None:
        groups = sample.groups_of(binding, stream, intake.batch)
    rows = np.flatnonzero(groups >= 0)
    rows = rows[np.argsort(intake.ts[rows], kind="stable")]
    intake = Intake(take_rows(intake.batch, rows), intake.ts[rows], intake.earliest, intake.latest)
    arrivals = release(binding, stream, intake, BEGINNING).arrivals
    of_arrivals = (
        np.zeros(len(arrivals), np.int8) if sample is None else sample.groups(arrivals.keys)
    )
    return _Prepared(intake, groups[rows], Entering(arrivals.ts, of_arrivals))
