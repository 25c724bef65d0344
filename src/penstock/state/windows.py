"""The windows of a join: the arena, its allocation and its growth, and the payload beside it.

Kernels never allocate. They find a ring or the directory full, return, and this is where
room is made: a new arena, the tuples moved into it, the indexes built anew. Before a ring
grows, what has expired behind an early tuple is swept out, so that disorder does not make
it grow for ever; and a ring of which a burst has left little in use shrinks again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.errors import StateError
from penstock.model.plan import Plan
from penstock.model.query import Query
from penstock.model.window import Window
from penstock.state import directory, indexes, queue, ring
from penstock.state.arena import (
    DEAD,
    MET,
    MUTE,
    RECORD,
    WINDOW,
    State,
    Words,
    header_bytes,
    record_at,
    view,
    word_at,
)
from penstock.state.budget import ENTRY_WORDS, provision
from penstock.state.jit import kernel
from penstock.state.links import NOWHERE
from penstock.state.memory import CACHE_LINE, Heap, Memory
from penstock.state.paths import NODE_BYTES, Paths
from penstock.state.payload import Payload

__all__ = ["Windows"]

_SMALLEST_RING: Final = 64
_LARGEST_RING: Final = 1 << 30  # positions are 31 bits wide
_WORD: Final = 8
_HALF: Final = 4
_SHARE: Final = 8  # of all live tuples: so many arrivals pay for moving them
_LEAST_SHRUNK: Final = 1 << 17  # rings up to this are left as they are
_ALIGNMENT: Final = 3 * CACHE_LINE  # whole cache lines and whole records


class Windows:
    """All windows of one join. `state` is replaced when it grows: never keep a reference."""

    def __init__(self, query: Query, plan: Plan, memory: Memory) -> None:
        self.plan = plan
        self.memory = memory
        self.provision = provision(query, plan)
        self.has_ghosts = self.provision is not None and self.provision.has_ghosts
        self.streams = len(query.streams)
        self._paths = Paths(query.access, plan, self.has_ghosts)
        count = self._paths.shape.windows
        self.payloads: list[Payload | None] = [None] * count
        self.moves = [0] * count  # how often tuples got new sequence numbers, or ends
        self._sizes = [_SMALLEST_RING] * count
        sizes = [directory.directory_size(1) if each else 0 for each in self._paths.hashed]
        self.is_tight = plan.limits is not None and plan.limits.memory.bytes is not None
        self._use(self._allocate(sizes, self._sizes))
        windows = self.state.windows
        for number in range(count):
            window = query.windows[number % self.streams]  # ghosts leave when tuples would
            # In arrivals, where these are counted in the place of time.
            windows["length_us"][number] = window.arrivals or window.length_us
            windows["slot_us"][number] = window.slot_us
            windows["rows"][number] = window.rows
            windows["per_key"][number] = window.per_key
        indexes.clear(self.state)
        for number in range(self.streams):
            if self.provision is not None and self.provision.has_queues:
                queue.clear(self.state, number)

    def _use(self, state: State) -> None:
        """Be in this arena. To look fields up by name costs more than all else of a small push."""
        self.state = state
        self._live, self._tails = state.windows["live"], state.windows["tail"]
        self._heads = state.windows["head"]
        self._cursors, self._ends = state.windows["cursor"], state.windows["end"]
        self._watermark = state.join["watermark"]

    def begin(self, watermark: int) -> None:
        """A batch, after which this watermark holds."""
        self._watermark[0] = watermark

    def line_up(self, rows: Mapping[int, int]) -> None:
        """Set the cursors of a chunk with so many rows of each stream, one behind the other."""
        self._cursors[:] = self._ends[:] = end = 0
        for number, count in rows.items():
            self._cursors[number] = end
            end += count
            self._ends[number] = end

    # What is in a window.

    def size(self, number: int) -> int:
        """The positions of a window's ring."""
        return self._sizes[number]

    def live(self, number: int) -> int:
        """How many tuples a window holds."""
        return int(self._live[number])

    def expired(self, number: int) -> int:
        """How many have left it."""
        return int(self.state.windows["expired"][number])

    def tail_and_head(self, number: int) -> tuple[int, int]:
        """The sequence numbers of the oldest tuple and of the next to come."""
        return int(self._tails[number]), int(self._heads[number])

    def head(self, number: int) -> int:
        """The sequence number of the next tuple to come."""
        return int(self._heads[number])

    def by_key(self, number: int) -> bool:
        """Whether a window holds so many rows of each key."""
        return bool(self.state.windows["per_key"][number])

    def live_sequences(self, number: int) -> Words:
        """The sequence numbers of a window's tuples, oldest first."""
        ring.bury_outranked(self.state, number)
        out = np.empty(self.live(number), np.int64)
        ring.live_sequences(self.state, number, out)
        return out

    def timestamps(self, number: int, sequences: Words) -> Words:
        """The event times of tuples."""
        start = int(self.state.windows["ring"][number])
        times: Words = self.state.records["ts"][start + (sequences & (self.size(number) - 1))]
        return times

    def marks(self, number: int, sequences: Words) -> Words:
        """The marks on tuples."""
        start = int(self.state.windows["ring"][number])
        marks: Words = self.state.records["marks"][start + (sequences & (self.size(number) - 1))]
        return marks

    def numbers(self, number: int, sequences: Words) -> Words:
        """The numbers of tuples of a stream under a budget."""
        numbers: Words = self.state.words[self._number_places(number, sequences)]
        return numbers

    def set_numbers(self, number: int, sequences: Words, numbers: Words) -> None:
        """Give tuples their numbers, which they had before."""
        self.state.words[self._number_places(number, sequences)] = numbers

    def _number_places(self, number: int, sequences: Words) -> Words:
        start = int(self.state.shares["entries"][number])
        return start + ENTRY_WORDS * (sequences & (self.size(number) - 1)) + 1

    def add_marks(self, number: int, marks: Words) -> None:
        """Set flags on the tuples of a window, oldest first."""
        start = int(self.state.windows["ring"][number])
        places = start + (self.live_sequences(number) & (self.size(number) - 1))
        self.state.records["marks"][places] |= marks.astype(np.int32) & MET

    def keys(self, number: int) -> Words:
        """The key words of a window's tuples, oldest first."""
        start = int(self.state.windows["ring"][number])
        places = self.live_sequences(number) & (self.size(number) - 1)
        words: Words = self.state.records["key"][start + places]
        return words

    def words_of(self, number: int, path: int, sequences: Words) -> Words:
        """The words of tuples for one path of their window."""
        start = int(self.state.paths["ring"][int(self.state.windows["paths"][number]) + path])
        words: Words = self.state.records["key"][start + (sequences & (self.size(number) - 1))]
        return words

    @property
    def state_bytes(self) -> int:
        """Rings and indexes."""
        return int(self.state.words.nbytes)

    @property
    def payload_bytes(self) -> int:
        """The columns beside them."""
        return sum(payload.nbytes for payload in self.payloads if payload is not None)

    @property
    def least_bytes(self) -> int:
        """What rings and indexes take when nothing is in them any more."""
        smallest = directory.directory_size(_SMALLEST_RING // 4)
        directories = [smallest if each else 0 for each in self._paths.hashed]
        *_, arena = self._layout(directories, [_SMALLEST_RING] * len(self._sizes))
        return arena

    def least_payload(self, schema: pa.Schema, names: Sequence[str]) -> int:
        """What columns take without a row; any of them may come to have nulls."""
        empty = Payload(schema, names, _SMALLEST_RING, Heap())
        return empty.nbytes + _SMALLEST_RING * len(names)

    @property
    def bytes_per_row(self) -> int:
        """About what a tuple takes, of the stream whose tuples take most."""
        return max(self.row_bytes(number) for number in range(len(self._sizes)))

    def row_bytes(self, number: int) -> int:
        """About what a tuple of a window takes."""
        entry = 2 * _WORD * int(directory.entry_words(len(self._sizes)))
        records = int(self.state.windows["words"][number]) * RECORD.itemsize
        payload = self.payloads[number]
        return records + entry + (0 if payload is None else payload.nbytes // self._sizes[number])

    # Making room.

    def reserve(self, rows: Mapping[int, int], watermark: int) -> None:
        """Room for so many more tuples in the rings, by window."""
        sizes, moved = self._sizes_for(rows, watermark)
        if not moved:
            return
        if sizes == self._sizes:
            for number in moved:
                self._close_ranks_of(number)
        else:
            self._rebuild(self.state.directories["places"].tolist(), sizes, moved)

    def _close_ranks_of(self, number: int) -> None:
        """Move the tuples of a window together, in the ring that they are in."""
        live = self.live_sequences(number)
        head = self.head(number)
        placed = np.arange(head - len(live), head)
        self.moves[number] += 1
        payload = self.payloads[number]
        if payload is not None:
            payload.relocate(live, placed, self._sizes[number])
        if self.provision is not None:
            self.provision.carry_window(self.state, self.state, number, (live, placed))
        _close_ranks(self.state, number, live)

    def bytes_with(self, rows: Mapping[int, int], watermark: int) -> int:
        """How much would be held with that room, as far as can be known."""
        sizes, moved = self._sizes_for(rows, watermark)
        if not moved:
            return self.state_bytes + self.payload_bytes
        *_, arena = self._layout(self.state.directories["places"].tolist(), sizes)
        return arena + sum(
            payload.nbytes * new // old
            for payload, old, new in zip(self.payloads, self._sizes, sizes, strict=True)
            if payload is not None
        )

    def _sizes_for(self, rows: Mapping[int, int], watermark: int) -> tuple[list[int], list[int]]:
        """The sizes of rings with room for so many more tuples, and which are moved for it."""
        moved: list[int] = []
        sizes = list(self._sizes)
        for number, count in rows.items():
            tail, head = self.tail_and_head(number)
            if head - tail + count <= sizes[number]:
                continue
            ring.sweep(self.state, number, watermark)
            ring.bury_outranked(self.state, number)
            tail, head = self.tail_and_head(number)
            if head - tail + count <= sizes[number]:
                continue
            needed = self.live(number) + count
            if head - tail > self.live(number):
                # Holes will come again: half stays free, and what all windows hold is worth
                # moving again only after a share of it has arrived.
                share = self._live_in_all() // _SHARE
                needed = needed * 5 // 4 if self.is_tight else max(2 * needed, share)
            sizes[number] = max(sizes[number], _ring_size(needed))
            moved.append(number)
        return sizes, moved

    def resize(self, number: int, window: Window) -> None:
        """Give a window another length. Its tuples end anew: see `trim` for those that go."""
        for each in range(number, len(self._sizes), self.streams):  # and that of its ghosts
            self.state.windows["length_us"][each] = window.length_us
            self.state.windows["rows"][each] = window.rows
            self.moves[each] += 1

    def trim(self, number: int, watermark: int) -> None:
        """Drop all that is not in a window, wherever it stands."""
        for each in range(number, len(self._sizes), self.streams):  # and that of its ghosts
            ring.sweep(self.state, each, watermark)
            ring.trim(self.state, each)

    @property
    def has_index_room(self) -> bool:
        """Whether a tuple can be put into any window's indexes."""
        return all(indexes.has_room(self.state, number) for number in range(len(self._sizes)))

    def make_index_room(self) -> None:
        """Larger directories, or the same without their dead keys. Tuples stay where they are, and
        all that is not in a directory is copied as it is."""
        old, sizes = self.state, self._directory_sizes()
        *_, old_budget, old_end = self._layout(old.directories["places"].tolist(), self._sizes)
        _, starts, budget, end = self._layout(sizes, self._sizes)
        arena = self.memory.allocate(end)
        before, held = min(starts, default=budget), old.words.view(np.uint8)
        arena[:before] = held[:before]
        arena[budget:end] = held[old_budget:old_end]
        new = view(arena, self._paths.shape)
        new.directories["start"] = np.array(starts) // _WORD
        new.directories["places"] = sizes
        if self.provision is not None:
            self.provision.place(new, budget // _WORD, self._sizes)
        _index_anew(new)
        self._use(new)

    def shrink(self) -> None:
        """Give back what a burst left: rings of which less than an eighth is in use."""
        if max(self._sizes) <= _LEAST_SHRUNK:
            return
        moved = []
        sizes = list(self._sizes)
        for number, size in enumerate(sizes):
            tail, head = self.tail_and_head(number)
            if size > _LEAST_SHRUNK and 8 * (head - tail) < size:
                sizes[number] = max(_ring_size(2 * (head - tail)), _LEAST_SHRUNK)
                moved.append(number)
        if moved:
            self._rebuild(self._directory_sizes(), sizes, moved)

    def close_ranks(self) -> None:
        """Give back all that is not needed to hold what is there."""
        sizes = [_ring_size(self.live(number) * 5 // 4) for number in range(len(self._sizes))]
        self._rebuild(self._directory_sizes(), sizes, range(len(sizes)), tight=True)

    def _live_in_all(self) -> int:
        return int(self.state.windows["live"].sum())

    def _directory_sizes(self) -> list[int]:
        """Room for the live keys and as many again, and for a share of what a rebuild moves."""
        sizes = []
        for number, is_hashed in enumerate(self._paths.hashed):
            keys = 2 * int(directory.live_keys(self.state, number)) + _SMALLEST_RING // 4
            size = directory.directory_size(max(keys, self._live_in_all() // _SHARE))
            sizes.append(size if is_hashed else 0)
        return sizes

    def _rebuild(
        self,
        directory_sizes: Sequence[int],
        sizes: Sequence[int],
        moved: Sequence[int],
        *,
        tight: bool = False,
    ) -> None:
        """Move everything to a new arena; the tuples of `moved` windows close ranks."""
        old, new = self.state, self._allocate(directory_sizes, sizes)
        for field in WINDOW.names or ():
            if field not in ("ring", "mask"):
                new.windows[field] = old.windows[field]
        indexes.clear(new)
        for number, payload in enumerate(self.payloads):
            live = self.live_sequences(number)
            placed = live
            if number in moved:
                self.moves[number] += 1
                _, head = self.tail_and_head(number)
                placed = np.arange(head - len(live), head)
                new.windows["tail"][number] = head - len(live)
                if payload is not None:
                    payload.relocate(live, placed, sizes[number], tight=tight)
            else:
                _copy_rings(old, new, number)
            _fill(old, new, number, live, placed)
            if self.provision is not None:
                self.provision.carry_window(old, new, number, (live, placed))
        new.join["watermark"] = old.join["watermark"]
        if self.provision is not None:
            self.provision.carry(old, new)
        self._use(new)
        self._sizes = list(sizes)

    def _allocate(self, directory_sizes: Sequence[int], sizes: Sequence[int]) -> State:
        """A zeroed arena for rings of these sizes, with the places of all in it set."""
        places, starts, budget, end = self._layout(directory_sizes, sizes)
        state = view(self.memory.allocate(end), self._paths.shape)
        if self.provision is not None:
            self.provision.place(state, budget // _WORD, sizes)
        state.join["streams"] = self.streams
        self._paths.write(state)
        for number, (path, (ring_start, buckets, nodes)) in enumerate(
            zip(self._paths.paths, places, strict=True)
        ):
            descriptor = state.paths[number]
            descriptor.ring, descriptor.mask = ring_start // RECORD.itemsize, sizes[path.window] - 1
            descriptor.buckets, descriptor.nodes = buckets // _WORD, nodes // _WORD
            descriptor.node_room = path.node_room(sizes[path.window])
        state.windows["ring"] = state.paths["ring"][state.windows["paths"]]
        state.windows["mask"] = np.array(sizes) - 1
        state.directories["start"] = np.array(starts) // _WORD
        state.directories["places"] = directory_sizes
        return state

    def _layout(
        self, directory_sizes: Sequence[int], sizes: Sequence[int]
    ) -> tuple[list[tuple[int, int, int]], list[int], int, int]:
        """Where in an arena, in bytes, the rings, buckets and nodes of each path stand, the
        directories, what a budget has, and the end."""
        shape = self._paths.shape
        end = _aligned(header_bytes(shape))
        places = []
        for path in self._paths.paths:
            ring_bytes = sizes[path.window] * RECORD.itemsize
            buckets = _aligned(end + ring_bytes)
            nodes = _aligned(buckets + path.index.buckets * _HALF)
            places.append((end, buckets, nodes))
            end = _aligned(nodes + path.node_room(sizes[path.window]) * NODE_BYTES)
        starts = []
        entry_bytes = int(directory.entry_words(shape.windows)) * _WORD
        for size in directory_sizes:
            starts.append(end)
            end = _aligned(end + size * entry_bytes)
        budget = end
        if self.provision is not None:
            end = _aligned(end + self.provision.words(sizes) * _WORD)
        return places, starts, budget, end

    # Handing them over.

    def dump(self) -> dict[str, Any]:
        """Everything in them, as plain values and the buffers themselves."""
        payloads = [None if payload is None else payload.dump() for payload in self.payloads]
        arena = self.state.words.view(np.uint8)
        return {"sizes": self._sizes, "arena": arena, "payloads": payloads}

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Be what was dumped, on its buffers; the payloads are those of the same streams."""
        self._sizes = list(dumped["sizes"])
        self._use(view(dumped["arena"], self._paths.shape))
        for payload, of_payload in zip(self.payloads, dumped["payloads"], strict=True):
            if payload is not None:
                payload.load(of_payload)

    # The invariants, for tests.

    def check(self) -> None:
        """Raise AssertionError when a ring, an index or a payload is not what it should be."""
        hashed: list[set[int]] = [set() for _ in self.state.directories]
        for number, payload in enumerate(self.payloads):
            window = self.state.windows[number]
            tail, head = self.tail_and_head(number)
            assert 0 <= tail <= head <= tail + self._sizes[number]
            assert self._sizes[number] == window.mask + 1
            live = self.live_sequences(number)
            assert len(live) == self.live(number)
            assert len(live) == 0 or live[0] >= tail
            for path in range(int(window.paths), int(window.paths + window.words)):
                keys = self._check_path(number, path, live.tolist())
                if self.state.paths[path].kind == indexes.HASH:
                    hashed[self.state.paths[path].directory] |= keys
            if payload is not None:
                payload.check(live)
            if self.provision is not None and number < self.streams:
                queue.check(self.state, number, set(live.tolist()))
        for number, keys in enumerate(hashed):
            directory.check(self.state, number, keys)

    def _check_path(self, number: int, path: int, live: Sequence[int]) -> set[int]:
        """Check that each tuple is found by its word; the words."""
        by_key: dict[int, list[int]] = {}
        for sequence in live:
            record, word = (
                record_at(self.state, number, sequence),
                word_at(self.state, path, sequence),
            )
            assert word.ts == record.ts
            assert word.marks & (MUTE | DEAD) == record.marks & (MUTE | DEAD)
            if not record.marks & MUTE:
                by_key.setdefault(int(word.key), []).append(sequence)
        descriptor = self.state.paths[path]
        tree = indexes.TREES.get(int(descriptor.kind))
        if tree is not None:
            tree.check(self.state.words, descriptor)
            assert descriptor.entries == sum(map(len, by_key.values()))
        for key, sequences in by_key.items():
            assert self._probed(path, key) == sequences[::-1], (number, path, key)
        return set(by_key)

    def _probed(self, path: int, key: int) -> list[int]:
        word: Any = np.int64(key)
        kind = self.state.paths[path].kind
        asked = (word, word, indexes.locate(self.state, path, word))
        found, at = [], indexes.first(self.state, path, kind, asked)
        while at[0] != NOWHERE:
            found.append(int(at[0]))
            at = indexes.following(self.state, path, kind, asked, at)
        return found


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _ring_size(rows: int) -> int:
    if rows > _LARGEST_RING:
        raise StateError(
            f"a window can hold {_LARGEST_RING:,} tuples, and {rows:,} are needed; "
            "shorten the window, or spread the join over more partitions"
        )
    return 1 << max(rows - 1, _SMALLEST_RING - 1).bit_length()


def _copy_rings(old: State, new: State, number: int) -> None:
    size = int(old.windows["mask"][number]) + 1
    first = int(old.windows["paths"][number])
    stride = RECORD.itemsize // _WORD  # as plain words it is twice as fast
    for path in range(first, first + int(old.windows["words"][number])):
        source, target = int(old.paths["ring"][path]), int(new.paths["ring"][path])
        copied = old.words[source * stride : (source + size) * stride]
        new.words[target * stride : (target + size) * stride] = copied


@kernel
def _index_anew(state: State) -> None:
    """Fill empty directories with the tuples of all windows."""
    for number in range(len(state.directories)):
        directory.clear(state, number)
    for path in range(len(state.paths)):
        if state.paths[path].kind == indexes.HASH:
            window = state.windows[state.paths[path].window]
            for sequence in range(window.tail, window.head):
                record = word_at(state, path, sequence)
                if not record.marks & (DEAD | MUTE):
                    entry = indexes.locate(state, path, record.key)
                    indexes.insert(state, path, sequence, entry)


@kernel
def _close_ranks(state: State, number: int, live: Words) -> None:
    """Move the live tuples of a window up to its head, and index them anew. Others' stay."""
    window = state.windows[number]
    for path in range(window.paths, window.paths + window.words):
        to = window.head
        for each in range(len(live) - 1, -1, -1):
            to -= 1
            was, record = word_at(state, path, live[each]), word_at(state, path, to)
            record.ts, record.key, record.marks = was.ts, was.key, was.marks
        indexes.forget(state, path)
        for sequence in range(to, window.head):
            record = word_at(state, path, sequence)
            if not record.marks & MUTE:
                # Its key has an entry: it was there before.
                entry = indexes.locate(state, path, record.key)
                indexes.insert(state, path, sequence, entry)
    window.tail = window.head - len(live)


@kernel
def _fill(old: State, new: State, number: int, kept: Words, placed: Words) -> None:
    """Move tuples to new sequence numbers in another arena and index them there, in order."""
    begin = new.windows[number].paths
    for each in range(len(kept)):
        for path in range(begin, begin + new.windows[number].words):
            was = word_at(old, path, kept[each])
            record = word_at(new, path, placed[each])
            record.ts = was.ts
            record.key = was.key
            record.marks = was.marks
            if not was.marks & MUTE:
                entry = indexes.locate(new, path, was.key)
                indexes.insert(new, path, placed[each], entry)
