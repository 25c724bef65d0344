"""Punctuations as they come: rows of a stream that are marked, and patterns that a call names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Intake
from penstock.engine.promises.closing import Closing
from penstock.engine.promises.wide import WideClosing
from penstock.errors import InputError
from penstock.kernels.arena import Words
from penstock.model.binding import Binding
from penstock.model.keys import value_type
from penstock.model.punctuation import OneOf, Pattern, Range
from penstock.windows.key_words import key_words
from penstock.windows.payload.storage import as_kept

__all__ = ["Marked", "closings_of", "split", "wild_patterns"]


class Marked(NamedTuple):
    """tuples: the rows of a batch that are no punctuations; None if all are. closings: what the
    others promise. rows: how many others. unusable: how many of them name no key."""

    tuples: Words | None = None
    closings: Sequence[Closing | WideClosing] = ()
    rows: int = 0
    unusable: int = 0


def split(binding: Binding, stream: int, intake: Intake) -> Marked:
    """The tuples of a batch, and its punctuations. The time of both moves the watermark."""
    column = binding.query.streams[stream].punctuation
    if column is None:
        return Marked()
    marks = intake.batch.column(column).fill_null(False).to_numpy(zero_copy_only=False)
    if not marks.any():
        return Marked()
    rows, tuples = np.flatnonzero(marks), np.flatnonzero(~marks)
    chosen = pa.array(rows)
    columns = [
        as_kept(intake.batch.column(name)).take(chosen) for name in binding.query.keys[stream]
    ]
    words, present = key_words(columns, binding.key_kinds, len(rows))
    closing = Closing(stream, words, columns, intake.ts[rows])
    if present is None:
        return Marked(tuples, [closing], len(rows))
    patterns = wild_patterns(binding, stream, columns, intake.ts[rows])
    wide = [each for key, at in patterns for each in closings_of(binding, stream, dict(key), at)]
    named = closing.taken(np.flatnonzero(present))
    unusable = len(rows) - int(present.sum()) - sum(patterns.values())
    return Marked(tuples, [named, *wide], len(rows), unusable)


def wild_patterns(
    binding: Binding, stream: int, key: Sequence[pa.Array], ts: Words
) -> Counter[tuple[tuple[tuple[str, Any], ...], int]]:
    """What punctuations with a null in their key say, how often: a column that is null is left out,
    and means any value. One with nothing but nulls says nothing."""
    names = binding.query.keys[stream]
    nulls = np.stack([column.is_null().to_numpy(zero_copy_only=False) for column in key])
    some = np.flatnonzero(nulls.any(axis=0) & ~nulls.all(axis=0))
    patterns: Counter[tuple[tuple[tuple[str, Any], ...], int]] = Counter()
    for row in some.tolist():
        values = [(name, column[row].as_py()) for name, column in zip(names, key, strict=True)]
        given = tuple(each for each in values if each[1] is not None)
        if not any(value != value for _, value in given):  # noqa: PLR0124  # NaN is no value
            patterns[given, int(ts[row])] += 1
    return patterns


def closings_of(
    binding: Binding, stream: int, given: Mapping[str, Any], at: int
) -> list[Closing | WideClosing]:
    """What a punctuation of these columns closes; nothing if it says nothing about a key."""
    name, schema = binding.query.names[stream], binding.schemas[stream]
    if schema is None:
        raise InputError(
            f"the columns of stream {name!r} are not known yet; push a batch of it first, or give "
            "start(schemas=)"
        )
    unknown = [column for column in given if column not in schema.names]
    if unknown:
        raise InputError(
            f"stream {name!r} has no columns {unknown}; its columns are {schema.names}"
        )
    key = binding.query.keys[stream]
    if any(column not in key for column in given) or Pattern(key, given).is_empty:
        return []
    types = {column: value_type(schema.field(column).type) for column in key}
    try:
        fitted = {column: _fitted(value, types[column]) for column, value in given.items()}
        pattern = Pattern(key, fitted)
        if not pattern.is_of_keys:
            return [WideClosing(stream, pattern, at)]
        table = pa.Table.from_pylist(pattern.keys(), pa.schema(types))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _unfit(binding, stream, error) from error
    columns = [as_kept(table.column(column).combine_chunks()) for column in key]
    words, present = key_words(columns, binding.key_kinds, len(table))
    named = Closing(stream, words, columns, np.full(len(words), at))
    named = named if present is None else named.taken(np.flatnonzero(present))
    return [named] if len(named.words) else []


def _fitted(wanted: Any, kind: pa.DataType) -> Any:
    """What a pattern says of a column, in values that the column may have."""
    if isinstance(wanted, Range):
        ends = (wanted.low, wanted.high)
        return Range(*(None if each is None else _exactly(each, kind) for each in ends))
    if isinstance(wanted, OneOf):
        return OneOf([_exactly(each, kind) for each in wanted.values])
    return None if wanted is None else _exactly(wanted, kind)


def _exactly(value: Any, kind: pa.DataType) -> Any:
    """A value as it is in a column; refused if it is another one there."""
    found = pa.scalar(value, kind).as_py()
    if isinstance(value, datetime) and isinstance(found, datetime) and value.tzinfo is None:
        same = found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
    else:
        same = found
    if same != value:
        raise ValueError(f"{value!r} would be {found!r} there")
    return found


def _unfit(binding: Binding, stream: int, error: Exception) -> InputError:
    schema = binding.schemas[stream]
    assert schema is not None, "a stream that is not known has been refused"
    types = ", ".join(
        f"{column} {schema.field(column).type}" for column in binding.query.keys[stream]
    )
    return InputError(
        f"a punctuation of stream {binding.query.names[stream]!r} does not fit the types of its "
        f"key ({types}): {error}"
    )
