"""A limit in bytes gives what the rows give that fit into it."""

from __future__ import annotations

import pytest

import penstock as ps
from support.battery import KINDS, Size, need, run
from support.thoroughness import scaled

SIZE = Size(4_000, 12_000, 24)
SEEDS = scaled(quick=1, all=10)


@pytest.mark.parametrize("part", [0.3, 0.5, 0.75])
@pytest.mark.parametrize("name", ["foreign keys, some twice", "Zipf 1", "drifting hot keys"])
def test_bytes_give_what_rows_give(name: str, part: float) -> None:
    """As many rows as there were on average while tuples had to go."""
    size = KINDS[name].in_bytes(4_000, 12_000, 24)
    for seed in range(SEEDS):
        memory = f"{int(part * need(name, seed, size).bytes)} B"
        in_bytes, held = run(KINDS[name], seed, size, ps.Limits(memory, shed="prob", seed=seed))
        limits = ps.Limits(f"{round(held.mean_rows)} rows", shed="prob", seed=seed)
        in_rows, _ = run(KINDS[name], seed, size, limits)
        assert in_bytes.produced >= 0.97 * in_rows.produced, (seed, held, memory)


@pytest.mark.parametrize("shed", ["prob", "oldest", "random"])
@pytest.mark.parametrize("name", ["foreign keys", "Zipf 1", "three streams"])
def test_a_limit_above_the_need_loses_nothing(name: str, shed: str) -> None:
    """The need under limits is what is held where they are far away: what the join takes without
    limits, what is learned, and the order in which tuples would go; and a little more, for what is
    held is looked at after each push, not while it is worked on."""
    whole = need(name, 0, SIZE)
    _, far = run(KINDS[name], 0, SIZE, ps.Limits("1 GiB", shed=shed))
    memory = f"{int(1.02 * max(far.bytes, whole.bytes))} B"
    metrics, held = run(KINDS[name], 0, SIZE, ps.Limits(memory, shed=shed))
    assert (metrics.shed, metrics.lost, metrics.recall_interval) == (0, 0, (1.0, 1.0))
    assert metrics.produced == whole.produced
    assert held.rows == whole.rows
