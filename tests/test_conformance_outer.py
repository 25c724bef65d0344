"""Outer and semi joins that Spark tests itself with (StreamingJoinSuite), named after theirs.

There a condition over one side decides in an outer join whether a row matches, here whether it
takes part (`where=` filters before the window); as part of a `udf` over both it does the former.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps
from test_conformance import left, right, rows, streams

pytestmark = pytest.mark.jit_off

DELAY = "9.999999 seconds"  # late there is `ts <= watermark`


def new(join: ps.Join, *columns: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    """What a batch brings, in the order of its numbers, nulls last."""
    result = join.push(tables)
    found = zip(*(result[column].to_pylist() for column in columns), strict=True)
    return sorted(found, key=lambda row: [(each is None, each) for each in row])


def started(how: str, **more: Any) -> ps.Join:
    both = {"lateness": DELAY}
    query = ps.WindowJoin(streams(l=both, r=both), on="k", how=how, **more)
    schema = rows([1], [1], v=[1]).schema
    return query.start(schemas={"l": schema, "r": schema})


class TestSparkStreamingJoinSuite:
    @pytest.mark.parametrize("how", ["left", "right"])
    def test_windowed_outer_join(self, how: str) -> None:
        join = started(how, within="tumbling 10 seconds")
        columns = ("l_v", "r_v")
        assert new(join, *columns, l=left(1, 2, 3, 4, 5), r=right(3, 4, 5, 6, 7)) == [
            (6, 9),
            (8, 12),
            (10, 15),
        ]
        alone = {"left": [(2, None), (4, None)], "right": [(None, 18), (None, 21)]}
        assert new(join, *columns, l=left(21), r=right(22)) == alone[how]
        assert new(join, *columns, l=left(22)) == [(44, 66)]

    @pytest.mark.parametrize("how", ["left", "right"])
    def test_outer_join_with_time_range(self, how: str) -> None:
        """Five seconds either way; rows are (key, time)."""
        join = started(how, within="5 seconds")

        def of(*pairs: tuple[int, int]) -> pa.Table:
            keys, times = zip(*pairs, strict=True)
            return rows(keys, times, v=times)

        columns = ("l_k", "r_k", "l_v", "r_v")
        assert new(join, *columns, l=of((1, 5), (3, 5))) == []
        assert new(join, *columns, r=of((1, 10), (2, 5))) == [(1, 1, 5, 10)]
        assert new(join, *columns, r=of((1, 11))) == []
        assert new(join, *columns, l=of((1, 7), (1, 30))) == [(1, 1, 7, 10), (1, 1, 7, 11)]
        alone = {"left": [(3, None, 5, None)], "right": [(None, 2, None, 5)]}
        assert new(join, *columns, r=of((0, 30))) == alone[how]

    def test_condition_that_is_violated(self) -> None:
        """There rows that fail on their own side alone come out at once; here with the others."""

        def condition(one: pa.Array, other: pa.Array) -> pa.Array:
            allowed = pc.or_(pc.less(other, 300), pc.greater(other, 1000))
            return pc.and_(pc.greater(one, 10), allowed)

        where = ps.udf(condition, ["l.v", "r.v"])
        join = started("left", within="tumbling 10 seconds", where=where)
        assert new(join, "l_v", "r_v", l=left(1, 2, 3), r=right(1, 2, 3)) == []
        alone = new(join, "l_v", "r_v", l=left(101, 102, 103), r=right(101, 102, 103))
        assert alone == [(2, None), (4, None), (6, None)]
        assert new(join, "l_v", "r_v", l=left(1000), r=right(1000)) == [
            (202, None),
            (204, None),
            (206, None),
            (2000, 3000),
        ]

    def test_self_outer_join(self) -> None:
        """SPARK-26187: the right is the even rows of the left, up to five seconds after it."""
        both = {"lateness": "4.999999 seconds"}
        query = ps.WindowJoin(
            streams(l=both, r=both), on="k", how="left", between=("0 seconds", "5 seconds")
        )
        join = query.start()

        def step(*values: int) -> list[tuple[Any, ...]]:
            evens = [value for value in values if value % 2 == 0]
            return new(join, "l_v", "r_v", l=left(*values), r=left(*evens))

        assert step(1, 2, 3, 4, 5) == [(4, 4), (8, 8)]
        assert step(6, 7, 8, 9, 10) == [(12, 12), (16, 16), (20, 20)]
        assert step(11, 12, 13, 14, 15) == [(2, None), (6, None), (24, 24), (28, 28)]

    def test_match_and_eviction_in_one_batch(self) -> None:
        """SPARK-38684."""
        join = started("left", within="5 seconds")
        assert new(join, "l_k", "r_k", l=rows([1, 1, 2], [1, 2, 1], v=[1, 2, 3])) == []
        far = {"l": rows([8], [60], v=[0]), "r": rows([1, 9], [6, 60], v=[4, 0])}
        columns = ("l_k", "l_v", "r_v")
        assert new(join, *columns, **far) == [(1, 1, 4), (1, 2, 4), (2, 3, None)]

    def test_without_delay(self) -> None:
        """SPARK-49829. There the watermark lags a batch, and d, which comes behind it, is padded
        with nulls in the next one, as a is; here a comes out at once, and d is late."""
        query = ps.WindowJoin(streams(l={}, r={}), on="k", how="left", within="0 seconds")
        join = query.start()
        letters = {"a": 1, "b": 2, "c": 3, "d": 4}
        table = {
            text: rows(
                [letters[each[0]] for each in text.split()], [int(each[1]) for each in text.split()]
            )
            for text in ("a1 b2", "b2 c1", "d1")
        }
        assert new(join, "l_k", "r_k", l=table["a1 b2"], r=table["b2 c1"]) == [(1, None), (2, 2)]
        assert new(join, "l_k", "r_k", l=table["d1"]) == []
        assert join.metrics.streams["l"].late == 1
        join.finish()
        assert join.metrics.live == 0

    def test_windowed_left_semi_join(self) -> None:
        join = started("semi", within="tumbling 10 seconds")
        matched = new(join, "l_k", "l_v", l=left(1, 2, 3, 4, 5), r=right(3, 4, 5, 6, 7))
        assert matched == [(3, 6), (4, 8), (5, 10)]
        assert new(join, "l_k", "l_v", l=left(21), r=right(22)) == []
        assert new(join, "l_k", "l_v", l=left(22)) == [(22, 44)]
        assert join.metrics.streams["l"].live == 1  # that of 21

    def test_null_safe_equality(self) -> None:
        wide = {"window": "1000 weeks", "lateness": "1000 weeks"}
        query = ps.WindowJoin(streams(l=wide, r=wide), where="l.k IS NOT DISTINCT FROM r.k")
        tables = {"l": rows([1, 5, 10, None], [1] * 4), "r": rows([1, 5, None], [1] * 3)}
        assert new(query.start(), "l_k", "r_k", **tables) == [(1, 1), (5, 5), (None, None)]
