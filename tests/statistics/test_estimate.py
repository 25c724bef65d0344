"""Aggregates of the exact answer, from results of which random tuples were shed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps
from support.thoroughness import scaled

ROWS = 2_000
SEEDS = scaled(quick=20, all=40)


def query() -> ps.WindowJoin:
    return ps.WindowJoin(
        [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within="200 milliseconds"
    )


def tables(seed: int) -> dict[str, pa.Table]:
    rng = np.random.default_rng(seed)
    return {
        name: pa.table(
            {
                "ts": np.arange(ROWS) * 1_000,
                "k": rng.zipf(1.4, ROWS) % 50,
                "v": rng.exponential(1, ROWS),
            }
        )
        for name in ("a", "b")
    }


def only_key_1(table: pa.Table) -> pa.Table:
    return table.filter(pc.equal(table["a_k"], 1))


def test_the_interval_holds_the_truth() -> None:
    held = {"sum": 0, "mean": 0, "count": 0}
    for seed in range(SEEDS):
        exact = query().start().push(tables(seed))
        limits = ps.Limits(memory="150 rows", shed="random", seed=seed)
        with query().start(limits=limits) as join:
            results = join.push(tables(seed))
        assert len(results) < len(exact)
        for what, told, truth in (
            ("sum", ps.estimate(results, join, sum="a_v"), pc.sum(exact["a_v"]).as_py()),
            ("mean", ps.estimate(results, join, mean="b_v"), pc.mean(exact["b_v"]).as_py()),
            ("count", ps.estimate(only_key_1(results), join), len(only_key_1(exact))),
        ):
            low, high = told.interval
            held[what] += low <= truth <= high
            assert low < told.value < high
            assert (high - low) < 0.5 * truth  # and says something
    assert min(held.values()) >= 0.9 * SEEDS, held


def test_the_number_of_all_results_is_known() -> None:
    exact = query().start().push(tables(1))
    with query().start(limits=ps.Limits(memory="150 rows", shed="random")) as join:
        results = join.push(tables(1))
    assert ps.estimate(results, join).value == pytest.approx(len(exact))


def test_without_limits_it_is_the_value_itself() -> None:
    with query().start() as join:
        results = join.push(tables(1))
    told = ps.estimate(results, join, sum="a_v")
    assert told.value == pytest.approx(pc.sum(results["a_v"]).as_py())
    assert told.interval == (told.value, told.value)


def test_it_is_wider_when_the_loss_is_sampled() -> None:
    widths = []
    for ghosts in (None, 50):
        limits = ps.Limits(memory="150 rows", shed="random", ghosts=ghosts)
        with query().start(limits=limits) as join:
            results = join.push(tables(1))
        low, high = ps.estimate(results, join, sum="a_v").interval
        widths.append(high - low)
    assert widths[0] < widths[1]


@pytest.mark.parametrize(
    ("limits", "asked", "told"),
    [
        (ps.Limits(memory="9 rows", shed="prob"), {}, "no random sample"),
        (ps.Limits(memory="9 rows", shed="random", loss="off"), {}, "not known which part"),
        (ps.Limits(memory="9 rows", shed="random"), {"sum": "a_v", "mean": "a_v"}, "not both"),
        (ps.Limits(memory="9 rows", shed="random"), {"sum": "x"}, "no column is called 'x'"),
    ],
)
def test_what_cannot_be_estimated(limits: ps.Limits, asked: dict[str, str], told: str) -> None:
    with query().start(limits=limits) as join:
        results = join.push(tables(1))
    with pytest.raises(ps.PenstockError, match=told):
        ps.estimate(results, join, **asked)


def test_the_times_of_all_streams_are_needed() -> None:
    with query().start(limits=ps.Limits(memory="9 rows", shed="random")) as join:
        results = join.push(tables(1)).drop_columns(["b_ts"])
    with pytest.raises(ps.InputError, match="lacks the time of stream 'b'"):
        ps.estimate(results, join)
    with pytest.raises(ps.InputError, match="takes a table of results"):
        ps.estimate([1, 2], join)
