"""The timeline of two recorded streams, as the exact join sees them: which tuples arrive when, and
how long they stay.

Tuples have places, in order of time, then of streams, then of rows: the order of the oracle.
Those of one time form an instant. Tuples that the join would not take in (before the begin of their
window, or by a predicate over their stream alone) are not there; those without a key are where they
count as rows.

Invariant: a tuple is in its window at each place from its own to `last`, and at none after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals
from penstock.engine.intake import take_in
from penstock.engine.release import release
from penstock.errors import QueryError, TimestampError
from penstock.kernels.arena import Words
from penstock.lab.optimum.changing import Lengths, parse_lengths
from penstock.lab.recording.given_tables import checked_tables, unused_name
from penstock.model.binding import Binding
from penstock.model.keys import KeyKind
from penstock.model.query import Query
from penstock.model.window import ALWAYS, FOREVER, Window
from penstock.runtime.lifetimes import ends_of
from penstock.windows.key_words import as_kind, key_words

__all__ = ["Timeline", "Tuples", "timeline_of"]


class Tuples(NamedTuple):
    """The tuples of a stream. row: in its table. key: equal for equal keys, -1 for none. place: in
    the order of all tuples. instant: which. last: the last place at which it is in its window."""

    row: Words
    key: Words
    place: Words
    instant: Words
    last: Words

    def take(self, chosen: Words) -> Tuples:
        """Some of them, in this order."""
        return Tuples(*(column[chosen] for column in self))


@dataclass(frozen=True)
class Timeline:
    """query: with rows numbered, see `number_columns`. tables: with these numbers. streams: their
    tuples. row_times: of all rows of each table, in microseconds. times: of each instant.
    instant_of: of each place. last_place: of each instant. lengths: by stream, of windows that are
    not all alike."""

    query: Query
    tables: tuple[pa.Table, pa.Table]
    number_columns: tuple[str, str]
    streams: tuple[Tuples, Tuples]
    row_times: tuple[Words, Words]
    times: Words
    instant_of: Words
    last_place: Words
    lengths: tuple[Lengths | None, ...]


def timeline_of(
    query: Query, tables: Mapping[str, Any], windows: Mapping[str, Any] | None
) -> Timeline:
    """The timeline of the tables of a query.

    windows: that change, or are the tuple's own, by stream; see `changing`.
    """
    _check_known(query)
    given = checked_tables(query, tables)
    lengths = parse_lengths(query, given, windows)
    columns = [unused_name("row number", table.column_names) for table in given.values()]
    numbered = [
        table.append_column(column, pa.array(np.arange(len(table))))
        for table, column in zip(given.values(), columns, strict=True)
    ]
    query = replace(
        query,
        select={
            f"{number}": f"{name}.{column}"
            for number, (name, column) in enumerate(zip(query.names, columns, strict=True))
        },
    )
    binding, row_times, arrivals = _released(query, dict(zip(query.names, numbered, strict=True)))
    rows = [each.columns[column].to_numpy() for each, column in zip(arrivals, columns, strict=True)]
    every_ts = np.concatenate([each.ts for each in arrivals])
    of_stream = np.repeat(np.arange(2), [len(each) for each in arrivals])
    order = np.lexsort((of_stream, every_ts))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    times, instant_of = np.unique(every_ts[order], return_inverse=True)
    last_place = np.searchsorted(instant_of, np.arange(len(times)), "right") - 1
    keys = _keys(binding, arrivals)
    streams = []
    for stream, each in enumerate(arrivals):
        places = place[of_stream == stream]
        own = lengths.get(query.names[stream])
        window = query.windows[stream]
        until = ends_of(window, each.ts) if own is None else own.ends(each.ts, rows[stream])
        last = np.searchsorted(every_ts[order], until, "right") - 1
        last = np.minimum(last, _counted_out(window, places, keys[stream]))
        streams.append(Tuples(rows[stream], keys[stream], places, instant_of[places], last))
    return Timeline(
        query,
        (numbered[0], numbered[1]),
        (columns[0], columns[1]),
        (streams[0], streams[1]),
        (row_times[0], row_times[1]),
        times,
        instant_of,
        last_place,
        tuple(lengths.get(name) for name in query.names),
    )


def _check_known(query: Query) -> None:
    if len(query.names) != 2:
        raise QueryError(
            f"the optimum is known for joins of two streams, got {len(query.names)}: "
            f"{query.names}; give a query of two of them"
        )
    if query.how != "inner":
        raise QueryError(
            f"the optimum is known for inner joins, got how={query.how!r}; leave how= out"
        )


def _released(
    query: Query, tables: Mapping[str, pa.Table]
) -> tuple[Binding, list[Words], list[Arrivals]]:
    """The times of all rows, and what the join would take in of them, in order."""
    binding, intakes = take_in(query, Binding.of(query), tables, 0)
    for stream, intake in intakes.items():
        back = np.flatnonzero(intake.ts[1:] < intake.ts[:-1])
        if len(back):
            raise TimestampError(
                f"the times of stream {query.names[stream]!r} must be in order, got one in row "
                f"{back[0] + 2:,} that is before that of the row before; sort the table by "
                f"{query.streams[stream].time_column!r}"
            )
    released = [release(binding, stream, intakes[stream], ALWAYS) for stream in range(2)]
    row_times = [intakes[stream].ts for stream in range(2)]
    return binding, row_times, [each.arrivals for each in released]


def _keys(binding: Binding, arrivals: list[Arrivals]) -> list[Words]:
    """Numbers that are equal for equal keys; one for all where there is no key."""
    sizes = [len(each) for each in arrivals]
    if not binding.query.keys[0]:
        return [np.zeros(size, np.int64) for size in sizes]
    number = np.zeros(sum(sizes), np.int64)
    if binding.exact:
        words = np.concatenate([each.keys for each in arrivals])
        number = np.unique(words, return_inverse=True)[1]
    else:
        for column, kind in enumerate(binding.key_kinds):
            values = [
                each.columns[binding.query.keys[stream][column]]
                for stream, each in enumerate(arrivals)
            ]
            codes = _codes(values, kind)
            number = np.unique(number * (len(number) + 1) + codes, return_inverse=True)[1]
    numbers = [number[: sizes[0]], number[sizes[0] :]]
    return [
        each if released.mute is None else np.where(released.mute, -1, each)
        for each, released in zip(numbers, arrivals, strict=True)
    ]


def _codes(arrays: list[pa.Array], kind: KeyKind) -> Words:
    """Numbers that are equal for equal values of a key's column."""
    if kind.exact:
        words = np.concatenate([key_words([each], [kind], len(each))[0] for each in arrays])
        return np.unique(words, return_inverse=True)[1]
    values = pa.concat_arrays([as_kind(each, kind) for each in arrays])
    return values.dictionary_encode(null_encoding="encode").indices.to_numpy()


def _counted_out(window: Window, place: Words, key: Words) -> Words:
    """For each tuple the last place before newer ones push it out of its window."""
    last = np.full(len(place), FOREVER, np.int64)
    if window.arrivals:
        return place + window.arrivals
    if window.rows:
        # Newer ones of the stream, or of the key.
        order = np.lexsort((place, key)) if window.per_key else np.arange(len(place))
        for_each, replacing = order[: -window.rows], order[window.rows :]
        same = key[for_each] == key[replacing] if window.per_key else slice(None)
        last[for_each[same]] = place[replacing[same]] - 1
    return last
