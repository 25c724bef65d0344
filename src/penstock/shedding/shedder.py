"""The shedder: what the driver calls to keep within limits, around the kernels that do it.

Numbers that change are in the arena, with the tuples they are about: here is only what is made
from the query and its limits. The kernels keep a limit in rows, after each instant. A limit in
bytes is kept between them: before a chunk is worked on, and after it, tuples go until all of it
fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from penstock.errors import PlanError
from penstock.kernels import ring
from penstock.kernels.arena import Words
from penstock.kernels.budget.kinds import KINDS
from penstock.kernels.budget.shed import level_anew, shed
from penstock.kernels.sentinels import BEGINNING, NO_LIMIT
from penstock.model.binding import Binding
from penstock.model.limits import BY_WORTH, Limits, Memory
from penstock.model.query import Query
from penstock.shedding.ghost_room import GhostRoom
from penstock.shedding.given import fill_table, given_words
from penstock.shedding.loss_counts import Losses
from penstock.shedding.scales import half_life_of, scales_of
from penstock.shedding.service import Service
from penstock.shedding.sharing import portions
from penstock.shedding.unlimited import MOST_CHUNK_ROWS
from penstock.windows.windows import Windows

__all__ = ["Shedder"]

_HALVINGS: Final = 60
_LEAST_LEVELLED: Final = 256  # arrivals
_LEAST_CHUNK: Final = 1024  # a smaller one costs more around the loop than in it
_LEAST_BYTE_CHUNK: Final = 16  # of a limit in bytes, for which a few wide tuples are much
_LEVELLED: Final = 1  # times as many as there are have come before all get levels anew
_LATE_PART: Final = 8  # of a limit in bytes, the most for late rows


class Shedder:
    """Keeps the windows of one join within limits."""

    def __init__(self, query: Query, limits: Limits, windows: Windows) -> None:
        self.limits = limits
        self._query = query
        self.windows = windows
        self.ghosts = GhostRoom(limits, windows)
        self.service = Service(limits, windows)
        self.losses = Losses(windows, is_semi=query.is_semi)
        self._streams = len(query.streams)
        self._parts = limits.parts(query.names) or [1.0] * self._streams
        self._binding: Binding | None = None
        self.bytes_beside = 0  # of a limit in bytes, what others than windows hold
        budget = windows.state.budget[0]
        budget.policy = KINDS[limits.shed] if limits.memory.is_limited else KINDS["oldest"]
        budget.fixed = limits.pool != "shared"
        budget.ghost_paths = len(windows.state.tables) if windows.has_ghosts else 0
        budget.random = budget.sampling = _mixed(limits.seed)
        budget.seed = _mixed(limits.seed + 1)
        budget.threshold = budget.uniform = budget.growth = budget.shrink = budget.sign = 1.0
        budget.grown_at = budget.instant = budget.newest = BEGINNING
        budget.stays = limits.memory.is_limited and limits.shed == "expected_life"
        budget.stops = query.is_semi
        budget.learns = self.goes_by_worth
        self._measure_windows()
        self._set_rows(limits.memory)

    def _measure_windows(self) -> None:
        """Write what follows from the lengths of windows, which may be others than before."""
        state, half_life = self.windows.state, half_life_of(self._query)
        state.budget["half_life"] = half_life
        state.quotas["scale"] = scales_of(self._query, half_life)

    @property
    def goes_by_worth(self) -> bool:
        """Whether tuples are shed by how often their partners come."""
        return self.limits.memory.is_limited and self.limits.shed in BY_WORTH

    def check(self, binding: Binding) -> None:
        """Refuse columns that frequencies do not fit, or that there is no room for."""
        for stream, schema in enumerate(binding.schemas):
            given = self.limits.frequencies.get(self._query.names[stream])
            if given is not None and schema is not None:
                given_words(binding, stream, list(given))
        self.check_memory(self.limits.memory, binding)

    def check_memory(self, memory: Memory, binding: Binding | None = None) -> None:
        """Refuse a limit that not even a join without tuples keeps."""
        if memory.bytes is None:
            return
        needed = self.windows.footprint.least_bytes + self._least_payload(binding or self._binding)
        if memory.bytes < needed:
            raise PlanError(
                f"memory={memory.bytes:,} bytes is too little: the join takes {needed:,} without "
                "any tuple; give it more, or a limit in rows"
            )

    def _least_payload(self, binding: Binding | None) -> int:
        schemas = () if binding is None else binding.schemas
        return sum(
            self.windows.footprint.least_payload(schema, names)
            for stream, schema in enumerate(schemas)
            if binding is not None and schema is not None
            for names in (binding.kept[stream], self.ghosts.columns(binding, stream))
        )

    def _set_rows(self, memory: Memory) -> None:
        rows = NO_LIMIT if memory.rows is None else memory.rows
        state = self.windows.state
        state.budget["rows"] = rows
        state.budget["most_ghosts"] = self.ghosts.most
        if self.limits.pool == "allocated" and state.quotas["rows"].any():
            self._parts = state.quotas["rows"].tolist()  # as they were, until the next chunk
        state.quotas["rows"] = portions(rows, self._parts)

    @property
    def late_bytes(self) -> int | None:
        """Of a limit in bytes, how much late rows may hold; None without one."""
        limit = self.limits.memory.bytes
        if limit is None:
            return None
        needed = self.windows.footprint.least_bytes + self._least_payload(self._binding)
        return max(min(limit // _LATE_PART, limit - needed), 0)

    @property
    def _window_bytes(self) -> int | None:
        """Of a limit in bytes, how much is left for windows."""
        limit = self.limits.memory.bytes
        return None if limit is None else limit - self.bytes_beside

    # What a stream brings.

    def bind(self, binding: Binding) -> None:
        """Get to know further streams."""
        self._binding = binding
        query, windows = binding.query, self.windows
        self._query = query
        self._measure_windows()
        self.ghosts.bind(binding)
        for stream, name in enumerate(query.names):
            fill_table(windows.state, binding, stream, self.limits.frequencies.get(name))

    def chunk_rows(self) -> int:
        """How many rows of a stream are worked on at once."""
        memory = self.limits.memory
        if not memory.is_limited:
            return MOST_CHUNK_ROWS
        if memory.rows is not None:
            return min(max(memory.rows // 2, _LEAST_CHUNK), MOST_CHUNK_ROWS)
        row = self.windows.footprint.bytes_per_row
        return int(min(max(memory.bytes // (32 * row), _LEAST_BYTE_CHUNK), MOST_CHUNK_ROWS))

    def write_values(self, stream: int, values: npt.NDArray[np.float64]) -> None:
        """Write what tuples are worth that will be the next in a window's ring."""
        state = self.windows.state
        start = int(state.quotas["values"][stream])
        if not start:
            return
        mask = int(state.windows["mask"][stream])
        places = (self.windows.head(stream) + np.arange(len(values))) & mask
        state.floats[start + places] = values

    # Keeping a limit in bytes.

    def allocate(self, times: Mapping[int, Words]) -> None:
        """Before a chunk with these times of each stream: share out what can be done."""
        self.service.allocate(self._query, times)

    def make_room(self, rows: Mapping[int, int], watermark: int) -> None:
        """Make room before a chunk with `rows` of each stream."""
        heads = int(self.windows.state.windows["head"][: self._streams].sum())
        levelled = int(self.windows.state.budget["levelled"][0])
        if heads - levelled > max(_LEVELLED * self.live, _LEAST_LEVELLED):
            # Worths that have become less are noticed by nothing else.
            self.windows.state.budget["levelled"] = heads
            for stream in range(self._streams):
                level_anew(self.windows.state, stream)
        self.ghosts.relax()
        limit = self._window_bytes
        if limit is not None:
            self._plan(limit, rows, watermark)

    def _plan(self, limit: int, rows: Mapping[int, int], watermark: int) -> None:
        """Keep no more tuples than fit into `limit` bytes, before a chunk with `rows` of each
        stream and while it is worked on."""
        byte_room = self.ghosts.byte_room
        fits = self._fit(limit, rows)
        coming = sum(rows.values())
        if fits < self.live + coming:
            for number in range(self.windows.count):
                ring.sweep(self.windows.state, number, watermark)  # of what has ended, first
            fits = self._fit(limit, rows)
            if fits < self.live + coming and not byte_room.has_shed:
                byte_room.has_shed = True
                fits = self._fit(limit, rows)
        while self.live > fits:
            self.shed_to(fits, watermark)
            fits = self._fit(limit, rows)

    def _fit(self, limit: int, rows: Mapping[int, int]) -> int:
        """How many tuples fit into `limit` bytes; kernels then keep within that."""
        fitting = self.ghosts.byte_room.fitting(limit, rows)
        self.ghosts.fitting = fitting.ghosts
        self.windows.state.budget["most_ghosts"] = self.ghosts.most
        if self.limits.pool == "shared":
            self.windows.state.budget["rows"] = fitting.rows
        return fitting.rows

    def enforce(self, watermark: int) -> None:
        """Shed what is too much, after the limit has changed."""
        self._shed(watermark)
        self.keep_bytes(watermark)

    def keep_bytes(self, watermark: int) -> None:
        """Keep a limit in bytes, after a chunk."""
        limit, windows = self._window_bytes, self.windows
        if limit is None:
            return
        while windows.state_bytes + windows.payload_bytes > limit:
            before = windows.state_bytes + windows.payload_bytes
            windows.close_ranks()
            if windows.state_bytes + windows.payload_bytes <= limit:
                return
            if self.ghosts.held > self.ghosts.most or self.ghosts.held > self.live:
                self.ghosts.thin(self.ghosts.held * 3 // 4)
            elif self.live:
                self.shed_to(self.live * 15 // 16, watermark)
            elif self.ghosts.held:
                self.ghosts.thin(self.ghosts.held // 2)
            elif windows.state_bytes + windows.payload_bytes >= before:
                return  # nothing is left that could go

    def shed_to(self, rows: int, watermark: int) -> None:
        """Shed until `rows` tuples are left, whatever the limit is."""
        state = self.windows.state
        was, quotas = int(state.budget["rows"][0]), state.quotas["rows"].copy()
        state.budget["rows"] = rows
        if self.limits.pool != "shared":
            state.quotas["rows"] = self._byte_parts(rows)
        self._shed(watermark)
        self.windows.state.budget["rows"] = was
        self.windows.state.quotas["rows"] = quotas

    def _byte_parts(self, rows: int) -> list[int]:
        """Divide `rows` tuples among the streams, so that none that is cut holds more of the bytes
        than its part."""
        live = [self.windows.live(number) for number in range(self._streams)]
        # What a tuple takes of a stream's part; of one without a part, more than there can be.
        widths = [
            self.windows.footprint.row_bytes(number) / part if part else inf
            for number, part in enumerate(self._parts)
        ]
        least, most = 0.0, max((n * w for n, w in zip(live, widths, strict=True) if w < inf))
        for _ in range(_HALVINGS):
            part = (least + most) / 2
            fits = sum(min(n, part // width) for n, width in zip(live, widths, strict=True))
            least, most = (part, most) if fits <= rows else (least, part)
        return [int(min(n, least // width)) for n, width in zip(live, widths, strict=True)]

    def _shed(self, watermark: int) -> None:
        while True:
            self.ghosts.begin()
            is_done = shed(self.windows.state)
            self.ghosts.note()
            if is_done:
                return
            self.ghosts.make(watermark)

    def limit(self, limits: Limits, watermark: int) -> None:
        """Keep within other limits from now on."""
        self.limits = self.ghosts.limits = limits
        self.service.limit(limits)
        self._set_rows(limits.memory)
        self.windows.is_tight = limits.memory.bytes is not None
        self.enforce(watermark)

    @property
    def live(self) -> int:
        """Tuples in all windows."""
        return int(self.windows.state.windows["live"][: self._streams].sum())


def _mixed(seed: int) -> Any:
    """A random word that is not zero, from any number (splitmix)."""
    word = (seed * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & 0xFFFF_FFFF_FFFF_FFFF
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFF_FFFF_FFFF_FFFF
    word = (word ^ word >> 27) * 0x94D049BB133111EB & 0xFFFF_FFFF_FFFF_FFFF
    return np.uint64(word ^ word >> 31 | 1)
