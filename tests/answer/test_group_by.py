"""A group-by over a join: each group once, whole, and as early as promises allow."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.samples import Nexmark
from support.strategies import BLOBS_OF_ONE_HASH
from support.thoroughness import examples, scaled

WINNING = ps.WindowJoin(
    [
        ps.Stream(
            "auctions",
            time="date_time",
            window="unbounded",
            lateness="2 seconds",
            unique=True,
            expires={"bids": "expires"},
        ),
        # Some are for auctions from before the beginning; no bid is before its auction.
        ps.Stream("bids", time="date_time", window="0 s", lateness="2 seconds"),
    ],
    on={"auctions": "id", "bids": "auction"},
    where="bids.date_time >= auctions.date_time AND bids.date_time < auctions.expires",
)


def sold(work: Nexmark, rows: int) -> tuple[list[pa.Table], list[int], ps.Join]:
    """NEXMark's query 9: the winning bid of each auction. Also how many tuples were live."""
    grouped = ps.group_by(
        WINNING, ["auctions_id", "auctions_category"], max={"final": "bids_price"}, count="bids"
    )
    groups = grouped.start()
    out, live = [], []
    for batch in work.batches(rows):
        out.append(groups.push(auctions=batch["auctions"], bids=batch["bids"]))
        live.append(groups.join.metrics.live)
    return [*out, groups.finish()], live, groups.join


def test_winning_bids_and_average_prices() -> None:
    """Queries 9 and 4 as DuckDB answers them, with no more state than there are open auctions."""
    work = Nexmark(events=scaled(quick=150_000, all=1_500_000), seed=3, rate=20)
    tables, live, join = sold(work, 10_000)
    groups = pa.concat_tables(tables)
    batches = list(work.batches(10_000))
    auctions = pa.concat_tables([pa.table(batch["auctions"]) for batch in batches])  # noqa: F841
    bids = pa.concat_tables([pa.table(batch["bids"]) for batch in batches])  # noqa: F841
    database = duckdb.connect()
    database.execute("set threads = 1")
    nine = """
        select a.id, a.category, max(b.price) as final, count(*) as bids
        from auctions a join bids b on a.id = b.auction
        where b.date_time >= a.date_time and b.date_time < a.expires
        group by a.id, a.category
    """
    expected = database.sql(f"{nine} order by all").fetchall()
    got = groups.select(["auctions_id", "auctions_category", "final", "bids"])
    assert sorted(map(tuple, (row.values() for row in got.to_pylist()))) == expected
    four = f"select category, avg(final) from ({nine}) group by category order by category"
    of_ours = "select auctions_category, avg(final) from groups group by all order by all"
    assert database.sql(of_ours).fetchall() == database.sql(four).fetchall()
    assert sum(len(table) for table in tables[:-1]) > 0.8 * len(groups), "most come out early"
    longest = max(live[len(live) // 4 :])
    assert longest < 2 * max(live[: len(live) // 4]), "it does not grow"
    assert join.metrics.streams["auctions"].broken == 0


def rows(*given: tuple[int, object, int]) -> pa.Table:
    ts, keys, values = zip(*given, strict=True) if given else ((), (), ())
    kind = pa.binary() if any(isinstance(key, bytes) for key in keys) else pa.int64()
    return pa.table(
        {
            "ts": pa.array(ts, pa.int64()),
            "k": pa.array(keys, kind),
            "v": pa.array(values, pa.int64()),
        }
    )


def query(**a: object) -> ps.WindowJoin:
    streams = [ps.Stream("a", time="ts", **a), ps.Stream("b", time="ts")]  # type: ignore[arg-type]
    return ps.WindowJoin(streams, on="k", within="10 us")


def test_all_functions() -> None:
    groups = ps.group_by(
        query(unique=True),
        "a_k",
        count="n",
        sum="b_v",
        min=["b_v"],
        max={"most": "b_v"},
        mean="b_v",
    ).start()
    first = groups.push(a=rows((1, 1, 0), (1, 2, 0)), b=rows((1, 1, 5), (2, 1, 2)))
    assert len(first) == 0
    assert groups.open_groups == 1
    assert len(groups.push(a=rows(), b=rows((8, 1, 8), (9, 2, 1)))) == 0
    done = groups.push(a=rows((30, 3, 0)), b=rows((30, 3, 3)))
    expected = [
        {"a_k": 1, "n": 3, "sum_b_v": 15, "min_b_v": 2, "most": 8, "mean_b_v": 5.0},
        {"a_k": 2, "n": 1, "sum_b_v": 1, "min_b_v": 1, "most": 1, "mean_b_v": 1.0},
    ]
    assert sorted(done.to_pylist(), key=lambda row: row["a_k"]) == expected
    assert groups.finish()["a_k"].to_pylist() == [3]


@examples(0.5)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4), st.integers(-9, 9)), max_size=40))
def test_groups_are_whole_and_come_once(given: list[tuple[int, int, int]]) -> None:
    """Whatever has come out early is as if all had come out at the end."""
    keys = sorted({key for _, key, _ in given})
    own = rows(*((10 * at, key, 0) for at, key in enumerate(keys)))
    others = sorted(given)
    alike = ps.group_by(query(unique=True), "b_k", count="n", sum="b_v")
    early, late = alike.start(), alike.start(forget="window")
    out = []
    for begin in range(0, 70, 10):

        def part(table: pa.Table, begin: int = begin) -> pa.Table:
            times = table["ts"].to_numpy()
            return table.filter(pa.array((times >= begin) & (times < begin + 10)))

        batch = {"a": part(own), "b": part(rows(*others))}
        out.append(early.push(batch))
        assert len(late.push(batch)) == 0
    whole = pa.concat_tables([*out, early.finish()])
    assert len(set(whole["b_k"].to_pylist())) == len(whole)
    expected = late.finish()
    assert whole.sort_by("b_k").to_pylist() == expected.sort_by("b_k").to_pylist()


