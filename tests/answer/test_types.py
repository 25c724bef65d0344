"""Keys of every type are compared by value; input comes in any kind that Arrow imports."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from math import nan
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import penstock as ps
from penstock.model.keys import common_kind
from penstock.windows.key_words import key_words
from support.strategies import BLOBS_OF_ONE_HASH, FIRST, SECOND

pytestmark = pytest.mark.jit_off

QUERY = ps.WindowJoin([ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within="1 s")
STRINGS = ["", "a", "ä", "\0", "a\0", "twelve bytes", "more than twelve bytes"]
BLOBS = [text.encode() for text in STRINGS] + [b"\xff\xfe"]


def keyed(*keys: pa.Array, first_id: int = 0) -> pa.Table:
    """Rows of one instant with these key columns, called k, k1, k2, and an `id`."""
    columns = {f"k{number or ''}": key for number, key in enumerate(keys)}
    ids = pa.array(range(first_id, first_id + len(keys[0])), pa.int64())
    return pa.table({"ts": pa.array([7] * len(keys[0]), pa.int64()), **columns, "id": ids})


def pairs(result: pa.Table) -> list[tuple[int, int]]:
    result.validate(full=True)
    return sorted(zip(result["a_id"].to_pylist(), result["b_id"].to_pylist(), strict=True))


def equal_pairs(left: Sequence[Any], right: Sequence[Any]) -> list[tuple[int, int]]:
    """What SQL's `=` says; Python's agrees, but for null."""
    return [
        (i, j)
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if a is not None and b is not None and a == b
    ]


MIDNIGHT = dt.datetime(2024, 2, 29)
KEY_VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [0, 1, -1, 127, -128, None]),
    (pa.int16(), [0, 1, -1, 2**15 - 1, -(2**15), None]),
    (pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31), None]),
    (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), 2**32, None]),
    (pa.uint8(), [0, 1, 255, None]),
    (pa.uint16(), [0, 1, 65535, None]),
    (pa.uint32(), [0, 1, 2**32 - 1, None]),
    (pa.uint64(), [0, 1, 2**63, 2**64 - 1, None]),
    (pa.float16(), [0.0, -0.0, 1.5, nan, None]),
    (pa.float32(), [0.0, -0.0, 1.5, float("inf"), nan, None]),
    (pa.float64(), [0.0, -0.0, 5e-324, -1e308, float("-inf"), nan, None]),
    (pa.bool_(), [True, False, None]),
    (pa.string(), [*STRINGS, None]),
    (pa.large_string(), [*STRINGS, None]),
    (pa.string_view(), [*STRINGS, None]),
    (pa.binary(), [*BLOBS, None]),
    (pa.large_binary(), [*BLOBS, None]),
    (pa.binary_view(), [*BLOBS, None]),
    (pa.binary(4), [b"\0\0\0\0", b"abcd", b"abce", None]),
    (pa.decimal32(5, 2), [Decimal("0.00"), Decimal("1.10"), Decimal("-999.99"), None]),
    (pa.decimal64(15, 2), [Decimal("0.00"), Decimal("1.10"), Decimal("-1.10"), None]),
    (pa.decimal128(38, 4), [Decimal("0.0000"), Decimal("1.1000"), Decimal(10) ** 33, None]),
    (pa.decimal256(76, 0), [Decimal(0), Decimal(10) ** 70, -(Decimal(10) ** 70), None]),
    (pa.date32(), [dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    (pa.date64(), [dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), None]),
    (pa.time32("ms"), [dt.time(0), dt.time(23, 59, 59, 999000), None]),
    (pa.time64("us"), [dt.time(0), dt.time(23, 59, 59, 999999), None]),
    *((pa.timestamp(unit), [dt.datetime(1969, 7, 20), MIDNIGHT, None]) for unit in ("s", "ms")),
    *((pa.timestamp(unit, "UTC"), [MIDNIGHT, None]) for unit in ("us", "ns")),
    (pa.duration("us"), [dt.timedelta(0), dt.timedelta(days=-1), None]),
    (pa.dictionary(pa.int8(), pa.string()), [*STRINGS, None]),
    (pa.dictionary(pa.int32(), pa.int64()), [0, 5, -5, None]),
]


@pytest.mark.parametrize("index", ["hash", "buckets(3)", "scan"])
@pytest.mark.parametrize(
    ("key_type", "values"), KEY_VALUES, ids=[str(key_type) for key_type, _ in KEY_VALUES]
)
def test_every_type_of_key(key_type: pa.DataType, values: list[Any], index: str) -> None:
    left, right = values + values[:2], values[::-1]
    join = QUERY.start(indexes=index)
    first = join.push(a=keyed(array(left, key_type)))
    assert first.num_rows == 0
    result = join.push(b=keyed(array(right, key_type)))
    assert pairs(result) == equal_pairs(left, right)
    assert result.schema.field("a_k").type == key_type


def array(values: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    if pa.types.is_float16(data_type):
        values = [None if value is None else np.float16(value) for value in values]
    if pa.types.is_dictionary(data_type):
        return pa.array(values, data_type.value_type).dictionary_encode().cast(data_type)
    return pa.array(values, data_type)


SAME_KEYS = [
    ("int8 and int64", pa.int8(), pa.int64(), [1, -1, None, 127]),
    ("uint8 and int8", pa.uint8(), pa.int8(), [1, 0, None, 127]),
    ("uint32 and int64", pa.uint32(), pa.int64(), [1, 2**31, 2**32 - 1]),
    ("int16 and uint16", pa.int16(), pa.uint16(), [1, 2**15 - 1]),
    ("string and large_string", pa.string(), pa.large_string(), STRINGS),
    ("string and string_view", pa.string(), pa.string_view(), STRINGS),
    ("string and dictionary", pa.string(), pa.dictionary(pa.int32(), pa.string()), STRINGS),
    ("binary and large_binary", pa.binary(), pa.large_binary(), BLOBS),
    ("binary and fixed-size", pa.binary(), pa.binary(2), [b"ab", b"\0\0"]),
    ("float32 and float64", pa.float32(), pa.float64(), [0.0, 0.5, nan, float("inf")]),
    ("date32 and date64", pa.date32(), pa.date64(), [dt.date(1969, 1, 1), dt.date(2024, 2, 29)]),
    ("zones", pa.timestamp("us", "UTC"), pa.timestamp("us", "Asia/Tokyo"), [0, 1, None]),
    ("precisions", pa.decimal128(5, 2), pa.decimal128(9, 2), [Decimal("1.25"), Decimal(0)]),
    ("decimal widths", pa.decimal128(5, 2), pa.decimal256(50, 2), [Decimal("1.25"), Decimal(0)]),
]


@pytest.mark.parametrize(
    ("left", "right", "values"), [case[1:] for case in SAME_KEYS], ids=[c[0] for c in SAME_KEYS]
)
def test_types_that_hold_the_same_values(
    left: pa.DataType, right: pa.DataType, values: list[Any]
) -> None:
    for a, b in ((left, right), (right, left)):
        result = QUERY.start().push(a=keyed(array(values, a)), b=keyed(array(values, b)))
        assert pairs(result) == equal_pairs(values, values)
        assert (result.schema.field("a_k").type, result.schema.field("b_k").type) == (a, b)


OTHER_KEYS = [
    ("uint64 and int64", pa.uint64(), [2**64 - 1, 2**63, 5], pa.int64(), [-1, -(2**63), 5]),
    ("scales", pa.decimal128(5, 2), [Decimal("1.20")], pa.decimal128(5, 1), [Decimal("1.2")]),
    ("units", pa.timestamp("s"), [MIDNIGHT], pa.timestamp("us"), [MIDNIGHT]),
    ("int and float", pa.int64(), [2**53 + 1, 1], pa.float64(), [2.0**53, 1.0]),
    ("rounded", pa.float32(), [0.10000000149011612], pa.float64(), [0.1]),
    ("zone and none", pa.timestamp("us"), [0], pa.timestamp("us", "UTC"), [0]),
]


@pytest.mark.parametrize(
    ("left", "left_values", "right", "right_values"),
    [case[1:] for case in OTHER_KEYS],
    ids=[case[0] for case in OTHER_KEYS],
)
def test_types_that_differ_are_compared_by_value_or_refused(
    left: pa.DataType, left_values: list[Any], right: pa.DataType, right_values: list[Any]
) -> None:
    a, b = keyed(array(left_values, left)), keyed(array(right_values, right))
    refusal = ""
    try:
        result = QUERY.start().push(a=a, b=b)
    except ps.SchemaError as error:
        refusal = str(error)
    if refusal:
        assert f"a.k is {left}" in refusal
        assert f"b.k is {right}" in refusal
    else:
        assert pairs(result) == equal_pairs(left_values, right_values)


def test_keys_of_several_columns_and_types() -> None:
    query = ps.WindowJoin(
        [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on=["k", "k1", "k2"], within="0 s"
    )
    keys = [
        (number, text, day)
        for number in (1, 2, None)
        for text in ("", "x", "xy", None)
        for day in (1.0, -0.0, 0.0, nan)
    ]
    types = (pa.int32(), pa.string(), pa.float64())
    columns = [
        pa.array(column, kind) for column, kind in zip(zip(*keys, strict=True), types, strict=True)
    ]
    result = query.start().push(a=keyed(*columns), b=keyed(*columns))
    expected = [
        (i, j)
        for i, a in enumerate(keys)
        for j, b in enumerate(keys)
        if all(x is not None and x == y for x, y in zip(a, b, strict=True))
    ]
    assert pairs(result) == expected


def test_the_colliding_keys_do_collide() -> None:
    """Otherwise the tests that draw them would show nothing about collisions."""
    kind = common_kind([pa.binary()], ["k"])
    words, _ = key_words([pa.array(BLOBS_OF_ONE_HASH)], [kind], 2)
    assert len(set(words.tolist())) == 1
    kinds = [common_kind([each], ["k"]) for each in (pa.int64(), pa.uint64())]
    words, _ = key_words([pa.array(FIRST), pa.array(SECOND, pa.uint64())], kinds, 2)
    assert len(set(words.tolist())) == 1


def test_values_do_not_run_into_the_next_key_column() -> None:
    query = ps.WindowJoin(
        [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on=["k", "k1"], within="0 s"
    )
    left = keyed(pa.array(["a", "ab", "", "abc"]), pa.array(["bc", "c", "abc", ""]))
    result = query.start().push(a=left, b=left)
    assert pairs(result) == [(i, i) for i in range(4)]


def test_key_columns_may_be_named_differently_in_each_stream() -> None:
    query = ps.WindowJoin(
        [ps.Stream("a", time="ts"), ps.Stream("b", time="when")],
        on={"a": ["k", "id"], "b": ["key", "number"]},
        within="0 s",
    )
    b = keyed(pa.array([3, 4])).rename_columns(["when", "key", "number"])
    result = query.start().push(a=keyed(pa.array([3, 5])), b=b)
    assert result.column_names == [
        "a_ts",
        "a_k",
        "a_id",
        "b_when",
        "b_key",
        "b_number",
        "event_time",
    ]
    assert result.to_pylist() == [
        dict(zip(result.column_names, (7, 3, 0, 7, 3, 0, 7), strict=True))
    ]


def test_dictionary_keys_that_differ_from_batch_to_batch() -> None:
    """Equal codes are other values, and equal values other codes."""
    kind = pa.dictionary(pa.int8(), pa.string())
    join = QUERY.start()
    join.push(a=keyed(array(["x", "y"], kind)))
    result = join.push(
        a=keyed(array(["z", "x"], kind), first_id=2), b=keyed(array(["y", "x"], kind))
    )
    assert pairs(result) == [(0, 1), (1, 0), (3, 1)]


# What a user may hold in his hands.
ROWS = pa.table(
    {"ts": pa.array([1, 2], pa.int64()), "k": pa.array([1, 2], pa.int64()), "id": [0, 1]}
)


class Stream:
    """Anything with the Arrow C stream interface and nothing else."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return ROWS.__arrow_c_stream__(requested_schema)


