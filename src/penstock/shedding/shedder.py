"""The shedder: what the driver calls to keep within limits, around the kernels that do it.

Numbers that change are in the arena, with the tuples they are about: here is only what is made
from the query and its limits. A limit in rows is kept by the kernels, after each instant. One in
bytes is kept between them: before a chunk is worked on, and after it, so many tuples go that all
of it fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import mul
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.errors import PlanError, SchemaError
from penstock.model.binding import Binding
from penstock.model.limits import BY_WORTH, Limits, Memory
from penstock.model.query import Query
from penstock.model.window import FOREVER
from penstock.shedding import ghosts
from penstock.shedding.shed import level_anew, shed
from penstock.shedding.victims import KINDS
from penstock.state import ring
from penstock.state.arena import Words
from penstock.state.budget import GROUPS, NO_LIMIT, NOTE_WORDS
from penstock.state.keys import key_words
from penstock.state.payload import Payload
from penstock.state.pieces import in_pieces
from penstock.state.windows import Windows
from penstock.stats.tables import give

__all__ = ["Shedder"]

_ALL_GHOSTS: Final = 1 << 20  # are counted one by one, if nothing is said
_SAMPLED_GHOSTS: Final = 1 << 12
_FEW_GHOSTS: Final = 64
_GROWTH: Final = 2  # as many as there are, times this, are made room for
_GHOST_BYTES: Final = 128  # of a limit in bytes, about what a ghost takes with its indexes
_PART: Final = 4  # of a limit in bytes, the most for ghosts
_HALVINGS: Final = 60
_LEAST_CHUNK: Final = 256
_LEVELLED: Final = 4  # times as many as there are have come before all get levels anew
_MOST_CHUNK: Final = 1 << 16
_LN_2: Final = float(np.log(2.0))


class Shedder:
    """Keeps the windows of one join within limits."""

    def __init__(self, query: Query, limits: Limits, windows: Windows) -> None:
        self.limits = limits
        self._query = query
        self.windows = windows
        self._streams = len(query.streams)
        self._given: set[int] = set()
        self._binding: Binding | None = None
        budget = windows.state.budget[0]
        budget.policy = KINDS[limits.shed]
        budget.fixed = limits.pool == "fixed"
        budget.ghost_paths = len(windows.state.tables) if windows.has_ghosts else 0
        budget.random = budget.sampling = _mixed(limits.seed)
        budget.seed = _mixed(limits.seed + 1)
        budget.threshold = budget.growth = budget.shrink = budget.sign = 1.0
        budget.grown_at = budget.instant = budget.newest = -(1 << 62)
        budget.stays = limits.shed == "expected_life"
        budget.stops = query.how == "semi"
        budget.learns = self.goes_by_worth
        self._measure_windows()
        self._set_rows(limits.memory)

    def _measure_windows(self) -> None:
        """Have what follows from the lengths of windows, which may be others than before."""
        state, half_life = self.windows.state, _half_life(self._query)
        state.budget["half_life"] = half_life
        state.shares["scale"] = _scales(self._query, half_life)

    @property
    def goes_by_worth(self) -> bool:
        """Whether tuples are shed by how often their partners come."""
        return self.limits.shed in BY_WORTH

    def check(self, binding: Binding) -> None:
        """Refuse columns that frequencies do not fit, or that there is no room for."""
        for stream, schema in enumerate(binding.schemas):
            given = self.limits.frequencies.get(self._query.names[stream])
            if given is not None and schema is not None:
                _given_words(binding, stream, list(given))
        self.check_memory(self.limits.memory, binding)

    def check_memory(self, memory: Memory, binding: Binding | None = None) -> None:
        """Refuse a limit that not even a join without tuples keeps."""
        if memory.bytes is None:
            return
        needed = self.windows.least_bytes + self._least_payload(binding or self._binding)
        if memory.bytes < needed:
            raise PlanError(
                f"memory={memory.bytes:,} bytes is too little: the join takes {needed:,} without "
                "any tuple; give it more, or a limit in rows"
            )

    def _least_payload(self, binding: Binding | None) -> int:
        schemas = () if binding is None else binding.schemas
        return sum(
            self.windows.least_payload(schema, names)
            for stream, schema in enumerate(schemas)
            if binding is not None and schema is not None
            for names in (binding.kept[stream], self._ghost_columns(binding, stream))
        )

    def _set_rows(self, memory: Memory) -> None:
        rows = NO_LIMIT if memory.rows is None else memory.rows
        each, more = divmod(rows, self._streams)
        state = self.windows.state
        state.budget["rows"] = rows
        state.budget["most_ghosts"] = self.most_ghosts
        state.shares["rows"] = [each + (number < more) for number in range(self._streams)]

    # What a stream brings.

    def bind(self, binding: Binding) -> None:
        """Get to know further streams."""
        self._binding = binding
        query, windows = binding.query, self.windows
        self._query = query
        self._measure_windows()
        windows.state.budget["counts_only"] = self._is_exact(binding) and query.how == "inner"
        for stream, schema in enumerate(binding.schemas):
            if schema is None:
                continue
            number = self._streams + stream
            if windows.has_ghosts and windows.payloads[number] is None:
                names = self._ghost_columns(binding, stream)
                size = windows.size(number)
                windows.payloads[number] = Payload(schema, names, size, windows.memory)
            self._give(binding, stream)

    def _is_exact(self, binding: Binding) -> bool:
        """Whether tuples match whose words do."""
        is_whole = all(schema is not None for schema in binding.schemas)
        return is_whole and binding.exact and not self._query.residuals

    def _ghost_columns(self, binding: Binding, stream: int) -> tuple[str, ...]:
        """What ghosts keep, beside their words; decided when their stream is first bound."""
        if not self.windows.has_ghosts:
            return ()
        payload = self.windows.payloads[self._streams + stream]
        if payload is not None:
            return tuple(payload.columns)
        if self._is_exact(binding):
            return ()
        return _predicate_columns(self._query, stream)

    def _give(self, binding: Binding, stream: int) -> None:
        """Fill the table of a stream whose frequencies the user has given."""
        name = self._query.names[stream]
        given = self.limits.frequencies.get(name)
        schema = binding.schemas[stream]
        state = self.windows.state
        path = int(state.windows["paths"][stream])
        if given is None or schema is None or state.tables[path].given:
            return
        if not state.tables[path].places:  # neither what goes nor what is lost is told by them
            return
        words = _given_words(binding, stream, list(given))
        weights = np.array(list(given.values()), np.float64)
        order = np.argsort(weights, kind="stable")
        # All of them zero: none of these keys ever comes.
        give(state, path, words[order], weights[order] / (weights.sum() or 1.0))

    def chunk_rows(self) -> int:
        """How many rows of a stream are worked on at once."""
        memory = self.limits.memory
        if memory.rows is not None:
            return min(max(memory.rows // 4, _LEAST_CHUNK), _MOST_CHUNK)
        row = self.windows.bytes_per_row
        return int(min(max(memory.bytes // (16 * row), _LEAST_CHUNK // 4), _MOST_CHUNK))

    def write_values(self, stream: int, values: npt.NDArray[np.float64]) -> None:
        """What tuples are worth that will be the next in a window's ring."""
        state = self.windows.state
        start = int(state.shares["values"][stream])
        if not start:
            return
        mask = int(state.windows["mask"][stream])
        places = (self.windows.head(stream) + np.arange(len(values))) & mask
        state.floats[start + places] = values

    # Around a kernel.

    def begin(self) -> None:
        """Before each run of the loop: what is a ghost now stays readable until it is over."""
        windows = self.windows
        if windows.has_ghosts:
            windows.state.shares["floor"] = windows.state.windows["tail"][self._streams :]

    def note(self) -> None:
        """After each run: keep the columns of new ghosts, while their tuples can be read."""
        windows = self.windows
        if not windows.has_ghosts:
            return
        state = windows.state
        heads = state.windows["head"][self._streams :]
        for stream in np.flatnonzero(state.shares["noted"] != heads).tolist():
            first, head = int(state.shares["noted"][stream]), int(heads[stream])
            payload = windows.payloads[self._streams + stream]
            own = windows.payloads[stream]
            assert payload is not None and own is not None, "a stream with tuples is bound"
            if payload.columns:
                sequences = np.empty(head - first, np.int64)
                ghosts.sources(state, stream, sequences)
                for columns in in_pieces(sequences, partial(_taken, own, payload)):
                    payload.write(columns, first)
                    first += len(next(iter(columns.values())))
            self._number(stream, int(state.shares["noted"][stream]), head)
            state.shares["noted"][stream] = head

    def _number(self, stream: int, begin: int, end: int) -> None:
        """Note of new ghosts how many were laid before each: unlike sequence numbers, that stays
        when they are moved."""
        state, sequences = self.windows.state, np.arange(begin, end)
        mask = int(state.windows["mask"][self._streams + stream])
        notes = int(state.shares["notes"][stream]) + NOTE_WORDS * (sequences & mask)
        state.words[notes] = int(state.shares["laid"][stream]) + sequences

    def make_ghost_room(self, watermark: int) -> None:
        """More room for ghosts, or fewer of them."""
        windows = self.windows
        if self.ghosts >= self.most_ghosts:
            for number in range(self._streams, 2 * self._streams):
                ring.sweep(windows.state, number, watermark)  # of what has ended, first
            if self.ghosts >= self.most_ghosts:
                self._thin(self.most_ghosts * 3 // 4)
            return
        rows = {
            number: max(_GROWTH * windows.live(number), _FEW_GHOSTS)
            for number in range(self._streams, 2 * self._streams)
        }
        memory = self.limits.memory
        while (
            memory.bytes is not None
            and self.ghosts > _FEW_GHOSTS
            and windows.bytes_with(rows, watermark) > memory.bytes
        ):
            self._thin(self.ghosts * 3 // 4)
            rows = dict.fromkeys(rows, _FEW_GHOSTS)
        windows.reserve(rows, watermark)
        if not windows.has_index_room:
            windows.make_index_room()

    def _thin(self, most: int) -> None:
        """Turn to a smaller sample, of so many ghosts at most."""
        state = self.windows.state
        state.budget["learns"] = 1
        while self.ghosts > most and state.budget[0].threshold > 2.0**-60:
            state.budget["threshold"] *= 0.5
            ghosts.thin(state)

    # Keeping a limit in bytes.

    def make_room(self, rows: Mapping[int, int], watermark: int) -> None:
        """Before a chunk with so many rows of each stream."""
        heads = int(self.windows.state.windows["head"][: self._streams].sum())
        levelled = int(self.windows.state.budget["levelled"][0])
        if heads - levelled > max(_LEVELLED * self.live, _LEAST_CHUNK):
            # Worths that have become less are noticed by nothing else.
            self.windows.state.budget["levelled"] = heads
            for stream in range(self._streams):
                level_anew(self.windows.state, stream)
        memory = self.limits.memory
        if memory.bytes is None:
            return
        while self.live and self.windows.bytes_with(rows, watermark) > memory.bytes:
            self.shed_to(self.live * 3 // 4, watermark)

    def enforce(self, watermark: int) -> None:
        """When the limit has become another."""
        self._shed(watermark)
        self.keep_bytes(watermark)

    def keep_bytes(self, watermark: int) -> None:
        """After a chunk."""
        memory, windows = self.limits.memory, self.windows
        if memory.bytes is None:
            return
        while windows.state_bytes + windows.payload_bytes > memory.bytes:
            before = windows.state_bytes + windows.payload_bytes
            windows.close_ranks()
            if windows.state_bytes + windows.payload_bytes <= memory.bytes:
                return
            if self.ghosts > self.live:
                self._thin(self.ghosts // 2)
            elif self.live:
                self.shed_to(self.live * 3 // 4, watermark)
            elif self.ghosts:
                self._thin(self.ghosts // 2)
            elif windows.state_bytes + windows.payload_bytes >= before:
                return  # nothing is left that could go

    def shed_to(self, rows: int, watermark: int) -> None:
        """Shed until so many tuples are left, whatever the limit is."""
        state = self.windows.state
        was, shares = int(state.budget["rows"][0]), state.shares["rows"].copy()
        state.budget["rows"] = rows
        if self.limits.pool == "fixed":
            state.shares["rows"] = self._equal_parts(rows)
        self._shed(watermark)
        self.windows.state.budget["rows"] = was
        self.windows.state.shares["rows"] = shares

    def _equal_parts(self, rows: int) -> list[int]:
        """Of so many tuples the parts of the streams, so that none that is cut holds more bytes
        than another."""
        live = [self.windows.live(number) for number in range(self._streams)]
        widths = [self.windows.row_bytes(number) for number in range(self._streams)]
        least, most = 0.0, float(max(map(mul, live, widths)))
        for _ in range(_HALVINGS):
            part = (least + most) / 2
            fits = sum(min(n, part // width) for n, width in zip(live, widths, strict=True))
            least, most = (part, most) if fits <= rows else (least, part)
        return [int(min(n, least // width)) for n, width in zip(live, widths, strict=True)]

    def _shed(self, watermark: int) -> None:
        while True:
            self.begin()
            is_done = shed(self.windows.state)
            self.note()
            if is_done:
                return
            self.make_ghost_room(watermark)

    def limit(self, limits: Limits, watermark: int) -> None:
        """Keep within other limits from now on."""
        self.limits = limits
        self._set_rows(limits.memory)
        self.windows.is_tight = limits.memory.bytes is not None
        self.enforce(watermark)

    # What it cost.

    @property
    def live(self) -> int:
        """Tuples in all windows."""
        return int(self.windows.state.windows["live"][: self._streams].sum())

    @property
    def ghosts(self) -> int:
        """Tuples that were shed and are remembered."""
        return int(self.windows.state.windows["live"][self._streams :].sum())

    @property
    def most_ghosts(self) -> int:
        """How many may be."""
        limits = self.limits
        if limits.ghosts is not None:
            return limits.ghosts
        most = _ALL_GHOSTS if limits.loss == "exact" else _SAMPLED_GHOSTS
        if limits.memory.bytes is not None:
            return max(int(min(most, limits.memory.bytes // (_PART * _GHOST_BYTES))), _FEW_GHOSTS)
        return most

    @property
    def shed(self) -> Words:
        """Tuples that were shed, of each stream."""
        counted: Words = self.windows.state.shares["shed"]
        return counted

    @property
    def lost(self) -> npt.NDArray[np.float64]:
        """Results that were lost, by the stream whose tuple was shed."""
        counted: npt.NDArray[np.float64] = self.windows.state.shares["lost"]
        return counted

    @property
    def variance(self) -> float | None:
        """Of the number of lost results, if it is told by a sample; else None."""
        state = self.windows.state
        if state.budget["threshold"][0] >= 1.0:
            return None
        start = int(state.budget["groups"][0])
        sums = state.floats[start : start + GROUPS]
        return float(((sums - sums.mean()) ** 2).sum()) * GROUPS / (GROUPS - 1)

    def forget_losses(self) -> None:
        """Count lost results from here on."""
        state = self.windows.state
        state.shares["lost"] = 0.0
        state.budget["certain"] = 0.0
        if self.windows.has_ghosts:
            start = int(state.budget["groups"][0])
            state.floats[start : start + GROUPS] = 0.0

    @property
    def threshold(self) -> float:
        """The chance of a ghost to be kept, whose partners never come."""
        return float(self.windows.state.budget["threshold"][0])

    def most_lost(self, produced: int) -> int | None:
        """In a semi join, the left tuples that have gone and not come out; None in others. There a
        sample tells little, for all ghosts of a key are in it or none."""
        if self._query.how != "semi":
            return None
        return self.windows.expired(0) + int(self.shed[0]) - produced

    @property
    def seen(self) -> int:
        """Lost results that are certain: those that no sample had to tell."""
        return round(float(self.windows.state.budget["certain"][0]))


def _given_words(binding: Binding, stream: int, keys: list[Any]) -> Words:
    """The words of keys that a user gives, one value each, or a tuple where keys are several."""
    schema, names = binding.schemas[stream], binding.query.keys[stream]
    assert schema is not None, "asked for bound streams only"
    try:
        columns = [keys] if len(names) == 1 else list(zip(*keys, strict=True))
        arrays = [
            pa.array(list(values), schema.field(name).type)
            for values, name in zip(columns, names, strict=True)
        ]
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaError(
            f"frequencies= of stream {binding.query.names[stream]!r} has keys that are no values "
            f"of {list(names)}: {error}; give them in the type of the column"
        ) from error
    words, _ = key_words(arrays, binding.key_kinds, len(keys))
    return words


def _taken(own: Payload, ghosts_payload: Payload, sequences: Words) -> dict[str, pa.Array]:
    positions = own.positions(sequences)
    return {name: own.columns[name].take(sequences, positions) for name in ghosts_payload.columns}


def _predicate_columns(query: Query, stream: int) -> tuple[str, ...]:
    needed = dict.fromkeys(query.keys[stream])
    for predicate in query.residuals:
        for column in sorted(predicate.columns, key=lambda each: each.name):
            if column.stream == stream:
                needed[column.name] = None
    return tuple(needed)


def _mixed(seed: int) -> Any:
    """A random word that is not zero, from any number (splitmix)."""
    word = (seed * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & 0xFFFF_FFFF_FFFF_FFFF
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFF_FFFF_FFFF_FFFF
    word = (word ^ word >> 27) * 0x94D049BB133111EB & 0xFFFF_FFFF_FFFF_FFFF
    return np.uint64(word ^ word >> 31 | 1)


def _lengths(query: Query) -> list[int]:
    """Of the windows that end, in microseconds."""
    lengths = [window.slot_us or window.length_us for window in query.windows]
    return [length for length in lengths if 0 < length < FOREVER]


def _half_life(query: Query) -> int:
    """What came a window ago counts half; where no window ends, all counts alike."""
    return max(_lengths(query), default=NO_LIMIT)


def _scales(query: Query, half_life: int) -> list[float]:
    """What a tuple of each stream is worth whose partners come once each (shedding.worth)."""
    lengths = [window.slot_us or window.length_us for window in query.windows]
    spans = [_LN_2 * length / half_life if 0 < length < FOREVER else 1.0 for length in lengths]
    streams = range(len(lengths))
    return [
        sum(
            float(np.prod([spans[other] for other in streams if other not in (own, last)]))
            for last in streams
            if last != own
        )
        for own in streams
    ]
