"""The limit holds whatever comes: a burst, one hot key, wide rows, a partner that is silent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.model.limits import POLICIES, Memory
from penstock.windows import invariants
from support.limited import check_books
from support.strategies import INDEXES
from support.thoroughness import often

QUERY = ps.WindowJoin(
    [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within="100 us"
)
MANY = 10_000


def at(ts: int, keys: Any, **columns: Any) -> pa.Table:
    return pa.table({"ts": np.full(len(keys), ts), "k": keys, **columns})


def is_within(join: ps.Join, memory: Any) -> None:
    """Also of what it says of itself otherwise."""
    limits = ps.Limits(memory).memory
    metrics = join.metrics
    check_books(metrics, "")
    if limits.rows is None:
        assert metrics.bytes <= limits.bytes
    else:
        assert metrics.live <= limits.rows


@pytest.mark.parametrize("memory", ["1000 rows", Memory(rows=0), "1 MiB"], ids=str)
@pytest.mark.parametrize("shed", often(POLICIES, "prob", "random"))
def test_a_burst(shed: str, memory: Any) -> None:
    """Of one instant, far beyond the limit: it meets itself, and is then cut down."""
    join = QUERY.start(limits=ps.Limits(memory, shed=shed))
    keys = np.arange(MANY)
    join.push(a=at(5, keys))
    is_within(join, memory)
    join.push(b=at(6, keys))
    is_within(join, memory)
    if join.metrics.lost_interval is None:
        assert join.metrics.produced + join.metrics.lost == MANY
    before = join.metrics.produced
    join.push(a=at(200, keys + MANY), b=at(200, keys + MANY))
    is_within(join, memory)
    if memory != "1 MiB":
        assert join.metrics.produced == before + MANY
    if join.metrics.lost_interval is None:
        assert join.metrics.produced + join.metrics.lost == 2 * MANY
    invariants.check(join.driver.windows)


@pytest.mark.parametrize("index", INDEXES)
def test_one_hot_key(index: str) -> None:
    for shed in POLICIES:
        join = QUERY.start(limits=ps.Limits("50 rows", shed=shed), indexes=index)
        whole = QUERY.start()
        for start in range(0, 400, 100):
            ts = np.arange(start, start + 100)
            batch = {name: pa.table({"ts": ts, "k": [7] * 100}) for name in "ab"}
            join.push(batch)
            whole.push(batch)
            is_within(join, "50 rows")
            assert join.metrics.produced + join.metrics.lost == whole.metrics.produced
        join.driver.check()


@pytest.mark.parametrize("kind", ["text", "nested", "dictionary"])
@pytest.mark.parametrize("pool", ["shared", "fixed"])
def test_wide_rows(kind: str, pool: str) -> None:
    """Some of them wider than the limit on their own."""
    rng = np.random.default_rng(5)
    join = QUERY.start(limits=ps.Limits("300 KiB", shed="random", pool=pool))
    whole = QUERY.start()
    for step in range(60):
        widths = rng.choice((0, 10, 1000, 20_000, 400_000), 6, p=(0.2, 0.3, 0.3, 0.15, 0.05))
        texts = pa.array(["x" * width for width in widths])
        if kind == "nested":
            texts = pa.array([[text] for text in texts.to_pylist()])
        if kind == "dictionary":
            texts = texts.dictionary_encode()
        ts = step * 10 + np.arange(6)
        batch = {
            name: pa.table({"ts": ts, "k": rng.integers(0, 5, 6), "p": texts}) for name in "ab"
        }
        produced = join.push(batch)
        produced.validate(full=True)
        whole.push(batch)
        is_within(join, "300 KiB")
        if join.metrics.lost_interval is None:
            assert join.metrics.produced + join.metrics.lost == whole.metrics.produced
        if step == 30:
            join = QUERY.restore(
                join.snapshot(), limits=ps.Limits("300 KiB", shed="random", pool=pool)
            )
            is_within(join, "300 KiB")
    assert join.metrics.produced > 0
    join.driver.check()


@pytest.mark.parametrize("memory", ["10 rows", "1 MiB"])
def test_a_smaller_limit_gives_memory_back_at_once(memory: str) -> None:
    join = QUERY.start(limits=ps.Limits("1 GiB", shed="random"))
    if memory.endswith("rows"):
        join = QUERY.start(limits=ps.Limits("1000000 rows", shed="random"))
    join.push(a=at(5, np.arange(MANY), p=["y" * 30] * MANY))
    assert join.metrics.live == MANY
    during = join.metrics.bytes
    join.limit(memory=memory)
    is_within(join, memory)
    assert join.metrics.live < MANY
    join.push(b=at(6, np.arange(MANY)[:3000]))
    is_within(join, memory)
    if join.metrics.lost_interval is None:
        assert join.metrics.produced + join.metrics.lost == 3000
    if memory.endswith("MiB"):
        assert join.metrics.bytes < during / 2


DAY_US = 86_400_000_000
MINUTE_US = 60_000_000


@pytest.mark.parametrize("memory", ["1000 rows", "2 MiB"])
@pytest.mark.parametrize("how", often(["exact", "sampled", "off"], "exact"))
@pytest.mark.parametrize("within", often(["1 hour", "unbounded"], "1 hour"))
def test_an_idle_partner_for_a_year(memory: str, how: str, within: str) -> None:
    """Its watermark stands still, so nothing expires, and every key is new: memory stays flat."""
    query = ps.WindowJoin(
        [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within=within
    )
    limits = ps.Limits(memory, shed="prob", loss=how, ghosts=2000)
    join = query.start(limits=limits)
    one = pa.table({"ts": [0], "k": ["key 0"], "p": ["x"]})
    join.push(b=one)
    size, saved = [], []
    for day in range(365):
        minutes = np.arange(day * 1440, (day + 1) * 1440)
        texts = pa.array([f"key {minute}" for minute in minutes.tolist()])
        batch = pa.table({"ts": minutes * MINUTE_US, "k": texts, "p": texts})
        join.push(a=batch)
        metrics = join.metrics
        assert metrics.ghosts <= 2000
        if memory.endswith("rows"):
            assert metrics.live <= 1000
        else:
            assert metrics.bytes <= 2 << 20
        size.append(metrics.bytes)
        if day % 30 == 29:
            saved.append(len(join.snapshot()))
    peaks = [max(size[day : day + 30]) for day in range(0, 360, 30)]
    # How many ghosts there are just now differs; that there are more and more must not be.
    assert max(peaks[6:]) <= 1.1 * max(peaks[:6]), peaks
    assert max(saved[6:]) <= 1.1 * max(saved[:6]), saved
    join.push(b=pa.table({"ts": [364 * DAY_US], "k": [f"key {364 * 1440}"], "p": ["x"]}))
    check_books(join.metrics, "after a year")


def test_late_rows_are_within_a_limit_in_bytes() -> None:
    """Nobody asks for them: the newest are kept in a part of the limit, the others are counted."""
    limit = 1 << 20
    join = QUERY.start(limits=ps.Limits("1 MiB", shed="random"))
    join.push(a=at(10_000, [1], p=["x"]), b=at(10_000, [1], p=["x"]))
    for _ in range(50):
        join.push(a=at(5, np.arange(400), p=["x" * 300] * 400))
        footprint = join.footprint()
        assert footprint["late"] <= limit // 8
        assert sum(footprint.values()) <= limit
    metrics = join.metrics.streams["a"]
    assert metrics.late == 20_000
    held = join.late()["a"]
    assert held.num_rows + metrics.late_forgotten == metrics.late
    assert held.num_rows >= 100
    assert join.footprint()["late"] == 0


def test_a_smaller_limit_holds_for_late_rows_too() -> None:
    join = QUERY.start(limits=ps.Limits("4 MiB", shed="random"))
    join.push(a=at(10_000, [1], p=["x"]), b=at(10_000, [1], p=["x"]))
    join.push(a=at(5, np.arange(500), p=["x" * 300] * 500))
    assert join.metrics.streams["a"].late_forgotten == 0
    saved = join.snapshot()
    join.limit(memory="400 KiB")
    assert sum(join.footprint().values()) <= 400 << 10
    assert 0 < join.metrics.streams["a"].late_forgotten < 500
    again = QUERY.restore(saved, limits=ps.Limits("400 KiB", shed="random"))
    assert sum(again.footprint().values()) <= 400 << 10
    assert again.metrics.streams["a"].late_forgotten == join.metrics.streams["a"].late_forgotten


def test_a_limit_does_not_raise_memory() -> None:
    """Of tuples that are dropped less is kept than they took themselves."""
    ts = np.arange(200_000) * 1000
    query = ps.WindowJoin(QUERY.streams, on="k", within="50 seconds")
    rng = np.random.default_rng(3)
    tables = {name: pa.table({"ts": ts, "k": rng.permutation(200_000)}) for name in "ab"}
    peaks = {}
    for rows in (None, 5_000):
        join = query.start(limits=rows and ps.Limits(f"{rows} rows", shed="prob"))
        peaks[rows] = 0
        for start in range(0, 120_000, 2_000):
            join.push({name: table.slice(start, 2_000) for name, table in tables.items()})
            peaks[rows] = max(peaks[rows], join.metrics.bytes)
    assert join.metrics.ghosts <= 20_000
    assert peaks[5_000] < 0.6 * peaks[None]
