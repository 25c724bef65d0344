"""What a join under a budget has in its arena, beside rings and indexes.

    budget      1 BUDGET record
    shares      a SHARE record for each stream
    tables      a TABLE record for each path of a stream: how often its words come
    ...
    entries     of the tuples of each window, by position: its neighbours in the queue, and its
                number, which tells how many of its stream came before
    levels      of the queues, where tuples are kept in order of their worth (state.queue), and
                of each how long tuples stay, where that is learned
    values      of the tuples, where the user says what results are worth
    notes       of the ghosts' windows: of each ghost the tuple it was, and when it was shed; once
                it has its columns, in the place of the first how many were laid before it
    counts      of the tables (stats)
    groups      of the ledger (shedding.ghosts)
    ages        of the policy that learns from them (shedding.ages)

A tuple that was shed leaves a ghost in a window of its own: ghosts of stream j are in window
n + j, which has the same paths and indexes. So ghosts are probed, expire and are moved as tuples
are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.model.access import Equal
from penstock.model.limits import BY_WORTH, LEAST_STATISTICS, Limits
from penstock.model.plan import Plan
from penstock.model.query import Query
from penstock.state.links import LINK_MASK

__all__ = [
    "AGES", "BUDGET", "BY_KEY", "BY_ORDER", "ENTRY_WORDS", "GROUPS", "LEVELS", "NOTE_WORDS",
    "NO_LIMIT", "QUEUE_WORDS", "SHARE", "TABLE", "Provision", "provision",
]  # fmt: skip

NO_LIMIT: Final = 1 << 62

LEVELS: Final = 1024
_BITS: Final = LEVELS // 64
QUEUE_WORDS: Final = 2 * LEVELS + _BITS  # first and last tuple of each level; which have any
ENTRY_WORDS: Final = 2  # of each tuple: the ones before and behind, half a word each; its number
GROUPS: Final = 1024
AGES: Final = 32  # stretches of age, each with three numbers
NOTE_WORDS: Final = 3  # of each ghost: where its tuple was, when it was shed, and its number
_WAYS_BYTES: Final = 64
_LARGEST_SAMPLE: Final = 4096
_PART: Final = 5  # of a limit in bytes, beyond what a join needs anyway, the most for all tables
_NEEDED_ANYWAY: Final = 48 << 10  # about, for each of them


def _record(*fields: tuple[Any, ...]) -> np.dtype[Any]:
    return np.dtype((np.record, list(fields)))


BUDGET: Final = _record(
    ("policy", "i8"),  # a number of shedding.victims
    ("fixed", "i8"),  # whether each stream has a share of its own
    ("rows", "i8"),  # how many tuples may be in all windows together
    ("instant", "i8"),  # the time of the arrivals that are being worked on
    ("newest", "i8"),  # the latest that there was
    ("ghost_paths", "i8"),  # how far behind a path that of its ghosts is; 0 without ghosts
    ("counts_only", "i8"),  # whether a lost result is one by its words alone
    ("random", "u8"),  # from which victims are drawn
    ("sampling", "u8"),  # from which samples of values are
    ("threshold", "f8"),  # the least chance that a ghost has had; 1 when all were kept
    ("uniform", "f8"),  # of the chance of a ghost, what all have alike
    ("slope", "f8"),  # and what it grows by with the worth (state.losses)
    ("growth", "f8"),  # what an arrival counts now; one before counts the less, the older it is
    ("shrink", "f8"),  # 1 over it
    ("grown_at", "i8"),
    ("half_life", "i8"),
    ("seed", "u8"),
    ("groups", "i8"),  # where the sums of lost results by group of keys start, in words
    ("arrivals", "i8"),  # since ages were last looked at
    ("stays", "i8"),  # whether it is learned how long tuples are kept
    ("learns", "i8"),  # whether it is learned how often words come
    ("sign", "f8"),  # -1 while lost results that were counted are taken back
    ("stops", "i8"),  # whether candidates are verified before an instant ends
    ("most_ghosts", "i8"),
    ("certain", "f8"),  # lost results that no sample had to tell
    ("levelled", "i8"),  # how many had arrived when all were given levels anew
    ("service_rate", "f8"),  # tuples to be dealt with in a microsecond; 0 for all of them
    ("credit", "f8"),  # how many may still be, and when that was last added to
    ("credited_at", "i8"),
    ("began", "i8"),  # when the first tuple came
    ("drops", "i8"),  # whether a tuple that is not dealt with is dropped
    ("is_new", "i8"),  # whether the key of the last arrival was not known
    ("skips", "i8"),  # whether the arrival that looks for partners should not
    ("looks", "f8"),  # the chance that results are counted which such a tuple loses; 0 for none
)
SHARE: Final = _record(
    ("rows", "i8"),  # how many tuples may be in its window, of a fixed share
    ("shed", "i8"),  # tuples that were
    ("lost", "f8"),  # results that were, for want of a tuple of this stream
    ("scale", "f8"),  # what a tuple is worth whose partners come once each
    ("entries", "i8"),  # where the entries of its tuples start, in words
    ("levels", "i8"),  # where the levels of its queue start, in words; 0 without
    ("values", "i8"),  # where the values of its tuples start, in words; 0 without
    ("next", "i8"),  # who is likely to go next
    ("lowest", "i8"),  # no level below it has a tuple
    ("notes", "i8"),  # where the notes of its ghosts start, in words
    ("noted", "i8"),  # the first ghost whose columns have not been written
    ("floor", "i8"),  # ghosts from here on must stay readable
    ("ages", "i8"),  # where what is learned of ages starts, in words
    ("numbered", "i8"),  # the number of the next to come
    ("laid", "i8"),  # ghosts that were laid before the first of this arena
    ("came", "f8"),  # arrivals, as far as they count
    ("arrived", "i8"),  # the number of arrivals
    ("chance", "f8"),  # of an arrival to be dealt with
    ("unprobed", "i8"),  # arrivals that did not look for partners
    ("unprobed_lost", "f8"),  # results that were lost for it
)
TABLE: Final = _record(
    ("kind", "i8"),  # a kind of stats.tables
    ("start", "i8"),  # where it starts, in words
    ("places", "i8"),  # sets of keys, or values in a sample
    ("filled", "i8"),  # values in the sample
    ("ordered", "i8"),  # of these in order
    ("since", "i8"),  # values taken into the sample since they were put in order
    ("total", "f8"),  # arrivals, as far as they count
    ("given", "i8"),  # whether the user has given frequencies
    # Of arrivals, what there was for them to meet: those whose key was not known, and the others.
    ("met_new", "f8"),
    ("met_known", "f8"),
    # Of the tuples that they could meet: how many had a key that was not known here, and the counts
    # of the keys of the others.
    ("waiting_new", "f8"),
    ("waiting_known", "f8"),
)


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
                state.shares[stream].entries = at
            at += sizes[stream] * ENTRY_WORDS
            if self.has_queues:
                if state is not None:
                    state.shares[stream].levels = at
                at += self.queue_words
            if self.has_values:
                if state is not None:
                    state.shares[stream].values = at
                at += sizes[stream]
            if self.has_ghosts:
                if state is not None:
                    state.shares[stream].notes = at
                at += sizes[self.streams + stream] * NOTE_WORDS
            if self.has_ages:
                if state is not None:
                    state.shares[stream].ages = at
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
            (old.shares, new.shares, ("entries", "levels", "values", "notes", "ages")),
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
            spans += [("shares", stream, "ages", 3 * AGES)] if self.has_ages else []
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
        entries = 2 * int(new.shares["entries"][number])
        places = entries + 2 * ENTRY_WORDS * (moved[1] & int(new.windows["mask"][number]))
        for link in (places, places + 1):
            links = new.halves[link]
            new.halves[link] = np.where(links < 0, links, placed[links & mask] & LINK_MASK)
        source, target = int(old.shares["levels"][number]), int(new.shares["levels"][number])
        count = self.queue_words
        new.words[target : target + count] = old.words[source : source + count]
        ends = new.words[target : target + 2 * LEVELS]
        ends[:] = np.where(ends < 0, ends, placed[ends & mask])


def _carry_each(
    old: Any, new: Any, number: int, moved: tuple[Any, Any], what: tuple[str, int]
) -> None:
    """Take over so many words of each tuple of a window."""
    name, width = what
    share = number % len(old.shares)
    places = [
        int(state.shares[name][share]) + width * (sequences & int(state.windows["mask"][number]))
        for state, sequences in zip((old, new), moved, strict=True)
    ]
    for word in range(width):
        new.words[places[1] + word] = old.words[places[0] + word]


# How a table is kept: counts of keys, or a sample of values.
BY_KEY: Final = 1
BY_ORDER: Final = 2


def provision(query: Query, plan: Plan) -> Provision | None:
    """What the limits of a plan need in the arena; None without limits."""
    limits = plan.limits
    if limits is None:
        return None
    is_limited = limits.memory.is_limited
    by_worth = is_limited and limits.shed in BY_WORTH
    by_age = is_limited and limits.shed == "age"
    has_groups = limits.loss != "off"
    # Where nothing is dropped that others would meet, there are none.
    has_ghosts = has_groups and (is_limited or limits.drop == "tuple")
    tables = []
    for stream, words in enumerate(query.access.words):
        given = limits.frequencies.get(query.names[stream], {})
        for word in words:
            # Ghosts are sampled by worth, whatever tuples are shed by: of bytes it takes few.
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
    """Kind, places and words of one of `of_all` tables in the memory there is, or for so many
    given keys."""
    room = limits.statistics.bytes
    if limits.memory.bytes is not None:  # what is learned must leave room to use it
        part = (limits.memory.bytes // of_all - _NEEDED_ANYWAY) // _PART
        room = min(room, max(part, LEAST_STATISTICS))
    if not by_key:
        values = min(_LARGEST_SAMPLE, room // 16)
        return BY_ORDER, values, 2 * values
    sets = max(room // _WAYS_BYTES, given // 2)  # where keys are given, few sets are full
    return BY_KEY, sets, sets * _WAYS_BYTES // 8
