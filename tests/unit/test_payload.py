"""Payload of every Arrow type comes out of the join unchanged, in value and in type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from math import nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps

pytestmark = pytest.mark.jit_off

STREAMS = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
QUERY = ps.WindowJoin(STREAMS, on="k", within="1 s")
LONG = "a string too long to live inside its view"


class Celsius(pa.ExtensionType):  # type: ignore[misc]  # pyarrow carries no types
    """A type of the user's own."""

    def __init__(self) -> None:
        super().__init__(pa.float32(), "penstock.tests.celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Celsius:
        return cls()


pa.register_extension_type(Celsius())


def _numbers() -> Iterator[pa.Array]:
    yield pa.nulls(6)
    yield pa.array([True, None, False, True, True, None])
    signed = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    unsigned = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    for kind in (*signed, *unsigned):
        yield pa.array([1, None, 0, 100, 2, 3], kind)
    yield pa.array([np.float16(value) for value in (0, -0.0, 1.5, nan, 6e4, 0.1)], pa.float16())
    for kind in (pa.float32(), pa.float64()):
        yield pa.array([0.1, None, -0.0, nan, 1e30, 3], kind)
    decimals = (pa.decimal32(5, 2), pa.decimal64(9, 2), pa.decimal128(20, 2), pa.decimal256(60, 2))
    for kind in decimals:
        yield pa.array([*map(Decimal, ("1.25", "-9.99", "0", "1", "999")), None], kind)


def _times() -> Iterator[pa.Array]:
    for kind in (pa.date32(), pa.time32("s"), pa.time32("ms")):
        yield pa.array([0, None, 1, 2, 3, 86_399], pa.int32()).cast(kind)
    yield pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1), None, None, None], pa.date64())
    units = ("s", "ms", "us", "ns")
    stamps = [pa.timestamp(unit, zone) for unit in units for zone in (None, "Asia/Tokyo")]
    durations = [pa.duration(unit) for unit in units]
    for kind in (pa.time64("us"), pa.time64("ns"), *stamps, *durations):
        yield pa.array([0, None, 5_000, 86_399_000, 7_000, 8_000], pa.int64()).cast(kind)
    months = [(1, 2, 3), None, (-1, 0, 5), (0, 0, 0), (9, 9, 9), None]
    yield pa.array(months, pa.month_day_nano_interval())


def _bytes() -> Iterator[pa.Array]:
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield pa.array(["x", None, "", LONG, "é", LONG + LONG], kind)
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield pa.array([b"x", None, b"", LONG.encode(), b"\xff\0", b"y"], kind)
    yield pa.array([b"abc", None, b"\0\0\0", b"xyz", b"123", None], pa.binary(3))


def _nested() -> Iterator[pa.Array]:
    item = pa.int32()
    lists = (pa.list_(item), pa.large_list(item), pa.list_view(item), pa.large_list_view(item))
    for kind in lists:
        yield pa.array([[1], None, [], [2, None, 3], [4], [5, 6]], kind)
    yield pa.array([[1, 2], None, [3, None], [4, 5], [6, 7], None], pa.list_(pa.int16(), 2))
    lists_of_texts = pa.list_(pa.list_(pa.string()))
    yield pa.array([[["a"], []], None, [], [None], [["b", None]], [[LONG]]], lists_of_texts)
    point = pa.struct([("x", pa.int32()), ("names", pa.list_(pa.string()))])
    here, there = {"x": 1, "names": ["a", LONG]}, {"x": None, "names": None}
    yield pa.array([here, None, there, {"x": 2, "names": []}, None, here], point)
    yield pa.array([[here], None, [], [None, there], [], None], pa.list_(point))
    # What polars makes of text inside other types.
    views = [["a", LONG], None, [], [None], ["b"], [LONG]]
    yield pa.array(views, pa.list_(pa.string_view()))
    texts = [{"s": "x"}, None, {"s": LONG}, {"s": None}, {"s": ""}, None]
    yield pa.array(texts, pa.struct([("s", pa.string_view())]))
    pairs = [[("a", 1)], None, [], [("b", None), ("c", 3)], [], None]
    yield pa.array(pairs, pa.map_(pa.string(), pa.int8()))
    codes = pa.array([0, 1, 0, 1, 0, 0], pa.int8())
    offsets = pa.array([0, 0, 1, 1, 2, 3], pa.int32())
    numbers, words = pa.array([1, 2, None, 4]), pa.array(["x", "y"])
    yield pa.UnionArray.from_dense(codes, offsets, [numbers, words])
    yield pa.UnionArray.from_sparse(codes, [pa.array(range(6)), pa.array(list("abcdef"))])


