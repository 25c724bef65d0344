"""Why did these tuples join, or not? The first question of every user.

The query's conditions are checked one by one on the values given, then what is known of
each tuple: whether it is in its window, came late, or has left. Tuples that have left are
not remembered, so the answer can be "they would have, if they arrived in time".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import InputError
from penstock.runtime.why.predicates_held import told_of
from penstock.runtime.why.tuple import Described, Known, described, fate_text
from penstock.runtime.why.window_times import Told, told_of_windows

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["Why", "explain", "explain_tuples"]


@dataclass(frozen=True)
class Why:
    """joined: True, False, or None when it depends on what is no longer known, or not yet.

    reasons: one sentence for each condition, those that failed first.
    """

    joined: bool | None
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        verdict = {True: "joined", False: "not joined", None: "not known"}[self.joined]
        return "\n".join([f"{verdict}:", *(f"  - {reason}" for reason in self.reasons)])


_LOST = (Known.LATE, Known.BROKEN, Known.BEHIND, Known.BEFORE, Known.NOT_SEEN)


def explain(
    tuples: Sequence[Described],
    others: Sequence[str],
    where: Sequence[tuple[bool, str]],
    windows: Sequence[Told],
) -> Why:
    """Conclude from what is known of each condition whether the tuples joined.

    others: the streams no tuple was given of; whether there is a fitting one is not known.
    """
    told: list[Told] = [*where, *_told_of_keys(tuples), *windows]
    failed = [text for holds, text in told if holds is False]
    undecided = [text for holds, text in told if holds is None]
    held = [text for holds, text in told if holds]
    latest = max((each.ts for each in tuples if each.ts is not None), default=0)
    gone = [each for each in tuples if each.fate in _LOST or _was_shed_before(each, latest)]
    bad = [fate_text(each) for each in gone]
    good = [fate_text(each) for each in tuples if each not in gone]
    if failed or bad or all(each.fate is Known.UNPROBED for each in tuples):
        return Why(False, (*failed, *bad, *undecided, *held, *good))
    good += [f"{other}: no tuple given; these join if one of it fits too" for other in others]
    are_live = all(each.fate is Known.LIVE for each in tuples)
    joined = True if are_live and not others and not undecided else None
    return Why(joined, (*undecided, *held, *good))


def _was_shed_before(each: Described, latest: int) -> bool:
    """Whether a tuple was gone when the latest came, as far as times show."""
    return each.shed is not None and (each.shed.at_once or each.shed.instant < latest)


def _told_of_keys(tuples: Sequence[Described]) -> list[Told]:
    keyless = [each for each in tuples if not each.has_key]
    if keyless:
        text = "is null or NaN, which equals nothing"
        return [(False, f"{each.stream}: its key {each.key!r} {text}") for each in keyless]
    first = tuples[0]
    told: list[Told] = []
    for each in tuples[1:]:
        if first.key:
            same = each.key == first.key
            text = f"{first.stream} {first.key!r} and {each.stream} {each.key!r}"
            told.append((same, f"keys {'are equal' if same else 'differ'}: {text}"))
    return told


def explain_tuples(join: Join, given: Mapping[str, Mapping[str, Any]]) -> Why:
    """Find the tuples a user describes, and explain them."""
    unknown = [name for name in given if name not in join.query.names]
    if unknown or len(given) < 2:
        raise InputError(
            f"why needs a tuple of two streams or more, got {list(given)}; "
            f"the streams are {join.query.names}"
        )
    tuples = []
    streams = [join.query.names.index(name) for name in given]
    for name, row in given.items():
        if not isinstance(row, Mapping):
            raise InputError(
                f"why needs the columns of a tuple of stream {name!r}, got {row!r}; "
                "give them as a mapping from name to value"
            )
        tuples.append(described(join, join.query.position(name), row, streams))
    rows = {stream: each.row for stream, each in zip(streams, tuples, strict=True)}
    others = [name for name in join.query.names if name not in given]
    why = explain(
        tuples,
        others,
        told_of(join.driver.binding, rows),
        told_of_windows(join.query, tuples, join.clock.watermark),
    )
    if join.finished and why.joined is None:
        asked_late = "the join has finished and its windows are empty: ask before finish()"
        return Why(None, (asked_late, *why.reasons))
    return why
