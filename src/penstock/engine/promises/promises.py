"""What a join does with punctuations: which arrivals need not stay, which tuples go, which keys
are over.

A stream that has closed a key brings no more tuples of it, once the join's watermark is where the
promise begins. Of n streams then

    purge      a live tuple when every other stream has closed its key, or some other stream has
               and holds no live tuple of it
    discard    an arrival, after its probe, on the same condition
    propagate  a key when all streams have closed it, or any one has and holds no live tuple of it

Ding and Rundensteiner's PWJoin is this for two streams. A key that may be propagated is dead: no
combination of it can come any more. It is propagated once nothing of it can come out alone either.

When the last tuple of a closed key leaves is known when the key is closed, for nothing of it is
still to come: a calendar says when to look. All of this happens between chunks of a batch, for all
keys at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals
from penstock.engine.promises.calendar import Calendar
from penstock.engine.promises.closed_keys import NEVER, ClosedKeys
from penstock.engine.promises.closing import Closing
from penstock.engine.promises.derived import Derived
from penstock.kernels.arena import Flags, Words
from penstock.kernels.index.indexes import SCAN
from penstock.kernels.punctuation.key_rows import FREE, add_rows
from penstock.kernels.punctuation.live_keys import live_by_index, live_by_scan
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.windows.key_words import key_words
from penstock.windows.windows import Windows

__all__ = ["Promises", "Propagated"]

_LEAST_KEPT: Final = 1 << 10  # keys that are remembered in any case
_DEAD_PART: Final = 8  # of dead ones, one for every N live tuples


class Propagated(NamedTuple):
    """Keys of which no result comes any more, by column, and from when on that was promised."""

    columns: Sequence[pa.Array]
    at: Words


class Promises:
    """Those that hold in a running join.

    discarded, purged: tuples of each stream. propagated: keys. forgotten: dead keys that are no
    longer known, and propagated ones that nobody asked for.
    """

    def __init__(self, windows: Windows, binding: Binding, forgets: bool) -> None:
        """forgets: whether tuples go by them; else they are checked only."""
        self._windows = windows
        self._query = binding.query
        self._binding = binding
        self._forgets = forgets
        streams = len(binding.query.streams)
        self.derived = Derived(binding.query)
        self._keys = ClosedKeys(streams)
        self._closings = Calendar()  # when promises begin to hold
        self._ends = Calendar()  # when the last tuples of closed keys leave
        self.discarded = [0] * streams
        self.purged = [0] * streams
        self.propagated = 0
        self.forgotten = 0
        self._waiting: list[Propagated] = []  # for somebody to ask for them

    def bind(self, binding: Binding) -> None:
        """Use a binding that knows further streams."""
        self._binding = binding

    # Promises in.

    def close(self, closing: Closing) -> None:
        """Take a promise; one that is made again holds from the earlier time on."""
        if not len(closing.words):
            return
        rows = self._keys.add(closing.words, closing.columns, self._binding.key_kinds)
        known = rows != FREE
        rows, at = rows[known], closing.at[known]
        before = self._keys.at[closing.stream, rows]
        np.minimum.at(self._keys.at[closing.stream], rows, at)
        if self._forgets:
            earlier = at < before
            self._closings.add(at[earlier], rows[earlier], closing.stream)

    def end(self, batch: Mapping[int, Arrivals]) -> None:
        """Take what a batch promises that is over."""
        for stream, arrivals in batch.items():
            for closing in self.derived.expiries(stream, arrivals):
                self.close(closing)

    def broken(self, binding: Binding, stream: int, arrivals: Arrivals) -> Flags:
        """Which arrivals of a batch, in any order, their stream had promised not to bring."""
        broken = self.derived.breaks(stream, arrivals, binding.exact)
        if self._keys.count:
            rows = self._rows(binding, stream, arrivals)
            broken |= (rows != FREE) & (self._keys.at[stream, rows] <= arrivals.ts)
        return broken

    def _rows(self, binding: Binding, stream: int, arrivals: Arrivals) -> Words:
        columns = [arrivals.columns[name] for name in self._query.keys[stream]]
        return self._keys.find(arrivals.keys, columns, binding.key_kinds)

    # What follows from them.

    def admitted(self, chunk: Mapping[int, Arrivals], passed: int) -> Mapping[int, Arrivals]:
        """The same, where those that need not stay are guests. passed: a time that neither an
        arrival of this chunk nor what comes after it is before."""
        if not self._keys.count or not self._forgets:
            return chunk
        return {stream: self._admitted(stream, each, passed) for stream, each in chunk.items()}

    def _admitted(self, stream: int, arrivals: Arrivals, passed: int) -> Arrivals:
        if stream in self._query.marked:
            return arrivals  # they must be there until all is verified
        rows = self._rows(self._binding, stream, arrivals)
        leaving = (rows != FREE) & self._needs_no(stream, rows, passed)
        if not leaving.any():
            return arrivals
        self.discarded[stream] += int(leaving.sum())
        guests = leaving if arrivals.guests is None else leaving | arrivals.guests
        return replace(arrivals, guests=guests)

    def _needs_no(self, stream: int, rows: Words, passed: int) -> Flags:
        """Whether nothing that comes can meet a tuple of a stream with the keys of these rows."""
        closed = np.ones(len(rows), np.bool_)
        for other, at in enumerate(self._keys.at):
            if other != stream:
                closed &= at[rows] <= passed
        return closed | self._keys.dead[rows]

    def purged_by(self, chunk: Mapping[int, Arrivals], passed: int) -> Iterator[tuple[int, Words]]:
        """The tuples of each stream that go once a chunk has been worked through. passed: a time
        that nothing which comes after it is before."""
        for stream in range(len(self._query.streams)):
            for closing in self.derived.closings(stream, chunk.get(stream), passed):
                self.close(closing)
        if not self._keys.count or not self._forgets:
            return
        for stream, arrivals in chunk.items():
            if stream in self._query.marked:
                yield from self._counted({stream: self._arrived(stream, arrivals, passed)})
        yield from self._counted(self._settled(passed))

    def _counted(self, going: Mapping[int, Words]) -> Iterator[tuple[int, Words]]:
        for stream, sequences in going.items():
            if len(sequences):
                self.purged[stream] += len(sequences)
                yield stream, sequences

    def _arrived(self, stream: int, arrivals: Arrivals, passed: int) -> Words:
        """Of arrivals that had to enter their window, those that may go again."""
        rows = self._rows(self._binding, stream, arrivals)
        rows = np.unique(rows[rows != FREE])
        return self._live(stream, rows[self._needs_no(stream, rows, passed)])[0]

    def _settled(self, passed: int) -> dict[int, Words]:
        """Look at the keys whose time has come: which are closed now, and of which the last tuple
        has left. Returns the tuples of each stream that go."""
        going = [np.zeros(self._keys.count, np.bool_) for _ in self._query.streams]
        looked = np.zeros(self._keys.count, np.bool_)
        for stream, rows in _by_stream(*self._closings.due(passed)):
            looked[rows] = True
            self._closed(stream, rows[~self._keys.dead[rows]], going, passed)
        for stream, rows in _by_stream(*self._ends.due(passed)):
            looked[rows] = True
            self._die(stream, rows[~self._keys.dead[rows]], going)
        self._propagate(np.flatnonzero(looked), passed)
        gone = {
            stream: self._live(stream, np.flatnonzero(rows))[0]
            for stream, rows in enumerate(going)
            if rows.any()
        }
        self._forget(passed)
        return gone

    def _closed(self, stream: int, rows: Words, going: Sequence[Flags], passed: int) -> None:
        """A stream has closed these keys."""
        closed = [at[rows] <= passed for at in self._keys.at]
        for other, go in enumerate(going):
            alone = np.ones(len(rows), np.bool_)
            for each, is_closed in enumerate(closed):
                if each != other:
                    alone &= is_closed
            go[rows[alone]] = True
        last = self._last_end(stream, rows)
        is_over = (last < passed) | np.logical_and.reduce(closed)
        self._die(stream, rows[is_over], going)
        self._ends.add(last[~is_over] + 1, rows[~is_over], stream)

    def _die(self, stream: int, rows: Words, going: Sequence[Flags]) -> None:
        """No combination of these keys can come: a stream has closed them, and holds none."""
        self._keys.dead[rows] = True
        if len(going) > 2:  # of two, the other let its tuples go when this one closed the key
            for other, go in enumerate(going):
                if other != stream:
                    go[rows] = True

    def _live(self, number: int, rows: Words) -> tuple[Words, Words]:
        """The live tuples of keys in a window, and for each which of the rows its key has."""
        windows = self._windows
        words = self._keys.words(rows)
        out = np.empty((2, windows.live(number)), np.int64)
        state = windows.state
        if not out.shape[1] or not len(words):
            return out[0, :0], out[1, :0]
        kind = int(state.paths["kind"][int(state.windows["paths"][number])])
        if kind == SCAN and len(words) > 1:
            places, keys = np.full(2 * len(words) + 1, FREE, np.int32), np.empty_like(words)
            add_rows(places, keys, 0, words, np.empty(len(words), np.int64))
            count = live_by_scan(state, number, places, keys, out[0], out[1])
        else:
            count = live_by_index(state, number, words, out[0], out[1])
        return self._of_these(number, rows, out[:, :count])

    def _of_these(self, number: int, rows: Words, found: Words) -> tuple[Words, Words]:
        """Without those of other keys that share a word with one of these."""
        sequences, whose = found
        stream = number % len(self._query.streams)
        if self._binding.exact or not len(sequences):
            return sequences, whose
        payload = self._windows.payloads[number]
        if payload is None:
            return sequences, whose  # ghosts; one that is taken for another does no harm
        columns = [payload.take(name, sequences) for name in self._query.keys[stream]]
        kinds = self._binding.key_kinds
        same = self._keys.find(self._keys.words(rows[whose]), columns, kinds) == rows[whose]
        return sequences[same], whose[same]

    def _last_end(self, stream: int, rows: Words) -> Words:
        """When the last live tuple of each key ends; long ago if there is none. Ghosts count: what
        they would have met is lost, and must be seen to be."""
        last = np.full(len(rows), BEGINNING)
        numbers = [stream]
        if self._windows.has_ghosts:
            numbers.append(stream + self._windows.streams)
        for number in numbers:
            sequences, whose = self._live(number, rows)
            ts = self._windows.timestamps(number, sequences)
            np.maximum.at(last, whose, self._windows.ends(number, ts))
        return last

    def against(self, stream: int, key: Sequence[pa.Array], passed: int) -> dict[int, int]:
        """The other streams that have closed a key by a time, and from when on, if a tuple of this
        stream and key is of no more use."""
        kinds = self._binding.key_kinds
        words, _ = key_words(key, kinds, 1)
        rows = self._keys.find(words, key, kinds)
        if not self._forgets or rows[0] == FREE or not self._needs_no(stream, rows, passed)[0]:
            return {}
        at = self._keys.at[:, rows[0]].tolist()
        others = [other for other in range(len(at)) if other != stream]
        return {other: at[other] for other in others if at[other] <= passed}

    def left_early(self, stream: int, words: Words) -> None:
        """Look at keys of which a tuple has left before its time."""
        if self._keys.count and self._forgets:
            rows = self._keys.of_words(words)
            rows = np.unique(rows[rows != FREE])
            rows = rows[self._keys.at[stream, rows] < NEVER]
            self._closings.add(self._keys.at[stream, rows], rows, stream)

    def look_again(self) -> None:
        """Look at all that is open when time goes on: windows have other ends."""
        keys = self._keys
        self._closings.clear()
        self._ends.clear()
        for stream in range(len(self._query.streams)):
            rows = np.flatnonzero((keys.at[stream] < NEVER) & ~keys.told)
            self._closings.add(keys.at[stream, rows], rows, stream)

    def save(self) -> dict[str, pa.Table]:
        """Everything in it."""
        told = {"at": np.concatenate([np.empty(0, np.int64), *(each.at for each in self._waiting)])}
        for number in range(len(self._query.keys[0]) if self._waiting else 0):
            pieces = [each.columns[number] for each in self._waiting]
            told[f"value {number}"] = pa.chunked_array(pieces)
        counts = {"discarded": self.discarded, "purged": self.purged}
        totals = {"propagated": [self.propagated], "forgotten": [self.forgotten]}
        return {
            "keys": self._keys.table(),
            "told": pa.table(told),
            "counts": pa.table(counts),
            "totals": pa.table(totals),
        }

    def load(self, saved: Mapping[str, pa.Table]) -> None:
        """What was saved, of windows that have been filled."""
        self._keys.load(saved["keys"])
        if len(saved["told"]):
            columns = saved["told"].combine_chunks()
            names = [name for name in columns.column_names if name.startswith("value ")]
            values = [columns[name].combine_chunks() for name in names]
            self._waiting = [Propagated(values, columns["at"].to_numpy())]
        self.discarded, self.purged = (
            saved["counts"][name].to_pylist() for name in ("discarded", "purged")
        )
        self.propagated, self.forgotten = (
            saved["totals"][name][0].as_py() for name in ("propagated", "forgotten")
        )
        if self._forgets:
            self.look_again()

    # Promises out.

    def _propagate(self, rows: Words, passed: int) -> None:
        """Give out dead keys of which nothing can come out alone: those that all the streams have
        closed whose tuples do when they meet nothing."""
        over = rows[self._keys.dead[rows] & ~self._keys.told[rows]]
        for stream in self._query.preserved:
            over = over[self._keys.at[stream, over] <= passed]
        if not len(over):
            return
        self._keys.told[over] = True
        at = self._keys.at[:, over]
        latest = np.where(at <= passed, at, BEGINNING).max(axis=0)
        self.propagated += len(over)
        self._waiting.append(Propagated(self._keys.values(over), latest))

    def drained(self) -> list[Propagated]:
        """What has been propagated since the last call."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def _forget(self, passed: int) -> None:
        """Forget dead keys: those that all streams have closed; and of the others, beyond a part of
        the live tuples, the oldest. Of keys that are not dead, beyond as many as live tuples."""
        keys = self._keys
        live = sum(self._windows.live(stream) for stream in range(len(self._query.streams)))
        most = max(_LEAST_KEPT, live)
        dead = np.flatnonzero(keys.dead[: keys.count] & keys.told[: keys.count])
        few = max(_LEAST_KEPT, live // _DEAD_PART)
        if len(dead) <= 2 * few and keys.count <= 2 * most:
            return
        by_all = np.logical_and.reduce([at[dead] <= passed for at in keys.at])
        by_some = dead[~by_all]
        kept = np.ones(keys.count, np.bool_)
        kept[dead] = False
        kept[by_some[max(len(by_some) - few, 0) :]] = True
        rest = np.flatnonzero(kept)
        kept[rest[: max(len(rest) - most, 0)]] = False
        self.forgotten += int(keys.count - kept.sum() - by_all.sum())
        places = keys.keep(np.flatnonzero(kept))
        self._closings.renumber(places)
        self._ends.renumber(places)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self._keys.nbytes + self._closings.nbytes + self._ends.nbytes


def _by_stream(rows: Words, streams: Words) -> Iterator[tuple[int, Words]]:
    """Entries of a calendar by stream, each row once."""
    for stream in range(int(streams.max()) + 1 if len(streams) else 0):
        of_stream = rows[streams == stream]
        if len(of_stream):
            seen = np.zeros(int(of_stream.max()) + 1, np.bool_)
            seen[of_stream] = True
            yield stream, np.flatnonzero(seen)