class Batch:
    """Anything with the Arrow C array interface and nothing else."""

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return ROWS.to_batches()[0].__arrow_c_array__(requested_schema)


INPUTS: dict[str, Any] = {
    "Table": lambda: ROWS,
    "Table of many chunks": lambda: pa.concat_tables(
        [ROWS.slice(0, 1), ROWS.slice(0, 0), ROWS.slice(1)]
    ),
    "RecordBatch": lambda: ROWS.to_batches()[0],
    "RecordBatchReader": ROWS.to_reader,
    "pandas": ROWS.to_pandas,
    "polars": lambda: pl.from_arrow(ROWS),
    "C stream": Stream,
    "C array": Batch,
}


@pytest.mark.parametrize("kind", INPUTS)
def test_any_kind_of_input(kind: str) -> None:
    given = INPUTS[kind]()
    result = QUERY.start().push(a=given, b=ROWS)
    assert isinstance(result, pa.Table)
    assert pairs(result) == [(0, 0), (1, 1)]


def test_pandas_with_times_and_strings() -> None:
    """pandas counts time in nanoseconds and may keep an index."""
    times = pd.to_datetime(["2024-02-29 12:00", "2024-02-29 12:01"], utc=True)
    frame = pd.DataFrame({"ts": times, "k": ["x", "y"], "v": [1.5, None]}, index=[8, 9])
    query = ps.WindowJoin(
        [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within="1 s"
    )
    result = query.start().push(a=frame, b=frame)
    assert result.num_rows == 2
    assert result.schema.field("event_time").type == pa.timestamp("us", "UTC")
    assert sorted(result["a_k"].to_pylist()) == ["x", "y"]


def test_polars_with_times_and_strings() -> None:
    times = [MIDNIGHT, MIDNIGHT + dt.timedelta(seconds=1)]
    frame = pl.DataFrame({"ts": times, "k": ["x", "y"], "v": [[1, 2], None]})
    result = QUERY.start().push(a=frame, b=frame)
    assert sorted(result["b_k"].to_pylist()) == ["x", "y"]
    assert sorted(map(repr, result["a_v"].to_pylist())) == ["None", "[1, 2]"]


def test_the_empty_answer_is_typed() -> None:
    join = QUERY.start(
        schemas={"a": ROWS.schema, "b": ROWS.schema.append(pa.field("v", pa.string()))}
    )
    result = join.push(a=ROWS)
    assert (type(result), result.num_rows) == (pa.Table, 0)
    names = ["a_ts", "a_k", "a_id", "b_ts", "b_k", "b_id", "b_v", "event_time"]
    assert result.column_names == names
    assert result.schema.field("b_v").type == pa.string()
    assert join.finish().schema == result.schema
    assert join.late()["b"].column_names == ["ts", "k", "id", "v"]


def test_select_picks_and_renames() -> None:
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    renamed = ps.WindowJoin(streams, on="k", within="1 s", select={"left": "a.id", "key": "b.k"})
    result = renamed.start().push(a=ROWS, b=ROWS)
    assert result.column_names == ["left", "key", "event_time"]
    assert sorted(map(tuple, (row.values() for row in result.to_pylist()))) == [
        (0, 1, 1),
        (1, 2, 2),
    ]
    listed = ps.WindowJoin(streams, on="k", within="1 s", select=["b.id", "a.ts"])
    assert listed.start().push(a=ROWS, b=ROWS).column_names == ["b_id", "a_ts", "event_time"]


@pytest.mark.jit_off
def test_keys_of_a_dictionary_of_views() -> None:
    """As polars gives a Categorical."""
    kind = pa.dictionary(pa.uint32(), pa.string_view())
    keys = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None], pa.uint32()), pa.array(["x", "y"], pa.string_view())
    )
    query = ps.WindowJoin(
        [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within="9 us"
    )
    encoded = pa.table({"ts": [1, 2, 3], "k": keys})
    plain = pa.table({"ts": [1, 2, 3], "k": ["y", "x", "z"]})
    result = query.start().push(a=encoded, b=plain)
    assert result.schema.field("a_k").type == kind
    assert sorted(result["b_k"].to_pylist()) == ["x", "y"]
