"""A cap on how far a watermark goes at once: a time far ahead does not make all others late."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import penstock as ps

FAR = 10**15


def query(max_jump: str | None, **more: Any) -> ps.WindowJoin:
    streams = [ps.Stream(name, time="ts", max_jump=max_jump, **more) for name in "ab"]
    return ps.WindowJoin(streams, on="k", within="100 us")


def rows(*times: int) -> pa.Table:
    return pa.table({"ts": pa.array(times, pa.int64()), "k": [1] * len(times)})


def test_without_a_cap_a_time_far_ahead_makes_everything_late() -> None:
    join = query(None).start()
    join.push(a=rows(1, FAR), b=rows(1, FAR))
    join.push(a=rows(2, 3), b=rows(2, 3))
    assert join.metrics.late == 4
    assert join.metrics.streams["a"].jumps == 0


def test_with_one_the_stream_goes_on_behind_it() -> None:
    join = query("50 us").start()
    assert join.push(a=rows(1, 2, 10), b=rows(1)).num_rows == 3
    # It takes part in the join, and moves the watermark by the cap.
    assert join.push(a=rows(11, FAR), b=rows(12, FAR)).num_rows == 6
    metrics = join.metrics
    assert metrics.watermark == 11 + 50
    assert [each.jumps for each in metrics.streams.values()] == [1, 1]
    assert "a: 5 arrived, 0 late" in str(metrics)
    assert "1 beyond max_jump" in str(metrics)
    assert join.push(a=rows(70), b=rows(70)).num_rows == 7
    assert join.metrics.late == 0


def test_a_stream_that_has_really_gone_on_is_followed_push_by_push() -> None:
    join = query("50 us").start()
    join.push(a=rows(0), b=rows(0))
    reached = []
    for _ in range(4):
        join.push(a=rows(170), b=rows(170))
        reached.append(join.metrics.watermark)
    assert reached == [50, 100, 150, 170]
    assert join.metrics.streams["a"].jumps == 3


def test_times_that_follow_one_another_are_no_jump() -> None:
    join = query("50 us").start()
    join.push(a=rows(0), b=rows(0))
    join.push(a=rows(*range(0, 1000, 50)), b=rows(*range(25, 1000, 50)))
    assert join.metrics.watermark == 950
    assert join.metrics.streams["a"].jumps == 0


@pytest.mark.parametrize("wrong", [0, FAR])
def test_the_first_push_begins_at_its_median(wrong: int) -> None:
    """Neither a time of 1970 nor one far ahead decides where a stream begins."""
    now = 10**12
    join = query("50 us").start()
    join.push(a=rows(wrong, now, now + 1, now + 2), b=rows(now, now + 1, now + 2, wrong))
    assert join.metrics.watermark == now + 2 + (50 if wrong == FAR else 0)


def test_a_lateness_is_taken_off_after_the_cap() -> None:
    join = query("50 us", lateness="20 us").start()
    join.push(a=rows(100), b=rows(100))
    join.push(a=rows(FAR), b=rows(FAR))
    assert join.metrics.watermark == 130


def test_a_snapshot_keeps_the_count() -> None:
    join = query("50 us").start()
    join.push(a=rows(0), b=rows(0))
    join.push(a=rows(FAR))
    again = query("50 us").restore(join.snapshot())
    assert again.metrics == join.metrics
    assert again.metrics.streams["a"].jumps == 1


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"max_jump": "0 s"}, "has max_jump='0 s', and its watermark could never move"),
        ({"max_jump": "-1 s"}, "the max_jump of stream 'a' cannot be negative"),
        ({"max_jump": 5}, "the max_jump of stream 'a' must be text or a timedelta, got 5"),
        ({"max_jump": "1 s", "time": ps.ARRIVAL}, "takes its time of arrival, and has max_jump"),
    ],
)
def test_what_is_refused(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ps.QueryError, match=complaint):
        ps.Stream("a", **{"time": "ts", **given})


def test_it_is_refused_on_spark() -> None:
    with pytest.raises(ps.PlanError, match="stream 'a' has max_jump='50 us', and on Spark"):
        query("50 us").on_spark(a=None, b=None)
