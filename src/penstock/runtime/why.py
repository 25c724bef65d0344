"""Why did these tuples join, or not? The first question of every user.

The query's conditions are checked one by one on the values given, then what is known of
each tuple: whether it is in its window, came late, or has left. Tuples that have left are
not remembered, so the answer can be "they would have, if they arrived in time".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from penstock.errors import InputError
from penstock.model.arrival_time import ARRIVAL, given_schema
from penstock.model.duration import format_us
from penstock.model.keys import KeyKind, common_kind
from penstock.model.window import Window
from penstock.runtime.intake import event_times
from penstock.runtime.why_where import passes_filters, told_of, where_columns
from penstock.state.arena import Words
from penstock.state.keys import as_kind, key_words

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["Described", "Known", "Why", "explain", "explain_tuples"]


class Known(Enum):
    """What can be known of a tuple."""

    LIVE = "live"
    LATE = "late"
    BEHIND = "behind"
    KEYLESS = "keyless"
    FILTERED = "filtered"
    EXPIRED = "expired"
    NOT_SEEN = "not seen"
    MATCHED = "matched"
    UNTIMED = "untimed"


@dataclass(frozen=True)
class Described:
    """A tuple as the user describes it, and what became of it.

    ts: None if it had the time of its arrival, and is no longer there to tell it.
    row: an array of one value for each column.
    """

    stream: str
    ts: int | None
    key: tuple[object, ...]
    has_key: bool
    window: Window
    fate: Known
    row: Mapping[str, pa.Array]


@dataclass(frozen=True)
class Why:
    """joined: True, False, or None when it depends on what is no longer known.

    reasons: one sentence for each condition, those that failed first.
    """

    joined: bool | None
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        verdict = {True: "joined", False: "not joined", None: "not known"}[self.joined]
        return "\n".join([f"{verdict}:", *(f"  - {reason}" for reason in self.reasons)])


_LOST = (Known.LATE, Known.BEHIND, Known.NOT_SEEN)
_FATES = {
    Known.LIVE: "{stream}: has arrived and is kept",
    Known.LATE: "{stream}: arrived late, behind the watermark, and was dropped",
    Known.EXPIRED: "{stream}: no longer in its window: the watermark is past its time plus "
    "{window}; it has expired, or it would be late now",
    Known.BEHIND: "{stream}: not in its window, and the watermark has passed its time: it came "
    "late and was handed out, or it would be late now",
    Known.KEYLESS: "{stream}: without a key it is not kept",
    Known.FILTERED: "{stream}: it fails a predicate over its stream alone and is not kept",
    Known.MATCHED: "{stream}: not in its window: it has matched and is kept no more, or it has "
    "not arrived",
    Known.NOT_SEEN: "{stream}: no such tuple is in its window: it has not arrived",
    Known.UNTIMED: "{stream}: no such tuple is in its window: it has not arrived, or has left; "
    "when it arrived is not known",
}


def explain(
    tuples: list[Described], others: Sequence[str], where: Sequence[tuple[bool, str]] = ()
) -> Why:
    """Check the conditions of an inner equality join over time windows.

    others: the streams no tuple was given of; whether there is a fitting one is not known.
    where: of each further predicate, whether it holds, and the same in words.
    """
    failed = [text for holds, text in where if not holds]
    held = [text for holds, text in where if holds]
    keyless = [each for each in tuples if not each.has_key]
    for each in keyless:
        failed.append(f"{each.stream}: its key {each.key!r} is null or NaN, which equals nothing")
    first = tuples[0]
    if first.key and not keyless:
        for each in tuples[1:]:
            same = each.key == first.key
            text = f"{first.stream} {first.key!r} and {each.stream} {each.key!r}"
            (held if same else failed).append(
                f"keys are equal: {text}" if same else f"keys differ: {text}"
            )
    times = [(each.ts, each) for each in tuples if each.ts is not None]
    latest_ts, latest = max(times, key=lambda each: each[0], default=(0, None))
    for ts, each in times:
        if latest is None or each is latest:
            continue
        near = latest_ts <= each.window.ends(ts)
        (held if near else failed).append(
            f"{each.stream} is {_before(latest_ts - ts)} {latest.stream}, "
            f"{'within' if near else 'outside'} its window of {each.window}"
        )
    fates = {each.fate for each in tuples}
    known = [_FATES[each.fate].format(stream=each.stream, window=each.window) for each in tuples]
    if failed or fates & set(_LOST):
        bad = [text for text, each in zip(known, tuples, strict=True) if each.fate in _LOST]
        good = [text for text, each in zip(known, tuples, strict=True) if each.fate not in _LOST]
        return Why(False, tuple(failed + bad + held + good))
    known += [f"{other}: no tuple given; these join if one of it fits too" for other in others]
    return Why(True if fates == {Known.LIVE} and not others else None, tuple(held + known))


def _before(distance_us: int) -> str:
    return f"{format_us(distance_us)} before" if distance_us else "at the same time as"


def explain_tuples(join: Join, given: Mapping[str, Mapping[str, Any]]) -> Why:
    """Find the tuples a user describes, and explain them."""
    unknown = [name for name in given if name not in join.query.names]
    if unknown or len(given) < 2:
        raise InputError(
            f"why needs a tuple of two streams or more, got {list(given)}; "
            f"the streams are {join.query.names}"
        )
    described = []
    streams = [join.query.names.index(name) for name in given]
    for name, row in given.items():
        if not isinstance(row, Mapping):
            raise InputError(
                f"why needs the columns of a tuple of stream {name!r}, got {row!r}; "
                "give them as a mapping from name to value"
            )
        described.append(_describe(join, join.query.names.index(name), row, streams))
    rows = {stream: each.row for stream, each in zip(streams, described, strict=True)}
    others = [name for name in join.query.names if name not in given]
    why = explain(described, others, told_of(join.driver.binding, rows))
    if join.finished and why.joined is None:
        asked_late = "the join has finished and its windows are empty: ask before finish()"
        return Why(None, (asked_late, *why.reasons))
    return why


def _describe(join: Join, stream: int, row: Mapping[str, Any], given: Collection[int]) -> Described:
    query, binding = join.query, join.driver.binding
    name, schema = query.names[stream], binding.schemas[stream]
    time_column = query.streams[stream].time_column
    by_arrival = query.streams[stream].time is ARRIVAL
    needed = [*([] if by_arrival else [time_column]), *query.keys[stream]]
    needed += [name for name in where_columns(query, stream, given) if name not in needed]
    missing = [column for column in needed if column not in row]
    known = None if schema is None else given_schema(schema).names
    unknown = [column for column in row if known is not None and column not in known]
    if missing or unknown:
        raise InputError(
            f"cannot look up a tuple of stream {name!r}: missing {missing}, unknown {unknown}; "
            f"give at least {needed}"
        )
    try:
        arrays = {
            column: pa.array([value], None if schema is None else schema.field(column).type)
            for column, value in row.items()
        }
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"cannot read the tuple of stream {name!r}: {error}; give values of its column types"
        ) from error
    keys = [arrays[column] for column in query.keys[stream]]
    kinds = binding.key_kinds if schema is not None else _kinds(name, query.keys[stream], keys)
    ts = _arrival(join, stream, arrays) if by_arrival else _event_time(join, stream, arrays)
    _, present = key_words(keys, kinds, 1)
    window = query.windows[stream]
    has_key = present is None or bool(present[0])
    if schema is not None and _is_late(join, stream, arrays):
        fate = Known.LATE
    elif not passes_filters(binding, stream, arrays):
        fate = Known.FILTERED
    elif ts is None:
        fate = Known.UNTIMED if has_key else Known.KEYLESS
    elif window.ends(ts) < join.clock.watermark:
        fate = Known.EXPIRED
    elif len(_live(join, stream, ts, arrays)):
        fate = Known.LIVE
    elif stream in query.marked and len(query.given_out) == 1 and has_key:
        fate = Known.MATCHED
    elif ts < join.clock.watermark:
        fate = Known.BEHIND
    else:
        fate = Known.NOT_SEEN if has_key else Known.KEYLESS
    key = tuple(as_kind(each, kind)[0].as_py() for each, kind in zip(keys, kinds, strict=True))
    return Described(name, ts, key, has_key, window, fate, arrays)


def _kinds(stream: str, names: Sequence[str], keys: Sequence[pa.Array]) -> list[KeyKind]:
    """How the key of a stream that has not spoken would be compared."""
    return [
        common_kind([key.type], [f"{stream}.{name}"]) for key, name in zip(keys, names, strict=True)
    ]


def _event_time(join: Join, stream: int, row: Mapping[str, pa.Array]) -> int:
    column = join.query.streams[stream].time_column
    time = row[column]
    if not (pt.is_timestamp(time.type) or pt.is_int64(time.type)):
        raise InputError(
            f"the time of the tuple of stream {join.query.names[stream]!r} is "
            f"{time[0].as_py()!r}; give a datetime, or whole microseconds since 1970"
        )
    return event_times(join.query, stream, pa.RecordBatch.from_pydict(row)).latest


def _arrival(join: Join, stream: int, row: Mapping[str, pa.Array]) -> int | None:
    """When the newest of such tuples in the window arrived; None if there is none."""
    times = join.driver.windows.timestamps(stream, _live(join, stream, None, row))
    return int(times.max()) if len(times) else None


def _live(join: Join, stream: int, ts: int | None, row: Mapping[str, pa.Array]) -> Words:
    """Such tuples in the window: their sequence numbers. ts: None for any."""
    windows = join.driver.windows
    payload = windows.payloads[stream]
    if payload is None:
        return np.empty(0, np.int64)
    same = windows.live_sequences(stream)
    if ts is not None:
        same = same[windows.timestamps(stream, same) == ts]
    for column, value in row.items():
        if column in payload.columns:
            values = payload.take(column, same).to_pylist()
            same = same[np.array([each == value[0].as_py() for each in values], np.bool_)]
    return same


def _is_late(join: Join, stream: int, row: Mapping[str, pa.Array]) -> bool:
    table = join.late_rows[stream].table(join.driver.binding.schemas[stream])
    wanted = {column: value[0].as_py() for column, value in row.items()}
    return any(
        all(late[column] == value for column, value in wanted.items())
        for late in table.select(list(wanted)).to_pylist()
    )
