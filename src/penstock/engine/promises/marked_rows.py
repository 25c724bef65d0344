"""Punctuations as they come: rows of a stream that are marked, and patterns that a call names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.arrivals import Intake
from penstock.engine.promises.closing import Closing
from penstock.engine.promises.wide import WideClosing
from penstock.errors import InputError
from penstock.model.binding import Binding
from penstock.model.punctuation import Pattern
from penstock.windows.key_words import key_words
from penstock.windows.payload.storage import as_kept, take_rows

__all__ = ["Marked", "closing_of", "split"]


class Marked(NamedTuple):
    """intake: the rows of a batch that are tuples. closing: what the others promise; None if there
    are none. rows: how many others. unusable: how many of them have a null in their key."""

    intake: Intake
    closing: Closing | None = None
    rows: int = 0
    unusable: int = 0


def split(binding: Binding, stream: int, intake: Intake) -> Marked:
    """The tuples of a batch, and its punctuations. The time of both moves the watermark."""
    column = binding.query.streams[stream].punctuation
    if column is None:
        return Marked(intake)
    marks = intake.batch.column(column).fill_null(False).to_numpy(zero_copy_only=False)
    if not marks.any():
        return Marked(intake)
    rows, others = np.flatnonzero(marks), np.flatnonzero(~marks)
    tuples = intake._replace(batch=take_rows(intake.batch, others), ts=intake.ts[others])
    batch = take_rows(intake.batch, rows)
    columns = [as_kept(batch.column(name)) for name in binding.query.keys[stream]]
    words, present = key_words(columns, binding.key_kinds, len(rows))
    closing = Closing(stream, words, columns, intake.ts[rows])
    if present is None:
        return Marked(tuples, closing, len(rows))
    closing = closing.taken(np.flatnonzero(present))
    return Marked(tuples, closing, len(rows), int(len(rows) - present.sum()))


def closing_of(
    binding: Binding, stream: int, given: Mapping[str, Any], at: int
) -> Closing | WideClosing | None:
    """What a punctuation of these columns closes; None if it says nothing about a key."""
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
    if any(column not in key for column in given):
        return None
    pattern = Pattern(key, given)
    if pattern.is_empty:
        return None
    try:
        if not pattern.is_of_keys:
            closing = WideClosing(stream, pattern, at)
            closing.matches([as_kept(pa.nulls(1, schema.field(column).type)) for column in key])
            return closing
        fields = pa.schema([schema.field(column) for column in key])
        table = pa.Table.from_pylist(pattern.keys(), fields)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise _unfit(binding, stream, error) from error
    except (TypeError, OverflowError) as error:
        raise _unfit(binding, stream, error) from error
    columns = [as_kept(table.column(column).combine_chunks()) for column in key]
    words, present = key_words(columns, binding.key_kinds, len(table))
    named = Closing(stream, words, columns, np.full(len(words), at))
    return named if present is None else named.taken(np.flatnonzero(present))


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
