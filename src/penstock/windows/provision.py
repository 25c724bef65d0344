"""What the limits of a plan need in the arena, and how it is carried to another one.

What it is made of: kernels/budget/records.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.kernels.budget.records import (
    AGES,
    BY_KEY,
    BY_ORDER,
    ENTRY_WORDS,
    GROUPS,
    LEVELS,
    NOTE_WORDS,
    QUEUE_WORDS,
)
from penstock.kernels.links import LINK_MASK
from penstock.kernels.sentinels import NO_LIMIT
from penstock.model.access import Equal
from penstock.model.limits import BY_WORTH, LEAST_STATISTICS, Limits
from penstock.model.plan import Plan
from penstock.model.query import Query

__all__ = ["Provision", "provision"]

_WAYS_BYTES: Final = 64
_LARGEST_SAMPLE: Final = 4096
_PART: Final = 5  # of a limit in bytes, beyond what a join needs anyway, the most for all tables
_NEEDED_ANYWAY: Final = 48 << 10  # about, for each of them


class Provision(NamedTuple):
    """What a plan's limits need. tables: kind, places and words of each path's table."""

    streams: int
    has_ghosts: bool
    has_groups: bool
    has_queues: bool
    has_stays: bool
    has_ages: bool
    has_values: bool
    tables: tuple[tuple[int, int, int], ...]

    @property
    def queue_words(self) -> int:
        """Words of a queue."""
        return QUEUE_WORDS + (LEVELS if self.has_stays else 0)

    def words(self, sizes: Sequence[int]) -> int:
        """How many words it takes beside windows with rings of these sizes."""
        return self._end(None, 0, sizes)

    def place(self, state: Any, start: int, sizes: Sequence[int]) -> None:
        """Say in an arena what is where, from a word on."""
        self._end(state, start, sizes)
        for number, (kind, places, _) in enumerate(self.tables):
            state.tables[number].kind, state.tables[number].places = kind, places

    def _end(self, state: Any, at: int, sizes: Sequence[int]) -> int:
        """The one order in which all of it stands; the word behind it."""
        for stream in range(self.streams):
            if state is not None:
                state.quotas[stream].entries = at
            at += sizes[stream] * ENTRY_WORDS
            if self.has_queues:
                if state is not None:
                    state.quotas[stream].levels = at
                at += self.queue_words
            if self.has_values:
                if state is not None:
                    state.quotas[stream].values = at
                at += sizes[stream]
            if self.has_ghosts:
                if state is not None:
                    state.quotas[stream].notes = at
                at += sizes[self.streams + stream] * NOTE_WORDS
            if self.has_ages:
                if state is not None:
                    state.quotas[stream].ages = at
                at += 3 * AGES
        if self.has_groups:
            if state is not None:
                state.budget[0].groups = at
            at += GROUPS
        for number, (_, _, words) in enumerate(self.tables):
            if state is not None:
                state.tables[number].start = at
            at += words
        return at

    def carry(self, old: Any, new: Any) -> None:
        """Take over all that does not belong to one tuple."""
        for was, now, places in (
            (old.budget, new.budget, ("groups",)),
            (old.quotas, new.quotas, ("entries", "levels", "values", "notes", "ages")),
            (old.tables, new.tables, ("start",)),
        ):
            for name in was.dtype.names:
                if name not in places:
                    now[name] = was[name]
        spans = [
            ("tables", number, "start", words) for number, (*_, words) in enumerate(self.tables)
        ]
        spans += [("budget", 0, "groups", GROUPS)] if self.has_groups else []
        for stream in range(self.streams):
            spans += [("quotas", stream, "ages", 3 * AGES)] if self.has_ages else []
        for of, number, name, words in spans:
            source, target = (int(getattr(each, of)[name][number]) for each in (old, new))
            new.words[target : target + words] = old.words[source : source + words]

    def carry_window(self, old: Any, new: Any, number: int, moved: tuple[Any, Any]) -> None:
        """Take over what belongs to the tuples or ghosts of a window. moved: from which sequence
        numbers to which."""
        if number >= self.streams:
            _carry_each(old, new, number, moved, ("notes", NOTE_WORDS))
            return
        _carry_each(old, new, number, moved, ("entries", ENTRY_WORDS))
        if self.has_values:
            _carry_each(old, new, number, moved, ("values", 1))
        if self.has_queues:
            self._carry_queue(old, new, number, moved)

    def _carry_queue(self, old: Any, new: Any, number: int, moved: tuple[Any, Any]) -> None:
        """The same lists of the same tuples, under their new sequence numbers."""
        mask = int(old.windows["mask"][number])
        placed = np.zeros(mask + 1, np.int64)
        placed[moved[0] & mask] = moved[1]
        entries = 2 * int(new.quotas["entries"][number])
        places = entries + 2 * ENTRY_WORDS * (moved[1] & int(new.windows["mask"][number]))
        for link in (places, places + 1):
            links = new.halves[link]
            new.halves[link] = np.where(links < 0, links, placed[links & mask] & LINK_MASK)
        source, target = int(old.quotas["levels"][number]), int(new.quotas["levels"][number])
        count = self.queue_words
        new.words[target : target + count] = old.words[source : source + count]
        ends = new.words[target : target + 2 * LEVELS]
        ends[:] = np.where(ends < 0, ends, placed[ends & mask])


def _carry_each(
    old: Any, new: Any, number: int, moved: tuple[Any, Any], what: tuple[str, int]
) -> None:
    """Take over words of each tuple of a window. what: their name, and how many a tuple has."""
    name, width = what
    quota = number % len(old.quotas)
    places = [
        int(state.quotas[name][quota]) + width * (sequences & int(state.windows["mask"][number]))
        for state, sequences in zip((old, new), moved, strict=True)
    ]
    for word in range(width):
        new.words[places[1] + word] = old.words[places[0] + word]


def provision(query: Query, plan: Plan) -> Provision | None:
    """What the limits of a plan need in the arena; None without limits."""
    limits = plan.limits
    if limits is None:
        return None
    is_limited = limits.memory.is_limited
    by_worth = is_limited and limits.shed in BY_WORTH
    by_age = is_limited and limits.shed == "age"
    has_groups = limits.loss != "off"
    # There are none if nothing is dropped that others would meet.
    has_ghosts = has_groups and (is_limited or limits.drop == "tuple")
    tables = []
    for stream, words in enumerate(query.access.words):
        given = limits.frequencies.get(query.names[stream], {})
        for word in words:
            # Ghosts are sampled by worth, whatever tuples are shed by: that takes few bytes.
            needed = by_worth or has_ghosts
            of_all = sum(map(len, query.access.words)) if by_worth else NO_LIMIT
            kind = _table(limits, isinstance(word, Equal), len(given), of_all)
            tables.append(kind if needed else _NONE)
    has_values = by_worth and limits.value is not None
    return Provision(
        streams=len(query.names),
        has_ghosts=has_ghosts,
        has_groups=has_groups,
        has_queues=by_worth or by_age,
        has_stays=is_limited and limits.shed == "expected_life",
        has_ages=by_age,
        has_values=has_values,
        tables=tuple(tables),
    )


_NONE: Final = (0, 0, 0)


def _table(limits: Limits, by_key: bool, given: int, of_all: int) -> tuple[int, int, int]:
    """Kind, places and words of one of `of_all` tables in the memory there is, or for `given`
    keys."""
    room = limits.statistics.bytes
    if limits.memory.bytes is not None:  # what is learned must leave room to use it
        part = (limits.memory.bytes // of_all - _NEEDED_ANYWAY) // _PART
        room = min(room, max(part, LEAST_STATISTICS))
    if not by_key:
        values = min(_LARGEST_SAMPLE, room // 16)
        return BY_ORDER, values, 2 * values
    sets = max(room // _WAYS_BYTES, given // 2)  # where keys are given, few sets are full
    return BY_KEY, sets, sets * _WAYS_BYTES // 8
