"""The driver: the order of work. Kernels, index and payload own the work itself.

For each chunk of a batch, in order of time (windows also expire arrival by arrival, in 2):

    1  room       in the rings, for the arrivals of the chunk; their payload to its place
    2  probe      each arrival against the other windows, then into its own    kernels.loop
    3  verify     candidates with equal hashes, by value                       engine.candidates
    4  emit       taken once, as Arrow; matches are marked if they count       kernels.matches
    5  purge      what punctuations have closed                                engine.promises
    6  expire     what both the chunk and the batch's watermark have passed    kernels.ring
                  and has met nothing comes out first, in outer joins          engine.unmatched

The rows of a chunk stay readable until it is over: their room was made before it began, so
what expires while it runs is not written over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals, guests_of, muted, of_one_type
from penstock.engine.candidates import Candidates
from penstock.engine.chunks import chunks
from penstock.engine.lost import are_lost, count_lost
from penstock.engine.padding import padded
from penstock.engine.promises.promises import Promise, Promises
from penstock.engine.result_values import ResultValues
from penstock.engine.unmatched import Unmatched
from penstock.kernels import matches, ring
from penstock.kernels.arena import Flags, Words
from penstock.kernels.jit import EntryPoint, entry_point
from penstock.kernels.loop import (
    DIRECTORY_FULL,
    DONE,
    GHOSTS_FULL,
    OUTPUT_FULL,
    arrive,
    refill,
)
from penstock.kernels.punctuation.live_keys import bury_all
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.model.window import Window
from penstock.shedding.shedder import Shedder
from penstock.shedding.unlimited import Unlimited
from penstock.windows import invariants
from penstock.windows.allocator import Allocator, Heap
from penstock.windows.payload.column import TooLong
from penstock.windows.payload.payload import Payload
from penstock.windows.payload.pieces import in_pieces
from penstock.windows.windows import Windows

__all__ = ["NUMBER", "Driver"]

NUMBER: Final = "\0number"  # no column of a stream is called so

_ALL_HEARD: Final = np.empty(0, np.bool_)
_ALL_STAY: Final = np.empty(0, np.bool_)
_FIRST_ROWS: Final = 1 << 12
_MOST_ROWS: Final = 1 << 16  # more would fall out of the cache between probe and take


class Driver:
    """Runs batches through the windows of one join."""

    def __init__(
        self,
        binding: Binding,
        plan: Plan,
        memory: Allocator | None = None,
        *,
        keep_matched: bool = False,
        numbered: bool = False,
    ) -> None:
        """keep_matched: in semi and anti joins, so that every tuple stays till its window ends.
        numbered: whether tuples come with numbers, in the column NUMBER, which are kept."""
        self.windows = Windows(binding.query, plan, memory or Heap())
        self.shedder: Shedder | Unlimited = Unlimited(len(binding.query.streams))
        if plan.limits is not None:
            self.shedder = Shedder(binding.query, plan.limits, self.windows)
        # What streams promise; None until one does.
        self.promises: Promises | None = None
        self._values = ResultValues.of(binding.query, plan.limits)
        self.produced = 0
        # The latest event times of matches, in order of the results; kept once a list is set here.
        self.latest: list[Words] | None = None
        self._query = binding.query
        self._bury = not keep_matched
        self._forgets_early = plan.promising.forgets_early
        self._numbered = numbered
        self._streams = len(binding.query.streams)
        self._most_words = max(len(words) for words in binding.query.access.words)
        self._unmatched = Unmatched(binding.query)
        self._bury_all = EntryPoint(bury_all)
        self._arrive: Callable[..., tuple[int, int]] | None = None
        self._expire_all: Callable[..., None] | None = None
        self._rows: Words = np.empty((self._streams + 1, _FIRST_ROWS), np.int64)
        self.bind(binding)

    def check_binding(self, binding: Binding) -> None:
        """Refuse columns that limits do not fit."""
        if self._values is not None:
            self._values.check(binding)
        self.shedder.check(binding)

    def bind(self, binding: Binding) -> None:
        """Use a binding that knows further streams."""
        self.check_binding(binding)
        self.binding = binding
        self._schema = binding.output_schema()
        self._names = self._schema.names
        self._nothing = pa.Table.from_batches([], self._schema)
        for stream, schema in enumerate(binding.schemas):
            if schema is not None and self.windows.payloads[stream] is None:
                more = [NUMBER] if self._numbered else []
                self.windows.payloads[stream] = Payload(
                    pa.schema([*schema, *(pa.field(name, pa.int64()) for name in more)]),
                    [*binding.kept[stream], *more],
                    self.windows.size(stream),
                    self.windows.memory,
                )
        self.shedder.bind(binding)
        if binding.query.promises or self.promises is not None:
            self.promised().bind(binding)

    def promised(self) -> Promises:
        """What streams promise, from the first promise on."""
        if self.promises is None:
            self.promises = Promises(self.windows, self.binding, self._forgets_early)
        return self.promises

    def run(
        self,
        batch: Mapping[int, Arrivals],
        watermark: int,
        alone: Mapping[int, Arrivals] | None = None,
        closings: Sequence[Promise] = (),
    ) -> pa.Table:
        """Results of a batch, whose streams are each in time order.

        `watermark` is the one that will hold after the batch. alone: tuples that come out
        without having been in a window. closings: promises that stand behind the batch.
        """
        results: list[pa.RecordBatch] = []
        present = {stream: batch[stream] for stream in sorted(batch) if len(batch[stream].ts)}
        self.windows.begin(watermark)
        for stream, arrivals in (alone or {}).items():
            self._give_out(self._padded(stream, arrivals.columns, arrivals.ts), results)
        for number, chunk in enumerate(chunks(present, self.shedder.chunk_rows())):
            passed = min(watermark, *(int(arrivals.ts[0]) for arrivals in chunk.values()))
            # Before room is made, which sweeps out what has been passed.
            self._let_go(passed, results)
            if number > 0:  # before the first, the last batch's end has seen to it
                self._expire(passed)
            admitted = self.promises.admitted(chunk, passed) if self.promises else chunk
            self._work(admitted, passed, results)
            self.shedder.keep_bytes(passed)
            last = max(int(arrivals.ts[-1]) for arrivals in chunk.values())
            self._purge(chunk, min(watermark, last), results)
        for closing in closings:
            self.promised().take(closing, watermark)
        if self.promises is not None:
            self.promises.take_expiries(present)
        self._purge({}, watermark, results)
        self._let_go(watermark, results)
        self._expire(watermark)
        self.windows.shrink()
        if self._rows.shape[1] > _MOST_ROWS:
            self._rows = np.empty((self._streams + 1, _MOST_ROWS), np.int64)
        return pa.Table.from_batches(results, self._schema) if results else self._nothing

    def resize(self, stream: int, window: Window, watermark: int) -> pa.Table:
        """Give a window another length; what comes out because of it, in outer joins."""
        results: list[pa.RecordBatch] = []
        self.bind(replace(self.binding, query=self.binding.query.resized(stream, window)))
        self.windows.trim(stream, watermark)  # what has left does not come back
        self.windows.resize(stream, window)
        if self.promises is not None:
            self.promises.look_again()
        self._let_go(watermark, results)
        self.windows.trim(stream, watermark)
        self._let_go(watermark, results)
        self._expire(watermark)
        return pa.Table.from_batches(results, self._schema) if results else self._nothing

    def refill(self, stream: int, arrivals: Arrivals, matched: Flags | None = None) -> None:
        """Put tuples into a window as if they had arrived and met nothing. matched: which had.

        Nothing is shed for them: the caller keeps within limits when all is there.
        """
        self._reserve({stream: arrivals}, BEGINNING)
        done, first = 0, self.windows.head(stream)
        mute = _ALL_HEARD if arrivals.mute is None else arrivals.mute
        ts, words, mute = map(of_one_type, (arrivals.ts, arrivals.words, mute))
        while done < len(arrivals):
            done = refill(self.windows.state, stream, ts, words, mute, done)
            if done < len(arrivals):
                self.windows.make_index_room()
        if matched is not None:
            matches.mark(self.windows.state, stream, first + np.flatnonzero(matched))
        self._unmatched.note(self.windows)

    def restore(self, produced: int, expired: Sequence[int]) -> None:
        """Go on from these counters."""
        self.produced = produced
        self.windows.state.windows["expired"][: self._streams] = expired

    @property
    def first_end(self) -> int | None:
        """The end of the first tuple that may come out without a partner; None without one."""
        return self._unmatched.first_end

    def check(self) -> None:
        """Raise AssertionError unless all invariants hold; for tests."""
        invariants.check(self.windows)
        self._unmatched.check(self.windows)

    def dump(self) -> dict[str, Any]:
        """Everything in it, as plain values and the buffers themselves."""
        return {
            "produced": self.produced,
            "windows": self.windows.dump(),
            "unmatched": self._unmatched.dump(),
            "promises": None if self.promises is None else self.promises.dump(),
        }

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Restore what a driver of the same binding and plan dumped, on its buffers."""
        self.produced = dumped["produced"]
        self.windows.load(dumped["windows"])
        self._unmatched.load(dumped["unmatched"], self.windows)
        if dumped["promises"] is not None:
            self.promised().load_dump(dumped["promises"])

    def _work(
        self, chunk: Mapping[int, Arrivals], passed: int, results: list[pa.RecordBatch]
    ) -> None:
        """Steps 1 to 4. Nothing in the chunk or after it is before `passed`."""
        self._make_room(chunk, passed)
        line = self._line_up(chunk)
        if self._arrive is None:
            self._arrive = entry_point(arrive, (self.windows.state, *line, self._rows))
        while True:
            self.shedder.ghosts.begin()
            found, status = self._arrive(self.windows.state, *line, self._rows)
            if found:
                self._take_out(self._rows[:, :found], results)
            self.shedder.ghosts.note()
            if status == DONE:
                return
            if status == DIRECTORY_FULL:
                self._let_go(passed, results)  # before what newer ones have outranked is buried
                self.windows.make_index_room()
            elif status == GHOSTS_FULL:
                self.shedder.ghosts.make(passed)
            elif status != OUTPUT_FULL:
                continue
            elif found == 0 or self._rows.shape[1] < _MOST_ROWS:
                self._rows = np.empty((self._streams + 1, 4 * self._rows.shape[1]), np.int64)

    def _purge(
        self, chunk: Mapping[int, Arrivals], passed: int, results: list[pa.RecordBatch]
    ) -> None:
        """Let go of what can meet nothing more; what has met nothing comes out, where it does."""
        for stream, sequences in self.promises.purged_by(chunk, passed) if self.promises else ():
            if stream in self._query.preserved:
                met = np.empty(len(sequences), np.bool_)
                matches.are_matched(self.windows.state, stream, sequences, met)
                matches.mark(self.windows.state, stream, sequences)
                for batch in in_pieces(sequences[~met], partial(self._alone, stream)):
                    self._give_out(batch, results)
            self._bury_all(self.windows.state, stream, of_one_type(sequences))

    def _take_out(self, rows: Words, results: list[pa.RecordBatch]) -> None:
        """Give out what has been found, and count what is lost."""
        if self.shedder.limits is None:
            self._emit(Candidates(self.windows, self.binding, rows), results)
            return
        self.shedder.ghosts.note()  # ghosts of this very run may be among them
        lost = are_lost(rows)
        if not lost.all():
            held = rows[:, ~lost] if lost.any() else rows
            self._emit(Candidates(self.windows, self.binding, held), results)
        if lost.any():
            count_lost(self.windows, self.binding, rows[:, lost])

    def _make_room(self, chunk: Mapping[int, Arrivals], passed: int) -> None:
        self.shedder.allocate({s: each.ts for s, each in chunk.items()})
        self.shedder.make_room({s: len(each.ts) for s, each in chunk.items()}, passed)
        self._reserve(chunk, passed)

    def _reserve(self, chunk: Mapping[int, Arrivals], passed: int) -> None:
        self.windows.reserve({s: len(each.ts) for s, each in chunk.items()}, passed)
        for stream, arrivals in chunk.items():
            payload = self.windows.payloads[stream]
            assert payload is not None, "a stream with arrivals is bound"
            payload.write(arrivals.columns, self.windows.head(stream))
            if self._values is not None:
                self.shedder.write_values(stream, self._values.of_tuples(stream, arrivals))
            self._unmatched.begin(self.windows, stream)

    def _line_up(self, chunk: Mapping[int, Arrivals]) -> tuple[Words, Words, Flags, Flags]:
        """Put the streams' arrivals one behind the other and set their cursors."""
        self.windows.line_up({stream: len(each.ts) for stream, each in chunk.items()})
        mute, guests = muted(chunk.values()), guests_of(chunk.values())
        # Copied even if there is one: what a user gives may be read-only, and numba would
        # compile the loop again for that.
        return (
            np.concatenate([arrivals.ts for arrivals in chunk.values()]),
            self._words(chunk.values()),
            _ALL_HEARD if mute is None else mute,
            _ALL_STAY if guests is None else guests,
        )

    def _words(self, chunk: Collection[Arrivals]) -> Words:
        """Their words one behind the other; rows beyond a stream's paths hold anything."""
        if self._most_words == 1:
            return np.concatenate([arrivals.keys for arrivals in chunk]).reshape(1, -1)
        words = np.empty((self._most_words, sum(map(len, chunk))), np.int64)
        begin = 0
        for arrivals in chunk:
            words[: len(arrivals.words), begin : begin + len(arrivals)] = arrivals.words
            begin += len(arrivals)
        return words

    def _emit(self, candidates: Candidates, results: list[pa.RecordBatch]) -> None:
        try:
            held = candidates.verified()
        except (TooLong, pa.ArrowInvalid):
            # More bytes or values than one Arrow array of some type can address.
            if len(candidates) == 1:
                raise
            for half in candidates.halves():
                self._emit(half, results)
            return
        self._append(self._marked(held), results)

    def _marked(self, held: Candidates) -> Candidates:
        """Mark all matches, if the join needs it, and return those that come out."""
        query = self._query
        if query.how == "inner" or not len(held):
            return held
        if len(query.given_out) > 1:
            for stream in query.marked:
                matches.mark(self.windows.state, stream, of_one_type(held.sequences(stream)))
            return held
        (left,) = query.marked
        are_first = np.empty(len(held), np.bool_)
        sequences = of_one_type(held.sequences(left))
        matches.first_matches(self.windows.state, left, sequences, self._bury, are_first)
        if self.promises is not None:
            self.promises.left_early(left, self.windows.words_of(left, 0, sequences[are_first]))
        return held.chosen(are_first if query.is_semi else np.zeros_like(are_first))

    def _append(self, held: Candidates, results: list[pa.RecordBatch]) -> None:
        if not len(held):
            return
        try:
            batch = held.batch(self._names)
        except (TooLong, pa.ArrowInvalid):
            if len(held) == 1:
                raise
            for half in held.halves():
                self._append(half, results)
            return
        self._give_out(batch, results)
        if self.latest is not None:
            self.latest.append(held.rows[-1].copy())

    def _give_out(self, batch: pa.RecordBatch, results: list[pa.RecordBatch]) -> None:
        if len(batch):
            self.produced += len(batch)
            results.append(batch)

    def _let_go(self, watermark: int, results: list[pa.RecordBatch]) -> None:
        """Give out what leaves its window without a match."""
        for stream, sequences in self._unmatched.leave(self.windows, watermark):
            for batch in in_pieces(sequences, partial(self._alone, stream)):
                self._give_out(batch, results)

    def _alone(self, stream: int, sequences: Words) -> pa.RecordBatch:
        payload = self.windows.payloads[stream]
        assert payload is not None, "a stream with tuples is bound"
        ts = self.windows.timestamps(stream, sequences)
        return self._padded(stream, payload.take_all(sequences), ts)

    def _padded(self, stream: int, columns: Mapping[str, pa.Array], ts: Words) -> pa.RecordBatch:
        return padded(self.binding, stream, columns, ts, self._names)

    def _expire(self, watermark: int) -> None:
        if self._expire_all is None:
            self._expire_all = entry_point(ring.expire_all, (self.windows.state, watermark))
        self._expire_all(self.windows.state, watermark)
        for stream, payload in enumerate(self.windows.payloads):
            if payload is not None and payload.must_release:
                payload.release(*self.windows.tail_and_head(stream))
