"""Values that are kept and looked up again: in snapshots, by key, and by `why`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from math import nan
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps

pytestmark = pytest.mark.jit_off

SMALL = pa.dictionary(pa.int8(), pa.string())
COUNTED = ps.WindowJoin(
    [ps.Stream("a", time="ts", window="1000 rows"), ps.Stream("b", time="ts", window="1000 rows")],
    on="k",
)
TIMED = ps.WindowJoin([ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within="1 s")


def encoded(first: int, *, ordered: bool = False) -> pa.DictionaryArray:
    """A hundred values, numbered in 8 bits."""
    values = pa.array([f"value {number}" for number in range(first, first + 100)])
    indices = pa.array(range(100), pa.int8())
    return pa.DictionaryArray.from_arrays(indices, values, ordered=ordered)


def of(values: pa.Array | pa.ChunkedArray, key: int = 0) -> pa.Table:
    ids = range(key, key + len(values))
    return pa.table({"ts": pa.array(ids, pa.int64()), "k": pa.array(ids, pa.int64()), "p": values})


@pytest.mark.parametrize("ordered", [False, True])
def test_waiting_tuples_of_small_dictionaries_are_saved(ordered: bool) -> None:
    join = COUNTED.start()
    for first in (0, 100):
        join.push(a=of(encoded(first, ordered=ordered), first))
    join = COUNTED.restore(join.snapshot())
    parts = [join.push(b=of(encoded(0, ordered=ordered)))]
    parts.append(join.push(b=of(encoded(100, ordered=ordered), 100)))
    found = pa.concat_tables([*parts, join.finish()])
    found.validate(full=True)
    assert found.schema.field("a_p").type == pa.dictionary(pa.int8(), pa.string(), ordered)
    assert sorted(found["a_p"].to_pylist()) == sorted(f"value {number}" for number in range(200))
    assert found["a_p"].to_pylist() == found["b_p"].to_pylist()


def test_ordered_dictionaries_keep_the_order_of_their_values() -> None:
    values = pa.DictionaryArray.from_arrays(
        pa.array([2, None, 0, 2], pa.int8()), pa.array(["low", "middle", "high"]), ordered=True
    )
    found = TIMED.start().push(a=of(values), b=of(values))
    (chunk,) = found["a_p"].chunks
    assert chunk.to_pylist() == ["high", None, "low", "high"]
    assert chunk.dictionary.to_pylist() == ["low", "high"]
    assert chunk.type == values.type


@pytest.mark.parametrize("ordered", [False, True])
def test_a_table_whose_dictionaries_do_not_fit_into_one_is_refused(ordered: bool) -> None:
    pieces = [encoded(first, ordered=ordered) for first in (0, 100)]
    join = TIMED.start()
    with pytest.raises(ps.InputError, match=r"dictionary-encoded columns are \['p'\]; give them"):
        join.push(a=of(pa.chunked_array(pieces)))
    assert join.metrics.streams["a"].arrived == 0
    for number, piece in enumerate(pieces):
        join.push(a=of(piece, 100 * number))
    assert join.metrics.live == 200


@pytest.mark.parametrize("nested", [False, True])
def test_a_dictionary_of_dictionaries_is_refused(nested: bool) -> None:
    inner: pa.Array = pa.array(["x", "y"]).dictionary_encode()
    outer: pa.Array = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), inner)
    values = pa.StructArray.from_arrays([outer], ["field"]) if nested else outer
    join = TIMED.start()
    with pytest.raises(ps.SchemaError, match=r"of dictionaries.*decode it first"):
        join.push(a=of(values))
    with pytest.raises(ps.SchemaError, match="dictionary of dictionaries"):
        TIMED.start(schemas={"a": of(values).schema})


def test_rows_per_key_of_zones_that_differ() -> None:
    """With a key of several columns, which is registered by value."""
    query = ps.WindowJoin(
        [ps.Stream(name, time="ts", window="2 rows per key") for name in "ab"], on=["t", "k"]
    )

    def table(zone: str, times: Sequence[int]) -> pa.Table:
        ids = pa.array(times, pa.int64())
        columns = {"ts": ids, "t": ids.cast(pa.timestamp("us", zone)), "k": ["x"] * len(times)}
        return pa.table(columns)

    join = query.start()
    parts = [join.push(b=table("Asia/Tokyo", [1, 2])), join.push(a=table("UTC", [2, 3]))]
    join = query.restore(join.snapshot())
    parts += [join.push(b=table("Asia/Tokyo", [3, 4])), join.finish()]
    assert [time for part in parts for time in part["event_time"].to_pylist()] == [2, 3]


PAYLOADS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [1, None]),
    "uint64": (pa.uint64(), [2**64 - 1, None]),
    "float16": (pa.float16(), [np.float16(1.5), np.float16(nan), None]),
    "float32": (pa.float32(), [0.1, nan, None]),
    "float64": (pa.float64(), [0.1, nan, -0.0, None]),
    "bool": (pa.bool_(), [True, False, None]),
    "null": (pa.null(), [None]),
    "string": (pa.string(), ["x", "", None]),
    "large_string": (pa.large_string(), ["x", None]),
    "string_view": (pa.string_view(), ["x", "more than twelve bytes", None]),
    "binary": (pa.binary(), [b"x", None]),
    "binary_view": (pa.binary_view(), [b"x", b"more than twelve bytes", None]),
    "binary(2)": (pa.binary(2), [b"xy", None]),
    "decimal": (pa.decimal128(10, 2), [Decimal("1.10"), None]),
    "decimal256": (pa.decimal256(60, 2), [Decimal("1.10"), None]),
    "date32": (pa.date32(), [dt.date(2024, 2, 29), None]),
    "date64": (pa.date64(), [dt.date(2024, 2, 29), None]),
    "time": (pa.time64("us"), [dt.time(1, 2, 3), None]),
    "timestamp": (pa.timestamp("ms", "Asia/Tokyo"), [dt.datetime(2024, 2, 29), None]),
    "duration": (pa.duration("s"), [dt.timedelta(seconds=5), None]),
    "interval": (pa.month_day_nano_interval(), [(1, 2, 3), None]),
    "dictionary": (SMALL, ["x", None]),
    "numbers, encoded": (pa.dictionary(pa.int8(), pa.float64()), [1.5, nan, None]),
    "ordered": (pa.dictionary(pa.int8(), pa.string(), ordered=True), ["x", None]),
    "run ends": (pa.run_end_encoded(pa.int32(), pa.string()), ["x", None]),
    "run ends of floats": (pa.run_end_encoded(pa.int32(), pa.float64()), [1.5, nan, None]),
    "list": (pa.list_(pa.float64()), [[1.5, None], [nan], [], None]),
    "list of views": (pa.list_(pa.string_view()), [["x", None], None]),
    "fixed list": (pa.list_(pa.int64(), 2), [[1, 2], None]),
    "struct": (pa.struct([("x", pa.float64()), ("y", pa.string())]), [{"x": nan, "y": "z"}, None]),
    "map": (pa.map_(pa.string(), pa.float64()), [[("x", nan)], None]),
    "uuid": (pa.uuid(), [b"sixteen bytes, y", None]),
}


def column(data_type: pa.DataType, values: Sequence[Any]) -> pa.Array:
    if pa.types.is_run_end_encoded(data_type):
        return pc.run_end_encode(pa.array(values, data_type.value_type))
    if isinstance(data_type, pa.BaseExtensionType):
        storage = pa.array(values, data_type.storage_type)
        return pa.ExtensionArray.from_storage(data_type, storage)
    return pa.array(values, data_type)


@pytest.mark.parametrize("window", ["1 second", "10 rows", "10 arrivals", "late"])
@pytest.mark.parametrize("name", PAYLOADS)
def test_why_finds_a_tuple_whatever_its_columns_are(name: str, window: str) -> None:
    data_type, values = PAYLOADS[name]
    within = "1 second" if window == "late" else window
    query = ps.WindowJoin([ps.Stream(each, time="ts", window=within) for each in "ab"], on="k")
    tuples = of(column(data_type, values))
    join = query.start()
    if window == "late":
        for each in "ab":
            join.advance(each, 10)
    join.push(a=tuples, b=tuples)
    for number, each in enumerate(values):
        row = {"ts": number, "k": number, "p": each}
        told = join.why(a=row, b=row)
        if window == "late":
            assert "arrived late" in str(told)
            continue
        assert told.joined is (True if window == "1 second" else told.joined)
        assert told.joined is not False
        assert str(told).count("has arrived") == 2
        other = values[number - 1]
        if len(values) > 1:
            absent = join.why(a={**row, "p": other}, b=row)
            assert absent.joined is False
            assert str(absent).count("has arrived") == 1


@pytest.mark.parametrize(
    ("first", "unit"),
    [
        (1_700_000_000, "seconds"),
        (1_700_000_000_000, "milliseconds"),
        (0, None),
        (1 << 50, None),
        (-1_700_000_000, None),
    ],
)
def test_integer_times_that_look_like_another_unit_are_warned_of_once(
    first: int, unit: str | None, recwarn: pytest.WarningsRecorder
) -> None:
    join = TIMED.start()

    def times(*ts: int) -> pa.Table:
        return pa.table({"ts": pa.array(ts, pa.int64()), "k": pa.array([1] * len(ts), pa.int64())})

    join.push(a=times())
    for step in range(3):
        join.push(a=times(first + step, first + step + 60))
    told = [str(each.message) for each in recwarn if each.category is ps.InputWarning]
    assert len(told) == (unit is not None)
    if unit is not None:
        assert [each.filename for each in recwarn if each.category is ps.InputWarning] == [__file__]
        assert f"if these are {unit}, multiply them by 1,000" in told[0]
        assert "time column 'ts' of stream 'a' lies in early 1970" in told[0]
    assert join.metrics.streams["a"].arrived == 6


def test_a_warning_that_is_an_error_changes_nothing() -> None:
    join = TIMED.start()
    seconds = pa.table({"ts": pa.array([1_700_000_000], pa.int64()), "k": [1]})
    with pytest.raises(ps.InputWarning):
        join.push(a=seconds)
    assert join.metrics.streams["a"].arrived == 0
    stamps = pa.table({"ts": pa.array([1_700_000_000], pa.timestamp("us")), "k": [1]})
    join.push(a=stamps)
    assert join.metrics.streams["a"].arrived == 1
