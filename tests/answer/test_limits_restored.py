"""A join under limits that goes on under others: what is lost is counted as before, or refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps

QUERY = ps.WindowJoin(
    [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within="900 us"
)


def rows(begin: int, count: int = 100) -> pa.Table:
    ts = np.arange(begin, begin + count)
    return pa.table({"ts": ts, "k": ts % 3})


def lost_of(before: ps.Limits, after: ps.Limits) -> tuple[int, ps.Metrics]:
    """How many results are due, and what is said of them after a restart under other limits."""
    exact, join = QUERY.start(), QUERY.start(limits=before)
    due = sum(exact.push(a=rows(at), b=rows(at)).num_rows for at in (0, 100))
    join.push(a=rows(0), b=rows(0))
    restored = QUERY.restore(join.snapshot(), limits=after)
    restored.push(a=rows(100), b=rows(100))
    return due, restored.metrics


@pytest.mark.parametrize(
    "after", [ps.Limits("2 rows"), ps.Limits(service_rate=1e9, drop="tuple")], ids=str
)
def test_ghosts_go_on_counting(after: ps.Limits) -> None:
    due, metrics = lost_of(ps.Limits("2 rows"), after)
    assert metrics.produced + metrics.lost == due


def test_limits_that_remember_nothing_are_refused() -> None:
    """They would count nothing of what is shed already, and call that exact."""
    with pytest.raises(ps.SnapshotError, match=r"tuples that were shed are remembered.*drop="):
        lost_of(ps.Limits("2 rows"), ps.Limits(service_rate=1e9))


@pytest.mark.parametrize(
    "after", [ps.Limits("9999 rows", loss="sampled"), ps.Limits(service_rate=1e9)], ids=str
)
def test_an_estimate_stays_one(after: ps.Limits) -> None:
    due, metrics = lost_of(ps.Limits(service_rate=10, loss="sampled"), after)
    assert metrics.lost_interval is not None
    low, high = metrics.lost_interval
    assert low <= due - metrics.produced <= high


def test_better_chances_are_not_worse_for_what_is_worth_most() -> None:
    join = QUERY.start(limits=ps.Limits("100 rows"))
    shedder = join.driver.shedder
    assert shedder.limits is not None
    budget = join.driver.windows.state.budget
    budget["uniform"], budget["slope"] = 0.4, 3.4
    shedder.ghosts.relax()
    assert budget["uniform"][0] > 0.4
    assert budget["slope"][0] >= 3.4


def test_a_sample_that_is_over_leaves_nothing_to_relax() -> None:
    """Ghosts were sampled and have all expired; what goes on remembers none."""
    join = QUERY.start(limits=ps.Limits("4 rows", ghosts=5))
    join.push(a=rows(0), b=rows(0))
    assert join.metrics.lost_interval is not None
    join.push(a=rows(10_000), b=rows(10_000, 2))
    join.push(a=rows(20_000, 1), b=rows(20_000, 1))
    restored = QUERY.restore(join.snapshot(), limits=ps.Limits(service_rate=1e9))
    assert len(restored.push(a=rows(20_001), b=rows(20_001)))
