"""Watermarks: when a tuple is late, when it leaves, and who holds the clock back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps

pytestmark = pytest.mark.jit_off


class Wall:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def at(*times: int, k: int = 1) -> pa.Table:
    return pa.table(
        {"ts": pa.array(times, pa.int64()), "k": pa.array([k] * len(times), pa.int64())}
    )


def query(**streams: dict[str, Any]) -> ps.WindowJoin:
    """A join on k whose streams have the given settings, and windows of 10 us."""
    return ps.WindowJoin(
        [ps.Stream(name, time="ts", **given) for name, given in streams.items()],
        on="k",
        within="10 us",
    )


def times(table: pa.Table, column: str = "ts") -> list[int]:
    return sorted(table[column].cast(pa.int64()).to_pylist())


def test_no_watermark_before_every_stream_has_spoken() -> None:
    join = query(a={}, b={}).start()
    assert join.metrics.watermark is None
    join.push(a=at(5))
    assert join.metrics.watermark is None
    assert join.metrics.streams["a"].watermark == 5
    assert join.metrics.streams["b"].watermark is None
    join.push(b=at(3))
    assert join.metrics.watermark == 3


def test_a_watermark_is_the_newest_time_less_the_lateness() -> None:
    join = query(a={"lateness": "4 us"}, b={"lateness": "1 us"}).start()
    join.push(a=at(10, 8), b=at(8))
    assert [join.metrics.streams[name].watermark for name in "ab"] == [6, 7]
    assert join.metrics.watermark == 6


def test_an_empty_batch_moves_nothing() -> None:
    join = query(a={}, b={}).start()
    join.push(a=at(5), b=at(5))
    before = join.metrics
    assert join.push(a=at(), b=at()).num_rows == 0
    assert join.push().num_rows == 0
    assert join.push({}).num_rows == 0
    assert join.metrics == before


def test_late_is_strictly_behind_the_watermark() -> None:
    join = query(a={}, b={}).start()
    join.push(a=at(10), b=at(10))
    result = join.push(b=at(9, 10, 11))
    assert times(result, "b_ts") == [10, 11]
    late = join.late()
    assert times(late["b"]) == [9]
    assert late["a"].num_rows == 0
    assert (join.metrics.late, join.metrics.streams["b"].late) == (1, 1)


def test_the_watermark_of_the_start_holds_for_the_whole_push() -> None:
    """Rows behind others of their own batch are not late, whatever the lateness."""
    join = query(a={}, b={}).start()
    assert join.push(a=at(100, 1, 50), b=at(1, 100)).num_rows == 2
    assert join.metrics.late == 0
    assert join.metrics.watermark == 100


def test_late_tuples_keep_all_their_columns_and_are_handed_out_once() -> None:
    rows = pa.table(
        {
            "v": pa.array([None, "x", "y"]),
            "ts": pa.array([1, 2, 30], pa.int64()),
            "k": pa.array([1, None, 1], pa.int64()),
        }
    )
    join = query(a={}, b={}).start()
    join.push(a=at(20), b=rows.slice(2))
    join.push(b=rows)
    join.push(b=rows.slice(0, 1))
    late = join.late()
    assert late["b"].schema == rows.schema
    assert late["b"].to_pylist() == rows.slice(0, 2).to_pylist() + rows.slice(0, 1).to_pylist()
    again = join.late()
    assert set(again) == {"a", "b"}
    assert (again["b"].num_rows, again["b"].schema) == (0, rows.schema)
    assert join.metrics.late == 3


def test_late_tuples_that_nobody_fetches_do_not_pile_up() -> None:
    """The newest are kept; the others are counted."""
    join = query(a={}, b={}).start()
    join.push(a=at(10_000_000), b=at(10_000_000))
    for start in (0, 60_000):
        join.push(a=at(*range(start, start + 60_000)))
    metrics = join.metrics.streams["a"]
    late = join.late()["a"]["ts"].to_pylist()
    assert metrics.late == 120_000
    assert metrics.late_forgotten == 120_000 - len(late)
    assert late == list(range(metrics.late_forgotten, 120_000))


def test_late_has_an_entry_for_every_stream_from_the_start() -> None:
    join = query(a={}, b={}, c={}).start()
    assert {name: table.num_rows for name, table in join.late().items()} == dict.fromkeys("abc", 0)


def test_a_tuple_leaves_when_the_watermark_has_passed_its_window() -> None:
    join = query(a={"window": "3 us"}, b={"window": "0 us"}).start()
    join.push(a=at(1, 2, 3), b=at(1, 2, 3))
    live = {name: stream.live for name, stream in join.metrics.streams.items()}
    assert live == {"a": 3, "b": 1}  # the watermark is 3
    join.push(a=at(6), b=at(5))
    streams = join.metrics.streams
    assert (streams["a"].live, streams["b"].live) == (3, 1)  # a from 2 on, b from 5 on
    assert (streams["a"].expired, streams["b"].expired) == (1, 3)
    assert join.metrics.live == 4


def test_advance_moves_a_stream_by_hand() -> None:
    join = query(a={"lateness": "100 us"}, b={}).start()
    join.push(a=at(5))
    assert join.advance("a", 7).num_rows == 0
    before = join.metrics
    assert before.streams["a"].watermark == 7  # lateness is about what was seen
    assert before.watermark is None
    join.advance("b", 6)
    assert join.metrics.watermark == 6
    join.push(b=at(5, 6))
    assert times(join.late()["b"]) == [5]


def test_advance_never_goes_back() -> None:
    join = query(a={}, b={}).start()
    join.push(a=at(10), b=at(10))
    join.advance("a", 3)
    assert join.metrics.streams["a"].watermark == 10
    assert join.metrics.watermark == 10


def test_advance_lets_tuples_leave() -> None:
    join = query(a={}, b={}).start()
    join.push(a=at(1, 5), b=at(2))
    join.advance("a", 12)
    assert join.metrics.live == 3  # b is still at 2
    join.advance("b", 12)
    assert {n: s.live for n, s in join.metrics.streams.items()} == {"a": 1, "b": 1}
    join.advance("b", 1000)
    join.advance("a", 1000)
    assert join.metrics.live == 0
    assert join.metrics.streams["a"].expired == 2


def test_advance_takes_a_datetime_of_any_zone() -> None:
    start = datetime(2024, 5, 1, 12, tzinfo=UTC)
    rows = pa.table({"ts": pa.array([start], pa.timestamp("us", "UTC")), "k": [1]})
    join = query(a={}, b={}).start()
    join.push(a=rows, b=rows)
    hour = timedelta(hours=1)
    join.advance("a", (start + hour).astimezone(timezone(9 * hour)))
    micros = int(start.timestamp()) * 1_000_000
    assert join.metrics.streams["a"].watermark == micros + 3_600_000_000


def test_advance_before_any_batch() -> None:
    join = query(a={}, b={}).start()
    join.advance("a", 50)
    join.advance("b", 50)
    join.push(a=at(49, 50))
    assert times(join.late()["a"]) == [49]


def test_an_idle_stream_no_longer_holds_back_the_watermark() -> None:
    wall = Wall()
    join = query(a={}, b={"idle_timeout": "10 seconds"}).start(clock=wall)
    join.push(a=at(5), b=at(2))
    wall.now += 9
    join.push(a=at(50))
    assert join.metrics.watermark == 2
    wall.now += 2
    join.push(a=at(51))
    assert join.metrics.watermark == 51


def test_an_idle_stream_that_never_spoke_is_left_out_too() -> None:
    wall = Wall()
    join = query(a={}, b={"idle_timeout": "10 seconds"}).start(clock=wall)
    wall.now += 11
    join.push(a=at(50))
    assert join.metrics.watermark == 50
    assert join.metrics.streams["b"].watermark is None


def test_an_idle_stream_coming_back_behind_the_watermark_is_late() -> None:
    wall = Wall()
    join = query(a={}, b={"idle_timeout": "10 seconds"}).start(clock=wall)
    join.push(a=at(5), b=at(2))
    wall.now += 11
    join.push(a=at(50))
    result = join.push(b=at(49, 50))
    assert times(result, "b_ts") == [50]
    assert times(join.late()["b"]) == [49]
    assert join.metrics.watermark == 50


def test_the_push_that_wakes_a_stream_still_finds_it_idle() -> None:
    """Its silence has passed by then, so the watermark at the start is that of the others."""
    wall = Wall()
    join = query(a={}, b={"idle_timeout": "10 seconds"}).start(clock=wall)
    join.push(a=at(50), b=at(2))
    wall.now += 11
    join.push(b=at(3, 50))
    assert times(join.late()["b"]) == [3]


def test_a_stream_that_woke_up_counts_again() -> None:
    wall = Wall()
    join = query(a={}, b={"idle_timeout": "10 seconds"}).start(clock=wall)
    join.push(a=at(5), b=at(2))
    wall.now += 11
    join.push(a=at(50))
    join.push(b=at(60))
    join.push(a=at(90))
    assert join.metrics.watermark == 60
    wall.now += 11
    join.push(a=at(91))
    assert join.metrics.watermark == 91


def test_an_empty_batch_does_not_wake_a_stream() -> None:
    wall = Wall()
    join = query(a={}, b={"idle_timeout": "10 seconds"}).start(clock=wall)
    join.push(a=at(5), b=at(2))
    wall.now += 9
    join.push(b=at())
    wall.now += 2
    join.push(a=at(50))
    assert join.metrics.watermark == 50


def test_when_all_are_idle_the_watermark_stays() -> None:
    wall = Wall()
    idle = {"idle_timeout": "10 seconds"}
    join = query(a=idle, b=idle).start(clock=wall)
    join.push(a=at(5), b=at(2))
    wall.now += 100
    join.push()
    assert join.metrics.watermark == 2
    join.push(b=at(1, 2))
    assert times(join.late()["b"]) == [1]


def test_without_idle_timeout_a_silent_stream_holds_for_ever() -> None:
    wall = Wall()
    join = query(a={}, b={}).start(clock=wall)
    join.push(a=at(5), b=at(2))
    wall.now += 1e9
    join.push(a=at(50))
    assert join.metrics.watermark == 2


def test_times_before_the_epoch() -> None:
    join = query(a={}, b={}).start()
    assert join.push(a=at(-100, -5), b=at(-7)).num_rows == 1
    assert join.metrics.watermark == -7


@pytest.mark.parametrize(
    ("unit", "per_tick"), [("s", 1_000_000), ("ms", 1000), ("us", 1), ("ns", None)]
)
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_every_unit_of_time(unit: str, per_tick: int | None, zone: str | None) -> None:
    """Times come out as they went in; event_time is in microseconds of the same zone."""
    ticks = [7, 8] if per_tick else [7000, 8000]
    rows = pa.table({"ts": pa.array(ticks, pa.timestamp(unit, zone)), "k": [1, 2]})
    join = query(a={}, b={}).start()
    result = join.push(a=rows, b=rows)
    assert result.schema.field("a_ts").type == pa.timestamp(unit, zone)
    assert result.schema.field("event_time").type == pa.timestamp("us", zone)
    micros = [tick * per_tick if per_tick else tick // 1000 for tick in ticks]
    assert times(result, "event_time") == micros
    assert join.metrics.watermark == max(micros)


def test_streams_may_differ_in_unit_and_zone() -> None:
    a = pa.table({"ts": pa.array([3], pa.timestamp("s", "Asia/Tokyo")), "k": [1]})
    b = pa.table({"ts": pa.array([3_000_004], pa.timestamp("us", "UTC")), "k": [1]})
    result = query(a={}, b={}).start().push(a=a, b=b)
    assert result.num_rows == 1
    assert result.schema.field("event_time").type == pa.timestamp("us", "Asia/Tokyo")
    assert times(result, "event_time") == [3_000_004]


def test_every_tuple_is_accounted_for() -> None:
    join = query(a={}, b={}).start()
    batch = pa.table({"ts": [5, 6, 50, 51], "k": [1, None, 2, None]})
    for part in (batch, batch):
        join.push(a=part, b=part)
    for each in join.metrics.streams.values():
        assert each.keyless == 3
        assert each.arrived == each.late + each.keyless + each.live + each.expired
