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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Arrivals
from penstock.engine.promises.calendar import Calendar
from penstock.engine.promises.closed_keys import NEVER, ClosedKeys
from penstock.engine.promises.closing import Closing
from penstock.engine.promises.derived import Derived
from penstock.engine.promises.live_tuples import LiveTuples
from penstock.engine.promises.told import Propagated, Told
from penstock.engine.promises.wide import Wide, WideClosing
from penstock.kernels.arena import Flags, Words
from penstock.kernels.punctuation.key_rows import FREE
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.model.keys import are_words, value_type
from penstock.windows.key_words import key_words
from penstock.windows.payload.storage import as_kept
from penstock.windows.windows import Windows

__all__ = ["Promise", "Promises"]

_LEAST_KEPT: Final = 1 << 10  # keys that are remembered in any case
_DEAD_PART: Final = 8  # of dead ones, one for every N live tuples

_NONE: Final = np.empty(0, np.int64)

Promise = Closing | WideClosing


class Promises:
    """Those that hold in a running join.

    discarded, purged: tuples of each stream. forgotten: promises that are no longer known. told:
    those that are over.
    """

    def __init__(self, windows: Windows, binding: Binding, forgets: bool) -> None:
        """forgets: whether tuples go by them; else they are checked only."""
        self._windows = windows
        self._query = binding.query
        self._binding = binding
        self._forgets = forgets
        streams = len(binding.query.streams)
        self.wide = Wide()
        self.derived = Derived(binding.query, self.wide)
        self._keys = ClosedKeys(streams)
        self._tuples = LiveTuples(windows, self._keys)
        self._closings = Calendar()  # when promises begin to hold
        self._ends = Calendar()  # when the last tuples of closed keys leave
        self.discarded = [0] * streams
        self.purged = [0] * streams
        self.told = Told()
        self.forgotten = 0
        self._promising = [
            stream
            for stream, each in enumerate(binding.query.streams)
            if each.unique or each.clustered or each.increasing
        ]
        self._preserved = np.array(sorted(binding.query.preserved), np.int64)
        self._closers: set[int] = set()  # streams that have closed a key
        self._dead = 0  # keys, about
        self._unswept = 0  # arrivals since windows were looked through for wide promises

    def bind(self, binding: Binding) -> None:
        """Use a binding that knows further streams."""
        self._binding = binding

    # Promises in.

    def close(self, closing: Closing) -> None:
        """Take a promise; one that is made again holds from the earlier time on."""
        if not len(closing.words):
            return
        rows, at, _ = self._noted(closing)
        if self._forgets:
            self._closings.add(at, rows, closing.stream)

    def _noted(self, closing: Closing) -> tuple[Words, Words, Flags]:
        """The rows of keys that a promise closes, or closes from an earlier time on; from when on;
        and which it is the first to close."""
        self._closers.add(closing.stream)
        rows = self._keys.add(closing.words, closing.columns, self._binding.key_kinds)
        return self._keys.note(closing.stream, rows, closing.at, is_single=closing.is_single)

    def take(self, closing: Promise, passed: int) -> None:
        """Take a promise. One about many keys becomes one about those of live tuples now, and about
        those to come when they do."""
        if isinstance(closing, Closing):
            self.close(closing)
            return
        self.forgotten += self.wide.add(closing, passed)
        self._sweep()

    def _sweep(self) -> None:
        """Look through all windows for keys that wide promises are about."""
        self._unswept, kinds = 0, self._binding.key_kinds
        for stream, payload in enumerate(self._windows.payloads[: self._windows.streams]):
            live = self._windows.live_sequences(stream)
            if payload is not None and len(live):
                key = [as_kept(payload.take(name, live)) for name in self._query.keys[stream]]
                self._close_all(self.wide.of_keys(self._windows.keys(stream), key, kinds))

    def _close_all(self, closings: Iterable[Closing]) -> None:
        for closing in closings:
            self.close(closing)

    def take_expiries(self, batch: Mapping[int, Arrivals]) -> None:
        """Take what the tuples of a batch promise about other streams; the batch is over."""
        for stream, arrivals in batch.items():
            self._close_all(self.derived.expiries(self._binding, stream, arrivals))

    def broken(
        self, binding: Binding, batch: Mapping[int, Arrivals], stream: int, arrivals: Arrivals
    ) -> Words:
        """Which arrivals of a batch, in any order, their stream had promised not to bring. batch:
        the arrivals of streams that may promise for others."""
        found = self.derived.breaks(binding, stream, arrivals)
        if batch:
            found += self.derived.expired(binding, batch, stream, arrivals)
        if self.wide:
            key = self._key(binding, stream, arrivals)
            found.append(self.wide.broken(stream, arrivals, key, binding.key_kinds))
        if stream in self._closers:
            rows = self._rows(binding, stream, arrivals)
            if rows is not None:
                found.append(self._keys.broken(stream, rows, arrivals.ts))
        found = [each for each in found if len(each)]
        if not found:
            return _NONE
        broken = np.unique(np.concatenate(found))
        self.derived.note_broken(binding, stream, arrivals.take(broken))
        return broken

    def _rows(self, binding: Binding, stream: int, arrivals: Arrivals) -> Words | None:
        key = self._key(binding, stream, arrivals)
        return self._keys.find(arrivals.keys, key, binding.key_kinds)

    def _key(self, binding: Binding, stream: int, arrivals: Arrivals) -> Sequence[pa.Array]:
        """The columns of the key, as far as they are needed beside its words."""
        if are_words(binding.key_kinds) and not self.wide.ranges:
            return ()
        return [arrivals.columns[name] for name in self._query.keys[stream]]

    # What follows from them.

    def admitted(self, chunk: Mapping[int, Arrivals], passed: int) -> Mapping[int, Arrivals]:
        """The same, where those that need not stay are guests. passed: a time that neither an
        arrival of this chunk nor what comes after it is before."""
        if not self._forgets:
            return chunk
        for stream, each in chunk.items() if self.wide else ():
            key, kinds = self._key(self._binding, stream, each), self._binding.key_kinds
            self._close_all(self.wide.of_keys(each.keys, key, kinds))
        if not self._keys.count:
            return chunk
        return {stream: self._admitted(stream, each, passed) for stream, each in chunk.items()}

    def _admitted(self, stream: int, arrivals: Arrivals, passed: int) -> Arrivals:
        if stream in self._query.marked or not self._closers - {stream}:
            return arrivals  # the marked must be there until all is verified
        rows = self._rows(self._binding, stream, arrivals)
        leaving = None if rows is None else self._keys.unneeded(stream, rows, passed)
        if leaving is None:
            return arrivals
        self.discarded[stream] += int(np.count_nonzero(leaving))
        guests = leaving if arrivals.guests is None else leaving | arrivals.guests
        return replace(arrivals, guests=guests)

    def purged_by(self, chunk: Mapping[int, Arrivals], passed: int) -> Iterator[tuple[int, Words]]:
        """The tuples of each stream that go once a chunk has been worked through. passed: a time
        that nothing which comes after it is before."""
        ended: list[tuple[int, Words, Words]] = []
        for stream in self._promising:
            arrived = chunk.get(stream)
            for closing in self.derived.closings(self._binding, stream, arrived, passed):
                if closing.is_single and self._forgets and self._closers <= {stream}:
                    ended += self._closed_by_itself(closing, passed)
                else:
                    self.close(closing)
        if self.wide.below and self._forgets:
            live = sum(self._windows.live(stream) for stream in range(self._windows.streams))
            self._unswept += sum(map(len, chunk.values()))
            if self._unswept > max(_LEAST_KEPT, live // 2):
                self._sweep()
        if not self._keys.count:
            return
        if not self._forgets:
            self._forget(passed)
            return
        for stream, arrivals in chunk.items():
            if stream in self._query.marked:
                yield from self._counted({stream: self._arrived(stream, arrivals, passed)})
        if ended or passed >= self._closings.first or passed >= self._ends.first:
            yield from self._counted(self._settled(passed, ended))
        self._forget(passed)

    def _closed_by_itself(self, closing: Closing, passed: int) -> list[tuple[int, Words, Words]]:
        """Take promises of tuples that are the only ones of their keys, and live, whose ends are
        known. Returns the stream, and rows and ends of keys that are closed now, if there are any.
        """
        rows, at, is_first = self._noted(closing)
        now = is_first & (at <= passed)
        if not now.all():
            self._closings.add(at[~now], rows[~now], closing.stream)
            rows, at = rows[now], at[now]
        if not len(rows):
            return []
        return [(closing.stream, rows, self._windows.ends(closing.stream, at))]

    def _counted(self, going: Mapping[int, Words]) -> Iterator[tuple[int, Words]]:
        for stream, sequences in going.items():
            if len(sequences):
                self.purged[stream] += len(sequences)
                yield stream, sequences

    def _arrived(self, stream: int, arrivals: Arrivals, passed: int) -> Words:
        """Of arrivals that had to enter their window, those that may go again."""
        rows = self._rows(self._binding, stream, arrivals)
        leaving = None if rows is None else self._keys.unneeded(stream, rows, passed)
        if rows is None or leaving is None:
            return _NONE
        return self._live(stream, np.unique(rows[leaving]))

    def _settled(self, passed: int, ended: Sequence[tuple[int, Words, Words]]) -> dict[int, Words]:
        """Look at the keys whose time has come: which are closed now, and of which the last tuple
        has left. ended: of some, when it will. Returns the tuples of each stream that go."""
        going: list[list[Words]] = [[] for _ in self._query.streams]
        looked = []
        for stream, rows in _by_stream(*self._closings.due(passed)):
            looked.append(rows)
            alive = rows[~self._keys.dead[rows]]
            last = self._tuples.last_end(self._binding, stream, alive)
            self._closed(stream, alive, last, going, passed)
        for stream, rows, last in ended:
            looked.append(rows)
            self._closed(stream, rows, last, going, passed)
        for stream, rows in _by_stream(*self._ends.due(passed)):
            looked.append(rows)
            died = self._keys.die(rows)
            self._dead += len(died)
            if len(going) > 2:  # of two, the other let its tuples go when this one closed the key
                for other, go in enumerate(going):
                    if other != stream:
                        go.append(died)
        for rows in looked:
            self._propagate(rows, passed)
        return {
            stream: self._live(stream, _distinct(rows)) for stream, rows in enumerate(going) if rows
        }

    def _closed(
        self, stream: int, rows: Words, last: Words, going: Sequence[list[Words]], passed: int
    ) -> None:
        """A stream has closed these keys. last: when the last of its tuples of each ends."""
        (*go, waiting, times), died = self._keys.settle(stream, rows, last, passed)
        for of_stream, gone in zip(going, go, strict=True):
            if len(gone):
                of_stream.append(gone)
        self._dead += died
        self._ends.add(times, waiting, stream)

    def _live(self, stream: int, rows: Words) -> Words:
        return self._tuples.of(self._binding, stream, rows)[0]

    def against(self, stream: int, key: Sequence[pa.Array], passed: int) -> dict[int, int]:
        """The other streams that have closed a key by a time, and from when on, if a tuple of this
        stream and key is of no more use."""
        kinds = self._binding.key_kinds
        words, _ = key_words(key, kinds, 1)
        rows = self._keys.find(words, key, kinds)
        if not self._forgets or rows is None or self._keys.unneeded(stream, rows, passed) is None:
            return {}
        at = self._keys.at[:, rows[0]].tolist()
        others = [other for other in range(len(at)) if other != stream]
        return {other: at[other] for other in others if at[other] <= passed}

    def left_early(self, stream: int, words: Words) -> None:
        """Look at keys of which a tuple has left before its time."""
        if self._keys.count and self._forgets:
            found = self._keys.of_words(words)
            if found is None:
                return
            rows = np.unique(found[found != FREE])
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
        types = [
            None if schema is None else [value_type(schema.field(name).type) for name in key]
            for key, schema in zip(self._query.keys, self._binding.schemas, strict=True)
        ]
        counts = {"discarded": self.discarded, "purged": self.purged}
        return {
            "keys": self._keys.saved(),
            "counts": pa.table(counts),
            "forgotten": pa.table({"forgotten": [self.forgotten]}),
            **self.derived.save(),
            **self.told.save(),
            **self.wide.save(types),
        }

    def load(self, saved: Mapping[str, pa.Table]) -> None:
        """What was saved, of windows that have been filled."""
        self._keys.load(saved["keys"])
        self._dead = int(self._keys.dead.sum())
        self._closers = set(np.flatnonzero((self._keys.at < NEVER).any(axis=1)).tolist())
        self.wide.load(saved, self._query.keys)
        self.derived.load(saved)
        self.told.load(saved["told"], saved["told counts"])
        self.discarded, self.purged = (
            saved["counts"][name].to_pylist() for name in ("discarded", "purged")
        )
        self.forgotten = saved["forgotten"]["forgotten"][0].as_py()
        if self._forgets:
            self.look_again()

    def dump(self) -> dict[str, pa.RecordBatch]:
        """Everything in it, and when what is to be looked at."""
        tables = self.save()
        tables |= {"closings": self._closings.table(), "ends": self._ends.table()}
        return {name: _one_batch(table) for name, table in tables.items()}

    def load_dump(self, dumped: Mapping[str, pa.RecordBatch]) -> None:
        """What was dumped, of the same windows."""
        tables = {name: pa.Table.from_batches([batch]) for name, batch in dumped.items()}
        self.load(tables)
        self._closings.load(tables["closings"])
        self._ends.load(tables["ends"])

    @property
    def earliest(self) -> int | None:
        """The time that the watermark must be past for a key to be looked at; None for none."""
        first = min(self._closings.first, self._ends.first)
        return None if first == NEVER else first - 1

    # Promises out.

    def _propagate(self, rows: Words, passed: int) -> None:
        """Give out dead keys of which nothing can come out alone: those that all the streams have
        closed whose tuples do when they meet nothing."""
        over = self._keys.take_told(self._preserved, rows, passed)
        if not len(over):
            return
        at = self._keys.at[:, over]
        latest = np.where(at <= passed, at, BEGINNING).max(axis=0)
        self.told.add(Propagated(self._keys.values(over), latest))

    def _forget(self, passed: int) -> None:
        """Forget dead keys: those that all streams have closed; and of the others, beyond a part of
        the live tuples, the oldest. Of keys that are not dead, beyond as many as live tuples."""
        keys = self._keys
        live = sum(self._windows.live(stream) for stream in range(len(self._query.streams)))
        most = max(_LEAST_KEPT, live)
        few = max(_LEAST_KEPT, live // _DEAD_PART)
        if self._dead <= 2 * few and keys.count <= 2 * most:
            return
        dead = np.flatnonzero(keys.dead[: keys.count])
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
        self._dead = int(keys.dead[: keys.count].sum())

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self._keys.nbytes + self._closings.nbytes + self._ends.nbytes


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table in one piece."""
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _by_stream(rows: Words, streams: Words) -> Iterator[tuple[int, Words]]:
    """Entries of a calendar by stream."""
    if not len(rows):
        return
    first = int(streams[0])
    if len(rows) == 1 or (streams == first).all():
        yield first, rows
        return
    for stream in np.unique(streams).tolist():
        yield stream, rows[streams == stream]


def _distinct(parts: Sequence[Words]) -> Words:
    """All rows of some parts, each once."""
    if len(parts) == 1 and len(parts[0]) == 1:
        return parts[0]
    together = np.concatenate(parts)
    seen = np.zeros(int(together.max()) + 1 if len(together) else 0, np.bool_)
    seen[together] = True
    return np.flatnonzero(seen)