def test_keys_of_any_type_and_under_another_name() -> None:
    select = {"key": "b.k", "v": "b.v"}
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    named = ps.WindowJoin(streams, on="k", within="unbounded", select=select)
    groups = ps.group_by(named, "key", sum="v").start()
    one, other = BLOBS_OF_ONE_HASH[:2]
    groups.push(a=rows((1, one, 1), (1, other, 1)), b=rows((1, one, 2), (1, other, 3)))
    done = groups.punctuate("a", k=other)
    assert len(done) == 0
    done = groups.punctuate("b", k=other)
    assert done.to_pylist() == [{"key": other, "sum_v": 3}]
    assert groups.open_groups == 1


def test_groups_of_other_columns_come_at_the_end() -> None:
    groups = ps.group_by(query(unique=True), "b_v", count="n").start()
    assert len(groups.push(a=rows((1, 1, 0)), b=rows((1, 1, 5)))) == 0
    assert len(groups.push(a=rows((99, 2, 0)), b=rows((99, 2, 5)))) == 0
    assert groups.finish().to_pylist() == [{"b_v": 5, "n": 2}]


def test_what_cannot_be_grouped() -> None:
    with pytest.raises(ps.QueryError, match="something to aggregate"):
        ps.group_by(query(), "a_k")
    with pytest.raises(ps.QueryError, match="count, sum, min, max and mean"):
        ps.group_by(query(), "a_k", median="b_v")
    with pytest.raises(ps.QueryError, match="twice"):
        ps.group_by(query(), "a_k", sum={"x": "b_v"}, min={"x": "b_v"})
    groups = ps.group_by(query(), "a_z", count="n").start()
    with pytest.raises(ps.SchemaError, match="no column 'a_z'"):
        groups.push(a=rows((1, 1, 0)), b=rows((1, 1, 5)))


def test_many_groups_in_one_push() -> None:
    streams = [ps.Stream(name, time="ts", unique=True) for name in "ab"]
    groups = ps.group_by(ps.WindowJoin(streams, on="k", within="1 s"), "a_k", count="n").start()
    table = pa.table({"ts": np.zeros(150_000, np.int64), "k": np.arange(150_000)})
    later = rows((1, -1, 0)).drop_columns("v")
    done = groups.push(a=table, b=table), groups.push(a=later, b=later)
    assert sum(map(len, done)) == 150_001
    assert groups.open_groups == 0


def test_means_of_large_numbers() -> None:
    groups = ps.group_by(query(), "a_k", mean="b_v").start()
    large = 1_700_000_000_000_001
    groups.push(a=rows((1, 1, 0)), b=rows(*((1, 1, large) for _ in range(6))))
    assert groups.finish()["mean_b_v"].to_pylist() == [pytest.approx(large)]


def test_a_stream_that_has_not_been_heard_of() -> None:
    grouped = ps.group_by(query(unique=True), "a_k", max={"m": "b_v"})
    groups = grouped.start()
    assert len(groups.push(a=rows((1, 1, 0)))) == 0
    assert len(groups.push(b=rows((2, 1, 7)))) == 0
    assert groups.finish().to_pylist() == [{"a_k": 1, "m": 7}]
    assert len(grouped.start().finish()) == 0


def test_a_key_that_is_called_at() -> None:
    streams = [ps.Stream("a", time="ts", unique=True), ps.Stream("b", time="ts")]
    named = ps.WindowJoin(streams, on="at", within="10 us")
    groups = ps.group_by(named, "a_at", count="n").start()
    table = rows((1, 1, 0)).rename_columns(["ts", "at", "v"])
    groups.push(a=table, b=table)
    later = rows((50, 2, 0)).rename_columns(["ts", "at", "v"])
    assert groups.push(a=later, b=later).to_pylist() == [{"a_at": 1, "n": 1}]
