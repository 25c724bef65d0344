"""What users get for tests of their own."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock as ps
from penstock.testing import assert_joined, joined

QUERY = ps.WindowJoin([ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within="5 us")
BATCHES = [
    {"a": pa.table({"ts": [1, 2], "k": [1, 2]})},
    {"b": pa.table({"ts": [3], "k": [1]})},
    {"a": pa.table({"ts": [4], "k": [1]}), "b": pa.table({"ts": [9], "k": [2]})},
]
EXPECTED = [{"a_ts": 1, "b_ts": 3}, {"a_ts": 4, "b_ts": 3}]


def test_expected_rows_in_any_order() -> None:
    assert_joined(QUERY, BATCHES, EXPECTED[::-1])
    assert_joined(QUERY, BATCHES, pa.Table.from_pylist(EXPECTED))
    assert joined(QUERY, BATCHES).num_rows == 2


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        (EXPECTED[:1], "1 came that were not expected"),
        ([*EXPECTED, {"a_ts": 2, "b_ts": 9}], "1 expected rows are missing"),
        ([{"a_time": 1}], "no column is called"),
    ],
)
def test_what_differs_is_said(expected: list[dict[str, int]], told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        assert_joined(QUERY, BATCHES, expected)