def _encoded() -> Iterator[pa.Array]:
    texts = pa.array(["x", None, "y", "x", LONG, "x"])
    yield texts.dictionary_encode()
    yield texts.dictionary_encode().cast(pa.dictionary(pa.uint8(), pa.large_string()))
    yield pa.array([5, None, 6, 5, 5, 7]).dictionary_encode()
    codes = pa.array([1, 0, None, 1, 1, 0], pa.int16())
    yield pa.DictionaryArray.from_arrays(codes, pa.array(["lo", "hi"]), ordered=True)
    ends = pa.array([2, 5, 6], pa.int32())
    yield pa.RunEndEncodedArray.from_arrays(ends, pa.array(["r", None, "s"]))
    degrees = pa.array([1.5, None, nan, 2, 3, 4], pa.float32())
    yield pa.ExtensionArray.from_storage(Celsius(), degrees)
    yield pa.array([bytes(range(n, n + 16)) if n else None for n in range(6)], pa.uuid())
    yield pa.array(['{"a": 1}', None, "[]", "3", "{}", "null"], pa.json_())
    yield pa.array([{"d": "x"}, None, {"d": None}, {"d": "y"}, None, {"d": "x"}]).cast(
        pa.struct([("d", pa.dictionary(pa.int32(), pa.string()))])
    )


PAYLOADS: dict[str, pa.Array] = {
    str(values.type): values
    for makers in (_numbers, _times, _bytes, _nested, _encoded)
    for values in makers()
}


def payload_rows(values: pa.Array, first_id: int = 0) -> pa.Table:
    count = len(values)
    return pa.table(
        {
            "ts": pa.array([5] * count, pa.int64()),
            "k": pa.array([1] * count, pa.int64()),
            "id": pa.array(range(first_id, first_id + count), pa.int64()),
            "payload": values,
        }
    )


def plain(values: Any) -> list[str]:
    """Values as text, so that NaN equals itself and -0.0 is not 0.0."""
    return [repr(value) for value in values.to_pylist()]


@pytest.mark.parametrize("name", PAYLOADS)
def test_payload_of_every_type(name: str) -> None:
    """Out of the batch and out of the window, from whole and from sliced arrays."""
    values = PAYLOADS[name]
    rows = payload_rows(values)
    one = payload_rows(pa.array(["other"]))
    join = QUERY.start()
    outputs = [
        join.push(a=rows.slice(0, 2), b=one),  # a arrives together with b
        join.push(a=rows.slice(2, 3)),  # a meets b in its window
        join.push(a=rows.slice(0, 0)),
        join.push(a=rows.slice(5, 1)),
        join.push(b=one),  # b meets all of a in its window
    ]
    result = pa.concat_tables(outputs)
    result.validate(full=True)
    assert result.schema.field("a_payload").type == values.type
    ids = result["a_id"].to_pylist()
    assert sorted(ids) == sorted([*range(6)] * 2)
    texts = plain(values)
    assert plain(result["a_payload"]) == [texts[number] for number in ids]


@pytest.mark.parametrize("name", PAYLOADS)
def test_payload_of_every_type_out_of_order_and_without_key(name: str) -> None:
    """Such rows are put in order, and those that can match nothing are left out."""
    values = PAYLOADS[name]
    times, keys = pa.array([9, 7, 8, 3, 4, 5]), pa.array([1, 1, None, 1, 1, 1])
    rows = payload_rows(values).set_column(0, "ts", times).set_column(1, "k", keys)
    result = QUERY.start().push(a=rows, b=payload_rows(pa.array(["other"])))
    result.validate(full=True)
    ids = result["a_id"].to_pylist()
    assert sorted(ids) == [0, 1, 3, 4, 5]
    texts = plain(values)
    assert plain(result["a_payload"]) == [texts[number] for number in ids]


