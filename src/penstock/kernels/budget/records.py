"""What a join under a budget has in its arena, beside rings and indexes.

    budget      1 BUDGET record
    quotas      a QUOTA record for each stream
    tables      a TABLE record for each path of a stream: how often its words come
    ...
    entries     of the tuples of each window, by position: its neighbours in the queue, and its
                number, which says how many of its stream came before
    levels      of the queues, if tuples are kept in order of their worth (queue.py), and
                of each how long tuples stay, if that is learned
    values      of the tuples, if the user says what results are worth
    notes       of the ghosts' windows: of each ghost the tuple it was, and when it was shed; once
                it has its columns, in the place of the first how many were laid before it
    counts      of the tables (stats)
    groups      of the ledger (kernels.budget.ghosts)
    ages        of the policy that learns from them (kernels.budget.ages)

A tuple that was shed leaves a ghost in a window of its own: ghosts of stream j are in window
n + j, which has the same paths and indexes. So ghosts are probed, expire and are moved as tuples
are.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

__all__ = [
    "AGES",
    "BUDGET",
    "BY_KEY",
    "BY_ORDER",
    "ENTRY_WORDS",
    "GROUPS",
    "LEVELS",
    "NOTE_WORDS",
    "QUEUE_WORDS",
    "QUOTA",
    "SAVED",
    "SAVED_OF_BUDGET",
    "SAVED_OF_QUOTA",
    "SAVED_OF_TABLE",
    "TABLE",
    "Fields",
    "record",
]  # fmt: skip

LEVELS: Final = 1024
_BITS: Final = LEVELS // 64
QUEUE_WORDS: Final = 2 * LEVELS + _BITS  # first and last tuple of each level; which have any
ENTRY_WORDS: Final = 2  # of each tuple: the ones before and behind, half a word each; its number
GROUPS: Final = 1024
AGES: Final = 32  # stretches of age, each with three numbers
NOTE_WORDS: Final = 3  # of each ghost: where its tuple was, when it was shed, and its number

# How a table is kept: counts of keys, or a sample of values.
BY_KEY: Final = 1
BY_ORDER: Final = 2


Fields = tuple[tuple[str, str] | tuple[str, str, str], ...]

SAVED: Final = "saved"  # of a field that a snapshot has, and a join goes on from


def record(*fields: tuple[str, ...]) -> np.dtype[Any]:
    """The type of a record with these fields, of a name and a type each."""
    return np.dtype((np.record, [field[:2] for field in fields]))


def _saved(fields: Fields) -> tuple[str, ...]:
    return tuple(field[0] for field in fields if SAVED in field[2:])


_BUDGET_FIELDS: Final[Fields] = (
    ("policy", "i8"),  # a number of kernels.budget.victims
    ("fixed", "i8"),  # whether each stream has a quota of its own
    ("rows", "i8"),  # how many tuples may be in all windows together
    ("instant", "i8", SAVED),  # the time of the arrivals that are being worked on
    ("newest", "i8", SAVED),  # the latest that there was
    ("ghost_paths", "i8"),  # how far behind a path that of its ghosts is; 0 without ghosts
    ("counts_only", "i8"),  # whether a lost result is one by its words alone
    ("random", "u8", SAVED),  # from which victims are drawn
    ("sampling", "u8", SAVED),  # from which samples of values are
    ("threshold", "f8", SAVED),  # the least chance that a ghost has had; 1 when all were kept
    ("uniform", "f8", SAVED),  # of the chance of a ghost, what all have alike
    ("relaxed_at", "i8", SAVED),  # how many had arrived when chances were last looked at
    ("slope", "f8", SAVED),  # and what it grows by with the worth (kernels.budget.losses)
    ("growth", "f8", SAVED),  # what an arrival counts now; earlier ones count less
    ("shrink", "f8"),  # 1 over it
    ("grown_at", "i8", SAVED),
    ("half_life", "i8"),
    ("seed", "u8"),
    ("groups", "i8"),  # where the sums of lost results by group of keys start, in words
    ("arrivals", "i8", SAVED),  # since ages were last looked at
    ("stays", "i8"),  # whether it is learned how long tuples are kept
    ("learns", "i8", SAVED),  # whether it is learned how often words come
    ("sign", "f8"),  # -1 while lost results that were counted are taken back
    ("stops", "i8"),  # whether candidates are verified before an instant ends
    ("most_ghosts", "i8"),
    ("certain", "f8", SAVED),  # lost results that are counted, not estimated from a sample
    ("levelled", "i8"),  # how many had arrived when all were given levels anew
    ("service_rate", "f8"),  # tuples to be dealt with in a microsecond; 0 for all of them
    ("credit", "f8", SAVED),  # how many may still be, and when that was last added to
    ("credited_at", "i8", SAVED),
    ("began", "i8", SAVED),  # when the first tuple came
    ("drops", "i8"),  # whether a tuple that is not dealt with is dropped
    ("is_new", "i8"),  # whether the key of the last arrival was not known
    ("skips", "i8"),  # whether the arrival that looks for partners should not
    ("looks", "f8"),  # the chance that results are counted which such a tuple loses; 0 for none
)
_QUOTA_FIELDS: Final[Fields] = (
    ("rows", "i8"),  # how many tuples may be in its window, of a fixed quota
    ("shed", "i8", SAVED),  # tuples that were
    ("lost", "f8", SAVED),  # results that were, for want of a tuple of this stream
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
    ("numbered", "i8", SAVED),  # the number of the next to come
    ("laid", "i8"),  # ghosts that were laid before the first of this arena
    ("came", "f8", SAVED),  # arrivals, as far as they count
    ("arrived", "i8", SAVED),  # the number of arrivals
    ("chance", "f8"),  # of an arrival to be dealt with
    ("unprobed", "i8", SAVED),  # arrivals that did not look for partners
    ("unprobed_lost", "f8", SAVED),  # results that were lost for it
)
_TABLE_FIELDS: Final[Fields] = (
    ("kind", "i8"),  # a kind of kernels.stats.tables
    ("start", "i8"),  # where it starts, in words
    ("places", "i8"),  # sets of keys, or values in a sample
    ("filled", "i8"),  # values in the sample
    ("ordered", "i8"),  # of these in order
    ("since", "i8"),  # values taken into the sample since they were put in order
    ("total", "f8", SAVED),  # arrivals, as far as they count
    ("given", "i8"),  # whether the user has given frequencies
    # Of arrivals, what there was for them to meet: those whose key was not known, and the others.
    ("met_new", "f8", SAVED),
    ("met_known", "f8", SAVED),
    # Of the tuples that they could meet: how many had a key that was not known here, and the counts
    # of the keys of the others.
    ("waiting_new", "f8", SAVED),
    ("waiting_known", "f8", SAVED),
)
BUDGET: Final = record(*_BUDGET_FIELDS)
QUOTA: Final = record(*_QUOTA_FIELDS)
TABLE: Final = record(*_TABLE_FIELDS)
SAVED_OF_BUDGET: Final = _saved(_BUDGET_FIELDS)
SAVED_OF_QUOTA: Final = _saved(_QUOTA_FIELDS)
SAVED_OF_TABLE: Final = _saved(_TABLE_FIELDS)
