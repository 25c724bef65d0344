"""Tuples that have met no partner yet, and come out alone when they leave their window.

For the streams whose tuples an outer or anti join gives out in any case. What the watermark
has passed can meet nothing that is not late: then its mark says whether it ever met anything.
That is looked at between chunks, when all candidates have been verified, and before the room of
what has left is used again.

A window's tuples are kept in runs: stretches of the ring in order of time, so that of each only
the first must be looked at. Input in order is one run. The runs stand in a heap by the end of
their first tuple.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.kernels import matches, ring
from penstock.kernels.arena import Words
from penstock.model.query import Query
from penstock.windows.windows import Windows

__all__ = ["Unmatched"]


@dataclass(order=True)
class _UnmatchedRun:
    """Tuples from `begin` to before `stop`. ends: the end of the first. newest: the last ts."""

    ends: int
    begin: int
    stop: int = field(compare=False)
    newest: int = field(compare=False)


class Unmatched:
    """Those of all streams of a query that come out in any case."""

    def __init__(self, query: Query) -> None:
        self._streams = query.preserved
        self._runs: dict[int, list[_UnmatchedRun]] = {stream: [] for stream in self._streams}
        self._newest: dict[int, _UnmatchedRun | None] = dict.fromkeys(self._streams)
        self._arriving = dict.fromkeys(self._streams, 0)  # the first tuple of the chunk
        self._noted = dict.fromkeys(self._streams, 0)  # the first tuple that is in no run yet
        # What is below has matched or come out, and its room may be in use again.
        self._floor = dict.fromkeys(self._streams, 0)
        self._moves = dict.fromkeys(self._streams, 0)

    def begin(self, windows: Windows, stream: int) -> None:
        """A chunk with tuples of a stream, for which there is room in the ring."""
        if stream in self._runs:
            self._follow(windows, stream)
            self._floor[stream], self._arriving[stream] = windows.tail_and_head(stream)

    def note(self, windows: Windows) -> None:
        """Take up the tuples that have come into the rings.

        Not those of a chunk that are still to be placed: of bounds that exclude zero a tuple ends
        before its own time, so it would leave, unmatched, before it has come.
        """
        for stream in self._streams:
            self._follow(windows, stream)
            first, head = self._noted[stream], windows.head(stream)
            if first < head:
                self._noted[stream] = head
                sequences = np.arange(first, head)
                self._append(windows, stream, sequences, windows.timestamps(stream, sequences))

    def leave(self, windows: Windows, watermark: int) -> Iterator[tuple[int, Words]]:
        """The tuples that have left their windows without a match, by stream; each once."""
        self.note(windows)
        for stream in self._streams:
            found = [self._outranked(windows, stream)] if windows.by_key(stream) else []
            found += self._passed(windows, stream, watermark)
            if any(map(len, found)):
                yield stream, np.concatenate(found)

    def _passed(self, windows: Windows, stream: int, watermark: int) -> Iterator[Words]:
        runs = self._runs[stream]
        tail, _ = windows.tail_and_head(stream)
        while runs and (runs[0].ends < watermark or runs[0].begin < tail):
            run = runs[0]
            begin = min(max(run.begin, self._floor[stream]), run.stop)
            run.begin = matches.passed(windows.state, stream, begin, run.stop, watermark)
            if run.begin == run.stop:
                heapq.heappop(runs)
                if run is self._newest[stream]:
                    self._newest[stream] = None
            else:
                run.ends = _ends(windows, stream, run.begin)
                heapq.heapreplace(runs, run)
            out = np.empty(run.begin - begin, np.int64)
            yield out[: matches.unmatched(windows.state, stream, begin, run.begin, out)]

    def _outranked(self, windows: Windows, stream: int) -> Words:
        begin = self._arriving[stream]
        out = np.empty(windows.head(stream) - begin, np.int64)
        self._arriving[stream] = windows.head(stream)
        return out[: matches.outranked(windows.state, stream, begin, out)]

    def _follow(self, windows: Windows, stream: int) -> None:
        """If tuples have been moved, or have other ends, begin anew with those that are there."""
        if self._moves[stream] == windows.moves[stream]:
            return
        self._moves[stream] = windows.moves[stream]
        self._runs[stream], self._newest[stream] = [], None
        live = windows.live_sequences(stream)
        self._arriving[stream] = self._noted[stream] = windows.head(stream)
        if len(live):
            self._append(windows, stream, live, windows.timestamps(stream, live))

    def _append(self, windows: Windows, stream: int, sequences: Words, ts: Words) -> None:
        is_break = (ts[1:] < ts[:-1]) | (sequences[1:] != sequences[:-1] + 1)
        breaks = (np.flatnonzero(is_break) + 1).tolist()
        for begin, end in pairwise([0, *breaks, len(ts)]):
            first, stop = int(sequences[begin]), int(sequences[end - 1]) + 1
            newest = self._newest[stream]
            if newest and newest.stop == first and newest.newest <= ts[begin]:
                newest.stop, newest.newest = stop, int(ts[end - 1])
                continue
            ends = int(ring.ends(windows.state.windows[stream], int(ts[begin])))
            run = _UnmatchedRun(ends, first, stop, int(ts[end - 1]))
            self._newest[stream] = run
            heapq.heappush(self._runs[stream], run)

    @property
    def first_end(self) -> int | None:
        """The end of the first tuple in a run."""
        return min((runs[0].ends for runs in self._runs.values() if runs), default=None)

    def dump(self) -> dict[str, Any]:
        """What is known of each stream, as plain values."""
        return {
            str(stream): {
                "runs": [[run.ends, run.begin, run.stop, run.newest] for run in runs],
                "arriving": self._arriving[stream],
                "floor": self._floor[stream],
            }
            for stream, runs in self._runs.items()
        }

    def load(self, dumped: Mapping[str, Any], windows: Windows) -> None:
        """Restore what was dumped, of windows that have been loaded."""
        for stream in self._streams:
            of_stream = dumped[str(stream)]
            runs = [_UnmatchedRun(*run) for run in of_stream["runs"]]
            self._runs[stream] = runs  # a heap, as it was
            self._newest[stream] = max(runs, key=lambda run: run.stop, default=None)
            self._arriving[stream] = of_stream["arriving"]
            self._noted[stream] = windows.head(stream)
            self._floor[stream] = of_stream["floor"]
            self._moves[stream] = windows.moves[stream]

    def check(self, windows: Windows) -> None:
        """Raise AssertionError unless every tuple that may come out is in one run."""
        self.note(windows)
        for stream in self._streams:
            waiting: set[int] = set()
            for run in self._runs[stream]:
                assert run.begin < run.stop
                sequences = np.arange(max(run.begin, self._floor[stream]), run.stop)
                ts = windows.timestamps(stream, sequences)
                assert (ts[1:] >= ts[:-1]).all()
                if len(sequences) and run.begin == sequences[0]:
                    assert run.ends == _ends(windows, stream, run.begin)
                assert not waiting & set(sequences.tolist())
                waiting |= set(sequences.tolist())
            live = windows.live_sequences(stream)
            flags = np.empty(len(live), np.bool_)
            matches.are_matched(windows.state, stream, live, flags)
            assert set(live[~flags].tolist()) <= waiting


def _ends(windows: Windows, stream: int, sequence: int) -> int:
    ts = int(windows.timestamps(stream, np.array([sequence]))[0])
    return int(ring.ends(windows.state.windows[stream], ts))