@pytest.mark.parametrize("name", PAYLOADS)
def test_payload_of_every_type_through_a_snapshot(name: str) -> None:
    values = PAYLOADS[name]
    join = QUERY.start()
    join.push(a=payload_rows(values))
    join = QUERY.restore(join.snapshot())
    result = join.push(b=payload_rows(pa.array(["other"])))
    result.validate(full=True)
    assert result.schema.field("a_payload").type == values.type
    texts = plain(values)
    assert plain(result["a_payload"]) == [texts[number] for number in result["a_id"].to_pylist()]


@pytest.mark.parametrize("name", PAYLOADS)
def test_payload_of_every_type_among_the_late(name: str) -> None:
    values = PAYLOADS[name]
    join = QUERY.start()
    join.push(a=payload_rows(values.slice(0, 1)), b=payload_rows(values.slice(0, 1)))
    join.advance("a", 1000)
    join.advance("b", 1000)
    join.push(a=payload_rows(values.slice(1)))
    late = join.late()["a"]
    late.validate(full=True)
    assert late.schema.field("payload").type == values.type
    assert plain(late["payload"]) == plain(values.slice(1))


@pytest.mark.parametrize("name", PAYLOADS)
def test_payload_that_lives_on_while_older_rows_leave(name: str) -> None:
    """The window turns over many times; what is live is still what came in."""
    values = PAYLOADS[name]
    query = ps.WindowJoin(STREAMS, on="k", within="2 us")
    texts = plain(values)
    join = query.start()
    for turn in range(40):
        times = pa.array([turn * 3] * 6, pa.int64())
        rows = payload_rows(values).set_column(0, "ts", times)
        result = join.push(a=rows.slice(turn % 4), b=rows.slice(0, 1))
        assert plain(result["a_payload"]) == [texts[n] for n in result["a_id"].to_pylist()]
        assert result.num_rows == 6 - turn % 4
    assert join.metrics.live <= 7


def test_nulls_that_appear_only_in_a_later_batch() -> None:
    join = QUERY.start()
    join.push(a=payload_rows(pa.array([1, 2, 3])))
    join.push(a=payload_rows(pa.array([4, None, 6]), first_id=3))
    join.push(a=payload_rows(pa.array([None], pa.int64()), first_id=6))
    result = join.push(b=payload_rows(pa.array(["x"])))
    values = dict(zip(result["a_id"].to_pylist(), result["a_payload"].to_pylist(), strict=True))
    assert values == {0: 1, 1: 2, 2: 3, 3: 4, 4: None, 5: 6, 6: None}


def test_dictionaries_that_differ_from_batch_to_batch() -> None:
    """Together they have more values than an index of 8 bits can count."""
    kind = pa.dictionary(pa.int8(), pa.string())
    join = QUERY.start()
    expected = {}
    for batch in range(4):
        texts = [f"value {batch * 100 + number}" for number in range(100)]
        join.push(
            a=payload_rows(pa.array(texts).dictionary_encode().cast(kind), first_id=batch * 100)
        )
        expected.update({batch * 100 + number: text for number, text in enumerate(texts)})
    result = join.push(b=payload_rows(pa.array(["x"])))
    result.validate(full=True)
    assert result.schema.field("a_payload").type == kind
    values = result["a_payload"].to_pylist()
    assert dict(zip(result["a_id"].to_pylist(), values, strict=True)) == expected


def test_large_strings_do_not_overflow_32_bit_offsets_of_small_results() -> None:
    text = "x" * 1_000_000
    join = QUERY.start()
    join.push(a=payload_rows(pa.array([text])))
    result = join.push(b=payload_rows(pa.array([text] * 3)))
    assert [len(value) for value in result["a_payload"].to_pylist()] == [1_000_000] * 3
