"""Spark DataFrames, cut to a number of rows of each key, on Spark.

                 +-- group by key, count --> counts --> the choice, on the driver
    DataFrame ---+-- semi join with the keys kept whole, broadcast ------------------+
                 +-- join with the keys kept in part, broadcast -- row_number <= n --+-- union

Only counts by key come to the driver. Rows of keys that are kept whole stay in the partition they
are in; those of keys in part, of which there are one or two in a best choice, are put in order, by
their contents, since Spark has no order of rows that could be reproduced.

What a DataFrame can do is asked of it by its own methods and in SQL: so nothing of Spark is
imported, and classic DataFrames and those of Connect are alike. Columns go by the numbers of their
places meanwhile, for their names may be anything, also twice the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import and_
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.errors import InputError, SchemaError
from penstock.lab.static.components import Ints
from penstock.lab.static.key_numbers import check_columns

__all__ = ["FrameRows", "is_frame", "rows_of_frames"]

_KEPT: Final = "kept"
_Flags: TypeAlias = npt.NDArray[np.bool_]

# Types of keys, by Spark's names; those with the same name here can equal each other.
_KEYS: Final = {
    **dict.fromkeys(("byte", "short", "integer", "long"), "integer"),
    **dict.fromkeys(("float", "double"), "floating"),
    **{
        name: name
        for name in (
            *("boolean", "decimal", "string", "binary"),
            *("date", "time", "timestamp", "timestamp_ntz", "daytimeinterval"),
        )
    },
}
# Types that Spark does not put in order, or of which it takes different values for equal.
_WITHOUT_ORDER: Final = {"map", "variant", "interval", "collated"}
_WITHOUT_JSON: Final = {"geometry", "geography"}
_JSON_OPTIONS: Final = "map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX')"


def is_frame(given: Any) -> bool:
    """Whether this is a Spark DataFrame, found out without Spark."""
    return hasattr(given, "mapInArrow") and hasattr(given, "sparkSession")


def rows_of_frames(frames: Mapping[str, Any], columns: list[str]) -> list[FrameRows]:
    """Both DataFrames, by 'left' and 'right', checked without a job on Spark."""
    for name, frame in frames.items():
        check_columns(name, frame.columns, columns)
        if frame.isStreaming:
            raise InputError(
                f"{name} is a streaming DataFrame, and what to keep is known when all of it has "
                f"been counted; give a batch DataFrame, or limits= to a join of streams"
            )
    for column in columns:
        kinds = [frame.schema[column].dataType for frame in frames.values()]
        names = [_name_of_key(kind) for kind in kinds]
        if names[0] is None or names[0] != names[1]:
            raise SchemaError(
                f"column {column!r} must be of one type in both DataFrames, one that has equality "
                f"and no collation, got {' and '.join(kind.simpleString() for kind in kinds)}; "
                f"cast one to the type of the other"
            )
    return [FrameRows(frame, columns) for frame in frames.values()]


class FrameRows:
    """A Spark DataFrame. It is read to count, and again when what is kept of it is."""

    def __init__(self, frame: Any, columns: list[str]) -> None:
        self._frame, self._names = frame, frame.columns
        self._types = [field.dataType for field in frame.schema.fields]
        self._places = [self._names.index(column) for column in columns]
        self._keys = [f"key_{number}" for number in range(len(columns))]
        self._keyed = self._with_keys()
        self._counts = self._keyed.groupBy(*self._keys).count().toDF(*self._keys, _KEPT)
        self._counted = pa.table({})

    def counted(self) -> tuple[pa.Table, Ints]:
        self._counted = self._counts.toArrow()
        return self._counted.select(self._keys), self._counted.column(_KEPT).to_numpy()

    def cut(self, numbers: Ints, kept: Ints) -> Any:
        """Rows of keys in part are the first by their contents, column by column in the order of
        the columns' names, nulls last."""
        keep, there = kept[numbers], self._counted.column(_KEPT).to_numpy()
        if (keep == there).all():
            return self._frame
        pieces = []
        whole, part = (keep > 0) & (keep == there), (keep > 0) & (keep < there)
        if whole.any():
            pieces.append(self._of_keys(keep, whole, "left_semi"))
        if part.any():
            # That it is at most a fixed number lets Spark drop rows before they are shuffled.
            few = f"place <= {keep[part].max()} AND place <= {_KEPT}"
            rows = self._of_keys(keep, part, "inner")
            pieces.append(rows.selectExpr("*", f"{self._place()} AS place").where(few))
        if not pieces:
            return self._frame.limit(0)
        columns = [f"column_{place}" for place in range(len(self._names))]
        plain = [piece.select(*columns) for piece in pieces]
        return reduce(lambda one, other: one.union(other), plain).toDF(*self._names)

    def _with_keys(self) -> Any:
        """Columns by their places, and those of the key again, null where a row equals nothing."""
        matched = [f"column_{place} IS NOT NULL" for place in self._places]
        matched += [
            f"NOT isnan(column_{place})"
            for place in self._places
            if self._types[place].typeName() in {"float", "double"}
        ]
        # A single column is null where it equals nothing, unless it can be NaN.
        case = f"CASE WHEN {' AND '.join(matched)} THEN %s END" if len(matched) > 1 else "%s"
        keys = (
            f"{case % f'column_{place}'} AS {key}"
            for place, key in zip(self._places, self._keys, strict=True)
        )
        columns = (f"column_{place}" for place in range(len(self._names)))
        return self._frame.toDF(*columns).selectExpr("*", *keys)

    def _of_keys(self, keep: Ints, chosen: _Flags, how: str) -> Any:
        """The rows of some keys, joined with how many of them to keep."""
        few = self._counted.select(self._keys).append_column(_KEPT, pa.array(keep))
        few = few.filter(pa.array(chosen))
        # Rows that equal nothing have null for a key, which is to equal null only here.
        with_null = bool(few.column(0).null_count)
        others = [f"other_{number}" for number in range(len(self._keys))]
        broadcast = (
            self._frame.sparkSession.createDataFrame(few, self._counts.schema)
            .toDF(*others, _KEPT)
            .hint("broadcast")
        )
        pairs = [
            (self._keyed[key], broadcast[other])
            for key, other in zip(self._keys, others, strict=True)
        ]
        equal = [one.eqNullSafe(other) if with_null else one == other for one, other in pairs]
        return self._keyed.join(broadcast, reduce(and_, equal), how)

    def _place(self) -> str:
        """The place of a row among those of its key, in SQL."""
        order = []
        for place in sorted(range(len(self._names)), key=lambda place: self._names[place]):
            kinds = set(_kinds(self._types[place]))
            if kinds & _WITHOUT_JSON:
                continue
            value = f"column_{place}"
            if kinds & _WITHOUT_ORDER:
                value = f"to_json(struct({value}), {_JSON_OPTIONS})"
            order.append(f"{value} NULLS LAST")
        return (
            f"row_number() OVER (PARTITION BY {', '.join(self._keys)} ORDER BY {', '.join(order)})"
        )


def _name_of_key(kind: Any) -> str | None:
    """One name for the types whose values can equal each other; None for those without equality."""
    name: str = kind.typeName()
    if name not in _KEYS or "collated" in _kinds(kind):
        return None
    if name == "decimal":
        return str(kind.simpleString())
    return _KEYS[name]


def _kinds(kind: Any) -> Iterator[str]:
    """The names of a Spark type and of all in it."""
    yield kind.typeName()
    if getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        yield "collated"
    inner = [getattr(kind, name, None) for name in ("elementType", "keyType", "valueType")]
    inner += [field.dataType for field in getattr(kind, "fields", [])]
    for each in inner:
        if each is not None:
            yield from _kinds(each)
