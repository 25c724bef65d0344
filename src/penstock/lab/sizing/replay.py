"""A recording joined from its beginning to its end, without limits or within some.

It is pushed in pieces, of all streams the same stretch of time, and each stream is advanced to the
end of the stretch: so none runs ahead of another, and what has ended leaves. The first run, without
limits, finds pieces that bring no more results than fit in memory; all others are pushed the same
pieces, so that they differ by their limits only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.padding import microseconds
from penstock.kernels.arena import Words
from penstock.lab.recording.key_sample import Floats
from penstock.lab.recording.need import ComeOut, Need, most_live
from penstock.lab.recording.recording import GROUP, SINCE, Recording
from penstock.model.limits import Limits
from penstock.runtime.join import Join

__all__ = ["Exact", "Tally", "exact_replay", "replay"]

_FIRST_ROWS: Final = 256
_MOST_ROWS: Final = 1 << 14
_RESULTS_AT_ONCE: Final = 1 << 20
_PIECES_OF_NEED: Final = 4  # what is held is looked at so often while windows fill once


class Tally(NamedTuple):
    """produced: results, by group. held: tuples in memory while it was full, by group and on the
    average; None if it never was."""

    produced: Floats
    held: Floats | None


class Exact(NamedTuple):
    """The run without limits. produced: results, by group. need: the most live tuples. here: the
    same of the rows that are here, each counting one. bytes: about what the live ones take, with
    all their columns. cuts: the times between the pieces."""

    produced: Floats
    need: Need
    here: int
    bytes: float
    cuts: tuple[int, ...]


def exact_replay(recording: Recording) -> Exact:
    """Join without limits."""
    query, entering = recording.query, recording.entering
    unweighted = np.ones((1, recording.weights.shape[1]))
    at_most = int(most_live(query, entering, unweighted, None).rows[0])
    most_rows = min(max(at_most // _PIECES_OF_NEED, _FIRST_ROWS), _MOST_ROWS)
    every_time = np.sort(np.concatenate(recording.times))
    produced = np.zeros(recording.weights.shape[1])
    come_out: list[ComeOut] = []
    cuts: list[int] = []
    state_bytes, done, rows = 0, 0, _FIRST_ROWS
    with recording.query.start(schemas=_schemas(recording)) as join:
        latest = join.driver.latest = [] if query.is_semi else None
        while done < len(every_time):
            end = _end(every_time, done, rows)
            cut = None if end == len(every_time) else int(every_time[end])
            results = _push(join, recording, cuts[-1] if cuts else None, cut)
            produced += _by_group(results, len(produced))
            if latest is not None:
                come_out.append(_come_out(results, latest))
                latest.clear()
            state_bytes = max(state_bytes, join.footprint()["state"])
            fitting = (end - done) * _RESULTS_AT_ONCE // max(len(results), 1)
            rows = max(1, min(2 * rows, fitting, most_rows))
            done = end
            cuts += [] if cut is None else [cut]
    left = ComeOut(*map(np.concatenate, zip(*come_out, strict=True))) if come_out else None
    need = most_live(query, entering, recording.weights, left)
    if recording.whole is not None and left is None:
        # Known of the whole; of a sample the highest is as much by chance.
        need = recording.whole.need
        need = need._replace(rows=np.full(len(recording.weights), need.rows[0]))
    here = int(most_live(query, entering, unweighted, left).rows[0])
    scale = float(need.rows[0]) / max(here, 1)  # a sample has less state
    payload = float(need.streams @ np.array(recording.row_bytes))
    return Exact(produced, need, here, state_bytes * scale + payload, tuple(cuts))


def replay(recording: Recording, cuts: Sequence[int], limits: Limits) -> Tally:
    """Join within limits."""
    groups = recording.weights.shape[1]
    produced, held = np.zeros(groups), np.zeros(groups)
    shed = 0
    with recording.query.start(limits=limits, schemas=_schemas(recording)) as join:
        for begin, cut in _stretches(cuts):
            produced += _by_group(_push(join, recording, begin, cut), groups)
            if groups == 1:  # then all that is held is of one group, and known
                continue
            before, shed = shed, join.metrics.shed
            if shed > before:
                for stream in range(len(recording.tables)):
                    keys = recording.groups(join.driver.windows.keys(stream))
                    held += np.bincount(keys, minlength=groups)
        was_full = join.metrics.shed > 0
    if groups == 1:
        held += 1
    # When it was looked at, some had ended and left since it was full.
    of_all = limits.memory.rows / held.sum() if held.any() else 0.0
    return Tally(produced, held * of_all if was_full else None)


def _schemas(recording: Recording) -> dict[str, pa.Schema]:
    return {name: batch.schema for name, batch in recording.tables.items()}


def _stretches(cuts: Sequence[int]) -> Iterator[tuple[int | None, int | None]]:
    edges = [None, *cuts, None]
    return pairwise(edges)


def _end(times: Words, begin: int, rows: int) -> int:
    """Where a piece of about `rows` rows ends: an instant is never in two."""
    if begin + rows >= len(times):
        return len(times)
    cut = times[begin + rows]
    return int(np.searchsorted(times, cut, "left" if cut > times[begin] else "right"))


def _push(join: Join, recording: Recording, begin: int | None, cut: int | None) -> pa.Table:
    """What comes between two times; None: from the first on, or to the last."""
    piece = {}
    for (name, batch), times in zip(recording.tables.items(), recording.times, strict=True):
        first = 0 if begin is None else int(np.searchsorted(times, begin))
        last = len(times) if cut is None else int(np.searchsorted(times, cut))
        if last > first:
            piece[name] = batch.slice(first, last - first)
    results = join.push(piece)
    if cut is not None:
        for name in recording.tables:
            join.advance(name, cut)
    return results


def _by_group(results: pa.Table, groups: int) -> Floats:
    if groups == 1:
        return np.array([float(len(results))])
    return np.bincount(results[GROUP].to_numpy(), minlength=groups).astype(np.float64)


def _come_out(results: pa.Table, latest: Sequence[Words]) -> ComeOut:
    """latest: when the last tuple of each match came. The event time of a result is that of its
    left tuple, which may have waited for it."""
    groups = (
        results[GROUP].to_numpy()
        if GROUP in results.column_names
        else np.zeros(len(results), np.int8)
    )
    out = np.concatenate(latest) if latest else np.empty(0, np.int64)
    return ComeOut(microseconds(results[SINCE]), out, groups)
