"""A tuple as a user describes it, and what became of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from penstock.engine.intake import event_times
from penstock.engine.words import tuple_words
from penstock.errors import InputError
from penstock.kernels.arena import Flags
from penstock.model.access import Equal
from penstock.model.arrival_time import ARRIVAL, given_schema
from penstock.model.binding import Binding
from penstock.model.keys import KeyKind, common_kind
from penstock.model.query import Query
from penstock.model.window import BoundWindow, TimeWindow, TumblingWindow, Window
from penstock.runtime.late import LateRows
from penstock.runtime.why.line import Line, line_of, same_values
from penstock.runtime.why.predicates_held import passes_filters, where_columns
from penstock.runtime.why.promise import promise_against
from penstock.runtime.why.shed_tuple import Shed, is_unprobed, may_be_forgotten, shed_of
from penstock.windows.key_words import as_kind, key_words
from penstock.windows.payload.storage import as_kept, kept_type

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["Described", "Known", "described", "fate_text"]


class Known(Enum):
    """What can be known of a tuple."""

    LIVE = "live"
    UNPROBED = "unprobed"
    WAITING = "waiting"
    LATE = "late"
    BEHIND = "behind"
    BEFORE = "before"
    KEYLESS = "keyless"
    FILTERED = "filtered"
    EXPIRED = "expired"
    LEFT = "left"
    NOT_SEEN = "not seen"
    MATCHED = "matched"
    UNTIMED = "untimed"
    SHED = "shed"
    FORGOTTEN = "forgotten"
    BROKEN = "broken"
    PURGED = "purged"


@dataclass(frozen=True)
class Described:
    """A tuple as the user describes it, and what became of it.

    number: which stream it is of. ts: None if it had the time of its arrival, and is gone now.
    row: an array of one value for each column, in kept types. line: what there is of its stream.
    index: where it is in that, None if it is not. of_key: which there have its key. shed: what is
    known of it, if it was. promise: by which it could go, if it could.
    """

    stream: str
    number: int
    ts: int | None
    key: tuple[object, ...]
    has_key: bool
    window: Window
    fate: Known
    row: Mapping[str, pa.Array]
    line: Line
    index: int | None
    of_key: Flags
    shed: Shed | None = None
    promise: str = ""


_FATES = {
    Known.LIVE: "has arrived and is kept",
    Known.UNPROBED: "has arrived and is kept, but did not look for partners when it came, to keep "
    "within the service rate: only what came after it has met it, and that order is not kept",
    Known.WAITING: "has arrived, and waits for the watermark to pass its time",
    Known.LATE: "arrived late, behind the watermark, and was dropped",
    Known.EXPIRED: "no longer in its window: {ended}; it has expired, or it would be late now",
    Known.LEFT: "no longer in its window of {window}: newer ones have pushed it out, or it came "
    "late and was handed out",
    Known.BEHIND: "not in its window, and the watermark has passed its time: it came late and was "
    "handed out, or it would be late now",
    Known.BEFORE: "before the begin of its window, {begin}: it takes no part",
    Known.KEYLESS: "without a key, or a value that where= compares, it is not kept",
    Known.FILTERED: "it fails a predicate over its stream alone and is not kept",
    Known.MATCHED: "not in its window: it has matched and is kept no more, or it has not arrived",
    Known.NOT_SEEN: "no such tuple is in its window: it has not arrived",
    Known.UNTIMED: "no such tuple is in its window: it has not arrived, or has left; when it "
    "arrived is not known",
    Known.SHED: "{shed}",
    Known.FORGOTTEN: "no such tuple is in its window: it was shed, which is not always remembered, "
    "or came late and was handed out, or has not arrived",
    Known.BROKEN: "its stream had promised not to bring it, and it was dropped",
    Known.PURGED: "not in its window: {promise}; so nothing that comes can meet it, and it was let "
    "go after it had looked for partners, or it has not arrived",
}


def fate_text(each: Described) -> str:
    """What became of a tuple, in words."""
    window = each.window
    begin = str(window).removeprefix("since ")
    shed = "" if each.shed is None else each.shed.reason
    text = _FATES[each.fate].format(
        window=window, begin=begin, ended=_ended(window), shed=shed, promise=each.promise
    )
    return f"{each.stream}: {text}"


def _ended(window: Window) -> str:
    match window:
        case TimeWindow():
            return f"the watermark is past its time plus {window}"
        case TumblingWindow():
            return "the watermark is past its slot"
        case BoundWindow():
            return "the watermark is past all that it could meet"
    return "the join has finished"


def described(join: Join, stream: int, row: Mapping[str, Any], given: Collection[int]) -> Described:
    """Find the tuple that a user describes. given: the streams that are asked about."""
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
            column: _one_value(value, None if schema is None else schema.field(column).type)
            for column, value in row.items()
        }
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"cannot read the tuple of stream {name!r}: {error}; give values of its column types"
        ) from error
    keys = [arrays[column] for column in query.keys[stream]]
    kinds = binding.key_kinds if schema is not None else _kinds(name, query.keys[stream], keys)
    _, present = key_words(keys, kinds, 1)
    has_key = present is None or bool(present[0])
    ts = None if by_arrival else _event_time(join, stream, arrays)
    line = line_of(join, stream, {*arrays, *query.keys[stream]})
    index = line.index(ts, arrays)
    if by_arrival and index is not None:
        ts = int(line.ts[index])
    of_key = line.same({name: arrays[name] for name in query.keys[stream]})
    shed, promise = None, ""
    if schema is not None and _is_among(join.late_rows[stream], arrays):
        fate = Known.LATE
    elif not passes_filters(binding, stream, arrays):
        fate = Known.FILTERED
    elif index is not None:  # also if an equal one has broken a promise
        fate = Known.LIVE if index < line.live else Known.WAITING
        if fate is Known.LIVE and is_unprobed(join, stream, index):
            fate = Known.UNPROBED
    elif schema is not None and _is_among(join.broken_rows[stream], arrays):
        fate = Known.BROKEN
    elif ts is None:
        fate = Known.UNTIMED if has_key else Known.KEYLESS
    else:
        has_left = _is_full(join, stream, int(of_key[: line.live].sum()))
        meets = has_key and _has_values(binding, stream, arrays)
        shed = shed_of(join, stream, ts, arrays)
        fate = _absent(query, stream, ts, join.clock.watermark, meets, has_left)
        if fate in (Known.NOT_SEEN, Known.BEHIND, Known.MATCHED):
            promise = promise_against(join, stream, keys)
        if shed is not None:
            fate = Known.SHED
        elif promise:
            fate = Known.PURGED
        elif fate in (Known.NOT_SEEN, Known.BEHIND) and may_be_forgotten(join, stream):
            fate = Known.FORGOTTEN
    key = tuple(as_kind(each, kind)[0].as_py() for each, kind in zip(keys, kinds, strict=True))
    window = query.windows[stream]
    return Described(
        name, stream, ts, key, has_key, window, fate, arrays, line, index, of_key, shed, promise
    )


def _has_values(binding: Binding, stream: int, arrays: Mapping[str, pa.Array]) -> bool:
    """Whether a tuple has a value for all that it must be found by, as far as that is given."""
    wanted = {
        name
        for word in binding.query.access.words[stream]
        for name in (
            word.columns
            if isinstance(word, Equal)
            else [column.name for column in word.expression.columns]
        )
    }
    if binding.schemas[stream] is None or not wanted <= set(arrays):
        return True
    _, keyed, ordered = tuple_words(binding, stream, arrays, 1)
    return all(flags is None or bool(flags[0]) for flags in (keyed, ordered))


def _absent(
    query: Query, stream: int, ts: int, watermark: int, has_key: bool, has_left: bool
) -> Known:
    """What became of a tuple that is neither in its window nor waits."""
    window = query.windows[stream]
    if ts < window.begin_us:
        return Known.BEFORE
    if window.ends(ts) < watermark:
        return Known.EXPIRED
    if has_left and ts < watermark:
        return Known.LEFT
    buries = stream in query.marked and len(query.given_out) == 1 and not window.rows
    if buries and has_key and not (query.counts and ts >= watermark):
        return Known.MATCHED
    if ts < watermark:
        return Known.BEHIND
    return Known.NOT_SEEN if has_key else Known.KEYLESS


def _is_full(join: Join, stream: int, of_key: int) -> bool:
    """Whether a window that counts is full, so that tuples have had to leave."""
    window = join.query.windows[stream]
    if window.arrivals:
        return join.gate.numbered > window.arrivals
    if window.per_key:
        return of_key >= window.rows
    return 0 < window.rows <= join.driver.windows.live(stream)


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


def _is_among(rows: LateRows, row: Mapping[str, pa.Array]) -> bool:
    for batch in rows.batches:
        same = np.ones(len(batch), np.bool_)
        for column, value in row.items():
            same &= same_values(as_kept(batch.column(column)), value)
        if same.any():
            return True
    return False


def _one_value(value: Any, data_type: pa.DataType | None) -> pa.Array:
    """A value as a column of one row, in the type that such columns are kept as."""
    if data_type is None:
        return as_kept(pa.array([value]))
    kept = kept_type(data_type)
    if isinstance(kept, pa.BaseExtensionType):
        storage = pa.array([value], kept.storage_type)
        return pa.ExtensionArray.from_storage(kept, storage)
    return pa.array([value], kept)
