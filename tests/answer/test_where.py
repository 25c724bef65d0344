"""Where clauses: every supported term gives the answer that the oracle defines."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from support.clauses import EXTRA, LINKED, TERMS, clauses
from support.scenario import Scenario, check

pytestmark = pytest.mark.jit_off


@given(clauses(windows=False))
def test_any_clause(scenario: Scenario) -> None:
    check(scenario)


@given(clauses(windows=True))
def test_any_clause_over_any_window(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize("linked", LINKED)
@given(st.data())
def test_different_attributes(linked: str, data: st.DataObject) -> None:
    """Each window is found by what links it to those before it, in any order of probing."""
    terms = {**TERMS, **EXTRA}
    check(data.draw(clauses(windows=False, terms={text: terms[text] for text in LINKED[linked]})))


def test_on_and_where_together() -> None:
    two = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    query = ps.WindowJoin(two, on="k", where="a.v < b.v AND b.v <> 7", within="10 us")
    table = pa.table({"ts": [1, 2, 3, 4], "k": [1, 1, 2, 1], "v": [3, 5, 9, 7]})
    join = query.start()
    result = join.push(a=table, b=table)
    assert list(zip(result["a_v"].to_pylist(), result["b_v"].to_pylist(), strict=True)) == [(3, 5)]
    assert join.metrics.streams["b"].filtered == 1


def test_classes_of_equal_columns_make_the_key() -> None:
    streams = [ps.Stream(name, time="ts") for name in "abc"]
    query = ps.WindowJoin(
        streams, where="a.k = b.k AND c.m = a.k AND a.v = b.v AND a.v < c.v", within="1 s"
    )
    assert query.keys == (("k",), ("k",), ("m",))
    assert len(query.residuals) == 2
    pairs = ps.WindowJoin(streams[:2], where="a.x = b.y AND a.z = b.z", within="1 s")
    assert pairs.keys == (("x", "z"), ("y", "z"))
    assert pairs.residuals == ()
    assert ps.WindowJoin(streams[:2], where="a.x < b.y", within="1 s").keys == ((), ())


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("a.x = b.x OR a.y = b.y", "not supported: a.x = b.x OR a.y = b.y, near character 1"),
        ("a.x = b.x AND a.n LIKE 'x%'", "not supported: a.n LIKE 'x%', near character 15"),
        ("a.x + b.x < 3", "one stream only"),
        ("abs(a.x - b.x) > 3", "must be < or <= a number"),
        ("x = b.x", "write columns as stream.column"),
        ("d.x = b.x", "the streams are"),
        ("a.x =", "cannot read where"),
        ("lower(a.x) = b.x", "not supported"),
        ("a.x = (SELECT 1)", "not supported"),
        ("", "must be SQL text"),
    ],
)
def test_what_is_not_supported(where: str, told: str) -> None:
    two = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    with pytest.raises(ps.QueryError) as raised:
        ps.WindowJoin(two, where=where, within="1 s")
    assert told in str(raised.value)


def test_columns_that_are_missing_or_do_not_compare() -> None:
    two = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    table = pa.table({"ts": [1], "x": ["text"], "n": [1]})
    with pytest.raises(ps.SchemaError, match="no where column 'z'"):
        ps.WindowJoin(two, where="a.z < b.x", within="1 s").start().push(a=table)
    join = ps.WindowJoin(two, where="a.x < b.n", within="1 s").start()
    with pytest.raises(ps.SchemaError, match="cannot be compared"):
        join.push(a=table, b=table)
    with pytest.raises(ps.QueryError, match="needs on= or where="):
        ps.WindowJoin(two, within="1 s")
