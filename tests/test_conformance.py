"""Cases that other stream joins test themselves with, each named after its origin.

A row has key `k`, time `ts` in seconds (Spark) or milliseconds (Flink), and a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps

pytestmark = pytest.mark.jit_off

# Where Spark has no watermark: nothing leaves and nothing is late.
UNBOUNDED = "1000 weeks"
EPOCH, SECOND = datetime(1970, 1, 1), timedelta(seconds=1)


def rows(keys: Sequence[Any], seconds: Sequence[int], **values: Sequence[int]) -> pa.Table:
    times = pa.array([second * 1_000_000 for second in seconds], pa.timestamp("us"))
    return pa.table({"k": pa.array(keys, pa.int64()), "ts": times, **values})


def numbers(values: Sequence[int], factor: int) -> pa.Table:
    """Value v has key v, comes at v seconds, and carries v times the factor."""
    return rows(values, values, v=[value * factor for value in values])


def left(*values: int) -> pa.Table:
    return numbers(values, 2)


def right(*values: int) -> pa.Table:
    return numbers(values, 3)


def streams(**given: dict[str, str]) -> list[ps.Stream]:
    return [ps.Stream(name, time="ts", **settings) for name, settings in given.items()]


def picked(result: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    if not result.num_rows:
        return []  # before its first batch, a stream's columns are not known
    return sorted(zip(*(result[column].to_pylist() for column in columns), strict=True))


def seconds(result: pa.Table, *names: str) -> list[tuple[int, ...]]:
    rows = picked(result, *(f"{name}_ts" for name in names))
    return [tuple((ts - EPOCH) // SECOND for ts in row) for row in rows]


class TestSparkStreamingJoinSuite:
    """Late there is `ts <= watermark`, here `ts < watermark`: lateness is a tick shorter."""

    def test_inner_on_non_time_column(self) -> None:
        settings = {"window": UNBOUNDED, "lateness": UNBOUNDED}
        query = ps.WindowJoin(streams(l=settings, r=settings), on="k")
        join = query.start()

        def new(**tables: pa.Table) -> list[tuple[int, int, int]]:
            return picked(join.push(tables), "l_k", "l_v", "r_v")

        assert new(l=left(1)) == []
        assert new(r=right(1, 10)) == [(1, 2, 3)]
        assert new(l=left(10)) == [(10, 20, 30)]
        assert new(r=right(1)) == [(1, 2, 3)]
        join = query.restore(join.snapshot())
        assert new(l=left(1)) == [(1, 2, 3), (1, 2, 3)]
        join = query.restore(join.snapshot())
        assert new(l=left(100), r=right(100)) == [(100, 200, 300)]

    def test_windowed_inner_with_watermark(self) -> None:
        """Tumbling windows of 10 s. Only the left input declares a watermark, so the right is
        moved out of the way.

        Spark drops only the 5 of the left as late; here one clock rules both streams, and
        the 1 of the right is late too. The answer is the same.
        """
        lateness = {"lateness": "9.999999 seconds"}
        query = ps.WindowJoin(streams(l=lateness, r={}), on="k", within="tumbling 10 seconds")
        join = query.start()
        join.advance("r", 10**15)

        def new(**tables: pa.Table) -> list[tuple[int, ...]]:
            return picked(join.push(tables), "l_k", "l_v", "r_v")

        assert new(l=left(1)) == []
        assert new(r=right(1)) == [(1, 2, 3)]
        join = query.restore(join.snapshot())
        assert join.metrics.live == 2
        assert new(l=left(25)) == []
        assert join.metrics.live == 1
        assert new(r=right(25)) == [(25, 50, 75)]
        assert new(r=right(1)) == []
        assert new(l=left(5)) == []
        assert {name: late["k"].to_pylist() for name, late in join.late().items()} == {
            "l": [5],
            "r": [1],
        }
        assert join.metrics.live == 2

    def test_time_range_join_with_watermark_on_both_sides(self) -> None:
        """leftTime in [rightTime - 10, rightTime + 5], delays of 20 and 30 seconds."""
        query = ps.WindowJoin(
            streams(
                l={"window": "10 seconds", "lateness": "19.999999 seconds"},
                r={"window": "5 seconds", "lateness": "29.999999 seconds"},
            ),
            on="k",
        )
        join = query.start()

        def new(name: str, *times: int) -> list[tuple[int, ...]]:
            result = join.push({name: rows([1] * len(times), times)})
            return seconds(result, "l", "r")

        def late(name: str) -> list[int]:
            return [ts // 1_000_000 for ts in join.late()[name]["ts"].cast(pa.int64()).to_pylist()]

        assert new("l", 20) == []
        assert new("r", 14, 15, 25, 26, 30, 31) == [(20, 15), (20, 25), (20, 26), (20, 30)]
        assert new("r", 60) == []
        assert new("l", 49, 50, 65, 66) == [(50, 60), (65, 60)]
        assert new("l", 30, 31) == [(31, 26), (31, 30), (31, 31)]
        assert late("l") == [30]
        assert new("r", 80) == []
        assert new("r", 46, 50) == [(49, 50), (50, 50)]
        assert late("r") == [46]

    def test_self_join(self) -> None:
        settings = {"window": UNBOUNDED, "lateness": UNBOUNDED}
        join = ps.WindowJoin(streams(l=settings, r=settings), on="k").start()

        def new(*values: int) -> list[tuple[int, ...]]:
            table = rows([value % 5 for value in values], values, v=values)
            return picked(join.push(l=table, r=table), "l_k", "l_v", "r_v")

        assert new(1, 2) == [(1, 1, 1), (2, 2, 2)]
        assert new(3, 6) == [(1, 1, 6), (1, 6, 1), (1, 6, 6), (3, 3, 3)]

    def test_three_streams(self) -> None:
        settings = {"window": UNBOUNDED, "lateness": UNBOUNDED}
        join = ps.WindowJoin(streams(a=settings, b=settings, c=settings), on="k").start()
        result = join.push(a=numbers((1, 5), 2), b=numbers((1, 5, 10), 3), c=numbers((5, 10), 5))
        columns = ("a_k", "a_v", "b_k", "b_v", "c_k", "c_v")
        assert picked(result, *columns) == [(5, 10, 5, 15, 5, 25)]

    def test_plain_equality_of_nulls(self) -> None:
        settings = {"window": UNBOUNDED, "lateness": UNBOUNDED}
        join = ps.WindowJoin(streams(l=settings, r=settings), on="k").start()
        result = join.push(l=rows((1, 5, 10, None), (1, 5, 10, 0)), r=rows((1, 5, None), (1, 5, 0)))
        assert picked(result, "l_k") == [(1,), (5,)]


class TestFlinkIntervalJoin:
    """Elements 1..n on each side, one key; a watermark W there is W + 1 tick here."""

    @staticmethod
    def element(*milliseconds: int) -> pa.Table:
        times = pa.array(milliseconds, pa.timestamp("ms"))
        return pa.table({"k": pa.array([1] * len(times), pa.int64()), "ts": times})

    @staticmethod
    def query(low: int, high: int, lateness: str = "0 ms", closed: str = "both") -> ps.WindowJoin:
        """Bounds on right - left."""
        sides = {name: {"lateness": lateness} for name in ("l", "r")}
        between = (f"{low} ms", f"{high} ms")
        return ps.WindowJoin(streams(**sides), on="k", between=between, closed=closed)

    @staticmethod
    def pairs(*results: pa.Table) -> str:
        table = pa.concat_tables(result for result in results if result.num_rows)
        ticks = [table[name].cast(pa.int64()).to_pylist() for name in ("l_ts", "r_ts")]
        return " ".join(sorted(f"{left}{right}" for left, right in zip(*ticks, strict=True)))

    BOUNDS = (
        ((-2, -1), "both", "21 31 32 42 43"),
        ((-1, 1), "both", "11 12 21 22 23 32 33 34 43 44"),
        ((1, 2), "both", "12 13 23 24 34"),
        ((-3, -1), "neither", "31 42"),
        ((-1, 1), "neither", "11 22 33 44"),
        ((1, 3), "neither", "13 24"),
    )

    @pytest.mark.parametrize(("bounds", "closed", "expected"), BOUNDS)
    def test_bounds(self, bounds: tuple[int, int], closed: str, expected: str) -> None:
        join = self.query(*bounds, closed=closed).start()
        results = [
            join.push({name: self.element(time)}) for time in range(1, 5) for name in ("l", "r")
        ]
        assert self.pairs(*results) == expected

    @pytest.mark.parametrize(("bounds", "closed", "expected"), BOUNDS)
    @pytest.mark.parametrize("order", ["lr", "rl"])
    def test_one_side_after_the_other(
        self, bounds: tuple[int, int], closed: str, expected: str, order: str
    ) -> None:
        join = self.query(*bounds, lateness="1 second", closed=closed).start()
        results = [join.push({name: self.element(*range(1, 5))}) for name in order]
        assert self.pairs(*results) == expected

    def test_swapped_sides_give_mirrored_pairs(self) -> None:
        elements = self.element(*range(1, 5))
        forward = self.query(-2, 1).start().push(l=elements, r=elements)
        backward = self.query(-1, 2).start().push(l=elements, r=elements)
        mirrored = sorted(pair[::-1] for pair in self.pairs(backward).split())
        assert self.pairs(forward).split() == mirrored
        assert len(mirrored) == 4 + 3 + 3 + 2

    def test_state_clean_up(self) -> None:
        join = self.query(-1, 0, lateness="1 second").start()
        elements = self.element(*range(1, 6))
        join.push(l=elements, r=elements)

        def live_after(flink_watermark: int) -> tuple[int, int]:
            for name in ("l", "r"):
                join.advance(name, (flink_watermark + 1) * 1000)
            live = {name: stream.live for name, stream in join.metrics.streams.items()}
            return live["l"], live["r"]

        assert live_after(1) == (4, 5)
        assert live_after(4) == (1, 2)
        assert live_after(6) == (0, 0)

    def test_restore_from_snapshot(self) -> None:
        query = self.query(-1, 1)
        join = query.start()
        for time in (1, 2, 3):
            join.push(l=self.element(time), r=self.element(time))
        join = query.restore(join.snapshot())
        results = [join.push(l=self.element(4)), join.push(r=self.element(4))]
        assert self.pairs(*results) == "34 43 44"
