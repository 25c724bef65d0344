"""Room for ghosts: what they keep of their tuples, and how many of them there may be.

Kernels leave ghosts and find no room for them; here columns are copied while the tuples can still
be read, rings are made larger, and the sample is made smaller when there are too many.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.kernels import ring
from penstock.kernels.arena import Words
from penstock.kernels.budget import ghosts
from penstock.kernels.budget.levels import worths_of
from penstock.kernels.budget.records import NOTE_WORDS
from penstock.model.binding import Binding
from penstock.model.limits import Limits
from penstock.model.query import Query
from penstock.shedding.byte_room import FEW_GHOSTS, ByteRoom
from penstock.windows.payload.payload import Payload
from penstock.windows.payload.pieces import in_pieces
from penstock.windows.windows import Windows

__all__ = ["GhostRoom"]

_GHOSTS_A_ROW: Final = 4  # of a limit in rows, the default number of ghosts
_LEAST_GHOSTS: Final = 1 << 14  # at least, if rows are few
_ALL_GHOSTS: Final = 1 << 20  # the default without a limit of memory
_SAMPLED_GHOSTS: Final = 1 << 12
_LEAST_CHANCE: Final = 2.0**-30
_FEWER: Final = 0.93
_BY_WORTH: Final = 0.5  # of 2: a quarter
_RELAXED: Final = 1.1
_LOOKED_THROUGH: Final = 8  # part of the ghosts that must have arrived before all are looked at
_ROOMY: Final = 0.7  # of the ghosts there may be: if fewer are there, chances get better
_HALVINGS: Final = 30
_GROWTH: Final = 4  # for a part of as many as there are room is made


class GhostRoom:
    """For the ghosts of one join."""

    def __init__(self, limits: Limits, windows: Windows) -> None:
        self.limits = limits
        self.windows = windows
        self._streams = windows.streams
        self.byte_room = ByteRoom(windows)
        self.fitting = FEW_GHOSTS  # how many fit into a limit in bytes

    @property
    def held(self) -> int:
        """Tuples that were shed and are remembered."""
        return int(self.windows.state.windows["live"][self._streams :].sum())

    @property
    def most(self) -> int:
        """How many there may be."""
        limits, memory = self.limits, self.limits.memory
        most = _ALL_GHOSTS
        if limits.ghosts is not None:
            most = limits.ghosts
        elif limits.loss == "sampled":
            most = _SAMPLED_GHOSTS
        elif memory.rows is not None:
            most = max(_GHOSTS_A_ROW * memory.rows, _LEAST_GHOSTS)
        if memory.bytes is not None:
            most = min(most, self.fitting)
        return most

    def bind(self, binding: Binding) -> None:
        """Have columns for the ghosts of further streams."""
        windows = self.windows
        windows.state.budget["counts_only"] = _is_exact(binding) and binding.query.how == "inner"
        for stream, schema in enumerate(binding.schemas):
            number = self._streams + stream
            if schema is not None and windows.has_ghosts and windows.payloads[number] is None:
                names = self.columns(binding, stream)
                size = windows.size(number)
                windows.payloads[number] = Payload(schema, names, size, windows.memory)

    def columns(self, binding: Binding, stream: int) -> tuple[str, ...]:
        """What ghosts keep, beside their words; decided when their stream is first bound."""
        if not self.windows.has_ghosts:
            return ()
        payload = self.windows.payloads[self._streams + stream]
        if payload is not None:
            return tuple(payload.columns)
        if _is_exact(binding):
            return ()
        return _predicate_columns(binding.query, stream)

    def begin(self) -> None:
        """Before each run of the loop: what is a ghost now stays readable until it is over."""
        windows = self.windows
        if windows.has_ghosts:
            windows.state.quotas["floor"] = windows.state.windows["tail"][self._streams :]

    def note(self) -> None:
        """After each run: keep the columns of new ghosts, while their tuples can be read."""
        windows = self.windows
        if not windows.has_ghosts:
            return
        state = windows.state
        heads = state.windows["head"][self._streams :]
        for stream in np.flatnonzero(state.quotas["noted"] != heads).tolist():
            first, head = int(state.quotas["noted"][stream]), int(heads[stream])
            payload = windows.payloads[self._streams + stream]
            own = windows.payloads[stream]
            assert payload is not None and own is not None, "a stream with tuples is bound"
            if payload.columns:
                sequences = np.empty(head - first, np.int64)
                ghosts.sources(state, stream, sequences)
                for columns in in_pieces(sequences, partial(_taken, own, payload)):
                    payload.write(columns, first)
                    first += len(next(iter(columns.values())))
            self._number(stream, int(state.quotas["noted"][stream]), head)
            state.quotas["noted"][stream] = head

    def _number(self, stream: int, begin: int, end: int) -> None:
        """Note of new ghosts how many were laid before each: unlike sequence numbers, that stays
        when they are moved."""
        state, sequences = self.windows.state, np.arange(begin, end)
        mask = int(state.windows["mask"][self._streams + stream])
        notes = int(state.quotas["notes"][stream]) + NOTE_WORDS * (sequences & mask)
        state.words[notes] = int(state.quotas["laid"][stream]) + sequences

    def make(self, watermark: int) -> None:
        """Make more room for ghosts, or keep fewer of them."""
        windows = self.windows
        if self.held >= self.most:
            for number in range(self._streams, 2 * self._streams):
                ring.sweep(windows.state, number, watermark)  # of what has ended, first
            if self.held >= self.most:
                self.thin(self.most * 7 // 8)
            return
        rows = {
            number: max(windows.live(number) // _GROWTH, FEW_GHOSTS)
            for number in range(self._streams, 2 * self._streams)
        }
        memory = self.limits.memory
        while (
            memory.bytes is not None
            and self.held > FEW_GHOSTS
            # While rings would have to grow: what is too much without that is not due to ghosts.
            and windows.bytes_with(rows, watermark)
            > max(memory.bytes, windows.state_bytes + windows.payload_bytes)
        ):
            self.thin(self.held * 3 // 4)
            rows = dict.fromkeys(rows, FEW_GHOSTS)
        windows.reserve(rows, watermark)
        if not windows.has_index_room:
            windows.make_index_room()

    def thin(self, most: int) -> None:
        """Turn to a smaller sample, of `most` ghosts at most."""
        budget = self.windows.state.budget
        budget["learns"] = 1
        wanted = max(float(most), 0.5)
        while self.held > most and budget["uniform"][0] > _LEAST_CHANCE:
            wanted *= _FEWER  # a sample may come out larger than is wanted
            budget["uniform"], budget["slope"] = self._chances(wanted)
            budget["threshold"] = np.minimum(budget["threshold"], budget["uniform"])
            ghosts.thin(self.windows.state)

    def relax(self) -> None:
        """When there is room again, give better chances to ghosts that are laid from now on: no
        better than would fill the room, if as many are shed as those that are there stand for."""
        state, held = self.windows.state, self.held
        budget, arrived = state.budget, int(state.quotas["arrived"].sum())
        uniform = float(budget["uniform"][0])
        # In semi joins all of a key have the same chance, whenever they are laid.
        if not self.windows.has_ghosts or uniform >= 1.0 or budget["stops"][0]:
            return
        # All ghosts are gone through: not so often that this would be noticed.
        is_soon = arrived - int(budget["relaxed_at"][0]) < held // _LOOKED_THROUGH
        if held >= _ROOMY * self.most or is_soon:
            return
        budget["relaxed_at"] = arrived
        shed = float((1.0 / ghosts.chances(self._marks())).sum())
        # Not those by worth: more of these leave less room for a sample of all.
        alike = 1.0 - _BY_WORTH / 2 if budget["slope"][0] > 0.0 else 1.0
        fills = alike * _FEWER * self.most / max(shed, 1.0)
        budget["uniform"] = min(max(min(uniform * _RELAXED, fills), uniform), 1.0)

    def _marks(self) -> Words:
        """The marks of all ghosts."""
        windows, numbers = self.windows, range(self._streams, 2 * self._streams)
        return np.concatenate(
            [windows.marks(each, windows.live_sequences(each)).astype(np.int64) for each in numbers]
        )

    def _chances(self, wanted: float) -> tuple[float, float]:
        """Uniform part and slope of chances by which about `wanted` ghosts are kept, a quarter of
        them by worth."""
        marks = self._marks()
        had = ghosts.chances(marks)
        worths = worths_of(ghosts.levels(marks))
        budget = self.windows.state.budget[0]
        alike = wanted / float((1.0 / had).sum())
        worth = float((worths / had).sum())
        if budget.stops:
            return min(alike, float(budget.uniform) / 2), 0.0
        if worth <= 0.0:
            return min(alike, float(budget.uniform)), 0.0
        uniform = (2.0 - _BY_WORTH) * alike
        slope = _BY_WORTH * wanted / worth
        # Chances end at 1, and none rises: as much of both as gives what is wanted.
        least, most = 0.5, 1.0 / min(uniform, 1.0)
        for _ in range(_HALVINGS):
            part = (least + most) / 2
            kept = (np.minimum(had, part * (uniform + slope * worths)) / had).sum()
            least, most = (part, most) if kept <= wanted else (least, part)
        return min(least * uniform, 1.0 - 2.0**-20), least * slope


def _is_exact(binding: Binding) -> bool:
    """Whether tuples match whose words do."""
    is_whole = all(schema is not None for schema in binding.schemas)
    return is_whole and binding.exact and not binding.query.residuals


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
