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

from penstock.kernels import moves, ring
from penstock.kernels.arena import (
    MET,
    UNPROBED,
    WINDOW,
    State,
    Words,
    view,
)
from penstock.kernels.budget import queue
from penstock.kernels.budget.records import ENTRY_WORDS, NOTE_WORDS
from penstock.kernels.index import directory, indexes
from penstock.model.plan import Plan
from penstock.model.query import Query
from penstock.model.window import Window
from penstock.windows.allocator import Allocator
from penstock.windows.footprint import SMALLEST_RING, Footprint, ring_size
from penstock.windows.layout import Layout
from penstock.windows.paths import Paths
from penstock.windows.payload.payload import Payload
from penstock.windows.provision import provision

__all__ = ["Windows"]

_SHARE: Final = 8  # moving all live tuples pays after one arrival for every N of them
# Spare keys of a tight directory: one for every N live keys, at least one for every N, and some.
_SPARE_PART: Final = 8
_LEAST_SPARE_PART: Final = 32
_SPARE_KEYS: Final = 16
_LEAST_SHRUNK: Final = 1 << 17  # rings up to this are left as they are


class Windows:
    """All windows of one join. `state` is replaced when it grows: never keep a reference."""

    def __init__(self, query: Query, plan: Plan, memory: Allocator) -> None:
        self.plan = plan
        self.memory = memory
        self.provision = provision(query, plan)
        self.has_ghosts = self.provision is not None and self.provision.has_ghosts
        self.has_groups = self.provision is not None and self.provision.has_groups
        self.streams = len(query.streams)
        self.paths = Paths(query.access, plan, self.has_ghosts)
        self.layout = Layout(self.paths, self.provision, self.streams)
        count = self.paths.shape.windows
        self.payloads: list[Payload | None] = [None] * count
        self.moves = [0] * count  # how often tuples got new sequence numbers, or ends
        self._sizes = [SMALLEST_RING] * count
        sizes = [directory.directory_size(1) if each else 0 for each in self.paths.hashed]
        self.is_tight = plan.limits is not None and plan.limits.memory.bytes is not None
        self.most_keys: dict[int, int] = {}  # that tight directories may be made for
        self._use(self.layout.allocate(memory, sizes, self._sizes))
        windows = self.state.windows
        for number in range(count):
            window = query.windows[number % self.streams]  # ghosts leave when tuples would
            # In arrivals, if these are counted instead of time.
            windows["length_us"][number] = window.arrivals or window.length_us
            windows["slot_us"][number] = window.slot_us
            windows["rows"][number] = window.rows
            windows["per_key"][number] = window.per_key
        indexes.clear(self.state)
        for number in range(self.streams):
            if self.provision is not None and self.provision.has_queues:
                queue.clear(self.state, number)

    def _use(self, state: State) -> None:
        """Use this arena. To look fields up by name costs more than all else of a small push."""
        self.state = state
        self._live, self._tails = state.windows["live"], state.windows["tail"]
        self._heads = state.windows["head"]
        self._cursors, self._ends = state.windows["cursor"], state.windows["end"]
        self._watermark = state.join["watermark"]
        self._slots_us, self._lengths_us = state.windows["slot_us"], state.windows["length_us"]
        self._paths, self._kinds = state.windows["paths"], state.paths["kind"]

    def begin(self, watermark: int) -> None:
        """Begin a batch after which this watermark holds."""
        self._watermark[0] = watermark

    def line_up(self, rows: Mapping[int, int]) -> None:
        """Set the cursors of a chunk with `rows` of each stream, one behind the other."""
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

    def kind(self, number: int) -> int:
        """The kind of a window's first index."""
        return int(self._kinds[self._paths[number]])

    def by_key(self, number: int) -> bool:
        """Whether a window holds N rows of each key."""
        return bool(self.state.windows["per_key"][number])

    def live_sequences(self, number: int) -> Words:
        """The sequence numbers of a window's tuples, oldest first."""
        self._bury_outranked(number)
        out = np.empty(self.live(number), np.int64)
        ring.live_sequences(self.state, number, out)
        return out

    def timestamps(self, number: int, sequences: Words) -> Words:
        """The event times of tuples."""
        start = int(self.state.windows["ring"][number])
        times: Words = self.state.records["ts"][start + (sequences & (self.size(number) - 1))]
        return times

    def ends(self, number: int, ts: Words) -> Words:
        """The last times at which tuples of these times are in a window."""
        slot_us = int(self._slots_us[number])
        if slot_us > 0:
            return (ts // slot_us + 1) * slot_us - 1
        return ts + int(self._lengths_us[number])

    def marks(self, number: int, sequences: Words) -> Words:
        """The marks on tuples."""
        start = int(self.state.windows["ring"][number])
        marks: Words = self.state.records["marks"][start + (sequences & (self.size(number) - 1))]
        return marks

    def numbers(self, number: int, sequences: Words) -> Words:
        """The numbers of tuples of a stream, or of its ghosts, under a budget."""
        numbers: Words = self.state.words[self._number_places(number, sequences)]
        return numbers

    def set_numbers(self, number: int, sequences: Words, numbers: Words) -> None:
        """Give tuples their numbers, which they had before."""
        self.state.words[self._number_places(number, sequences)] = numbers

    def _number_places(self, number: int, sequences: Words) -> Words:
        positions = sequences & (self.size(number) - 1)
        if number < self.streams:
            return int(self.state.quotas["entries"][number]) + ENTRY_WORDS * positions + 1
        return int(self.state.quotas["notes"][number - self.streams]) + NOTE_WORDS * positions

    def add_marks(self, number: int, marks: Words) -> None:
        """Set flags on the tuples of a window, oldest first."""
        start = int(self.state.windows["ring"][number])
        places = start + (self.live_sequences(number) & (self.size(number) - 1))
        self.state.records["marks"][places] |= marks.astype(np.int32) & (MET | UNPROBED)

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
    def footprint(self) -> Footprint:
        """What they take of memory, or would take."""
        return Footprint(self)  # not kept: nothing in a cycle is freed at once

    @property
    def count(self) -> int:
        """How many windows there are, with those of ghosts."""
        return len(self._sizes)

    def keys_for(self, live: int, number: int = -1) -> int:
        """How many keys a directory has room for when `live` are live: the more, the less often
        it is made anew, without the keys that have gone."""
        if self.is_tight:
            wanted = live + live // _SPARE_PART + _SPARE_KEYS
            least = live + live // _LEAST_SPARE_PART + _SPARE_KEYS
            return max(min(wanted, self.most_keys.get(number, wanted)), least)
        if self.provision is not None:
            return live + live // 2 + SMALLEST_RING
        return 2 * live + SMALLEST_RING // 4

    # Making room.

    def reserve(self, rows: Mapping[int, int], watermark: int) -> None:
        """Make room for `rows` more tuples in the rings, by window."""
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
        moves.close_ranks(self.state, number, live)

    def bytes_with(self, rows: Mapping[int, int], watermark: int) -> int:
        """How many bytes would be held with that room, as far as can be known."""
        sizes, moved = self._sizes_for(rows, watermark)
        if not moved:
            return self.state_bytes + self.payload_bytes
        arena = self.layout.places(self.state.directories["places"].tolist(), sizes)
        return arena.end + sum(
            payload.nbytes * new // old
            for payload, old, new in zip(self.payloads, self._sizes, sizes, strict=True)
            if payload is not None
        )

    def _bury_outranked(self, number: int) -> None:
        if self.by_key(number):  # else the kernel, which takes seconds to compile, is not needed
            ring.bury_outranked(self.state, number)

    def _sizes_for(self, rows: Mapping[int, int], watermark: int) -> tuple[list[int], list[int]]:
        """The sizes of rings with room for `rows` more tuples, and which are moved for it."""
        moved: list[int] = []
        sizes = list(self._sizes)
        for number, count in rows.items():
            tail, head = self.tail_and_head(number)
            if head - tail + count <= sizes[number]:
                continue
            ring.sweep(self.state, number, watermark)
            self._bury_outranked(number)
            tail, head = self.tail_and_head(number)
            if head - tail + count <= sizes[number]:
                continue
            needed = self.live(number) + count
            if head - tail > self.live(number):
                # Holes will come again: a third stays free, and what all windows hold is worth
                # moving again only after a share of it has arrived.
                share = self._live_in_all() // _SHARE
                needed = needed if self.is_tight else max(needed + needed // 2, share)
            sizes[number] = max(sizes[number], ring_size(needed))
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
        # Whole rings are copied, also what is free in them: after a large batch over short windows
        # that is nearly all.
        copied = 0 if self.is_tight else sum(self._sizes)
        sizes = self._directory_sizes(copied // _SHARE)
        new = self.layout.with_directories(self.memory, self.state, sizes, self._sizes)
        moves.index_anew(new)
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
                sizes[number] = max(ring_size(2 * (head - tail)), _LEAST_SHRUNK)
                moved.append(number)
        if moved:
            self._rebuild(self._directory_sizes(), sizes, moved)

    def close_ranks(self) -> None:
        """Give back all that is not needed to hold what is there."""
        sizes = [ring_size(self.live(number)) for number in range(len(self._sizes))]
        self._rebuild(self._directory_sizes(), sizes, range(len(sizes)), tight=True)

    def give_back(self) -> None:
        """The same, if most of the room is free; for when nothing more will come."""
        if _SHARE * self._live_in_all() < sum(self._sizes):
            self.close_ranks()

    def _live_in_all(self) -> int:
        return int(self.state.windows["live"].sum())

    def _directory_sizes(self, least: int = 0) -> list[int]:
        """Room for the live keys and as many again, and for a share of what a rebuild moves."""
        sizes = []
        for number, is_hashed in enumerate(self.paths.hashed):
            keys = self.keys_for(int(directory.live_keys(self.state, number)), number)
            share = 0 if self.is_tight else self._live_in_all() // _SHARE
            size = directory.directory_size(max(keys, least, share), tight=self.is_tight)
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
        old = self.state
        new = self.layout.allocate(self.memory, directory_sizes, sizes)
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
                moves.copy_rings(old, new, number)
            moves.fill(old, new, number, live, placed)
            if self.provision is not None:
                self.provision.carry_window(old, new, number, (live, placed))
        new.join["watermark"] = old.join["watermark"]
        if self.provision is not None:
            self.provision.carry(old, new)
        self._use(new)
        self._sizes = list(sizes)

    # Handing them over.

    def dump(self) -> dict[str, Any]:
        """Everything in them, as plain values and the buffers themselves."""
        payloads = [None if payload is None else payload.dump() for payload in self.payloads]
        arena = self.state.words.view(np.uint8)
        return {"sizes": self._sizes, "arena": arena, "payloads": payloads}

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Restore what was dumped, on its buffers; the payloads are those of the same streams."""
        self._sizes = list(dumped["sizes"])
        self._use(view(dumped["arena"], self.paths.shape))
        for payload, of_payload in zip(self.payloads, dumped["payloads"], strict=True):
            if payload is not None:
                payload.load(of_payload)
