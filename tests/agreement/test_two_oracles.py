"""penstock, the oracle and a second oracle say the same of small random joins.

The second oracle was written from docs/semantics.md alone. Each join is a function of its seed; one
that fails can be shown by `PYTHONPATH=tests python -m support.small_joins SEED`.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock as ps
from support import second_oracle
from support.small_joins import INDEXES, JOIN_TYPES, small_join
from support.small_judge import disagreements
from support.thoroughness import scaled

SEEDS = scaled(quick=400, ci=4_000, all=100_000)
KINDS = ("time", "rows", "rows per key", "arrivals", "tumbling", "since", "unbounded")
CALLS = ("push", "advance", "restart", "finish")
PARTS = scaled(quick=4, ci=20, all=100)


@pytest.mark.parametrize("part", range(PARTS))
def test_penstock_and_both_oracles_agree(part: int) -> None:
    wrong = {}
    for seed in range(part, SEEDS, PARTS):
        found = disagreements(seed)
        if found:
            wrong[seed] = found
    lines = [
        f"PYTHONPATH=tests python -m support.small_joins {seed}\n  " + "\n  ".join(found)
        for seed, found in list(wrong.items())[:5]
    ]
    assert not wrong, f"{len(wrong)} of {SEEDS // PARTS} joins:\n" + "\n".join(lines)


def test_a_wrong_answer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged by an oracle without windows, some of a few joins are wrong, and said to be."""
    monkeypatch.setattr(second_oracle._Answer, "_in_window", lambda *_: True)
    found = [line for seed in range(30) for line in disagreements(seed)]
    assert any(line.startswith("penstock, call") and "results" in line for line in found)
    assert any(line.startswith("first oracle, call") and "results" in line for line in found)


def test_all_options_are_drawn() -> None:
    """Every join type, kind of window, index, call and form of `on=` is among the joins."""
    joins = [small_join(seed) for seed in range(300)]
    questions = [join.question for join in joins]
    windows = {side.window.kind for question in questions for side in question.sides}
    indexes = {index for join in joins for plan in join.plans for index in (plan or {}).values()}
    terms = {type(term).__name__ for question in questions for term in question.where}
    assert {question.how for question in questions} == set(JOIN_TYPES)
    assert {len(question.sides) for question in questions} == {2, 3, 4}
    assert windows == set(KINDS)
    assert indexes == set(INDEXES)
    assert terms == {"Comparison", "Between", "Distance", "Function"}
    assert {call.kind for join in joins for call in join.calls} == set(CALLS)
    assert {type(join.arguments["on"]) for join in joins} == {str, list, dict, type(None)}
    assert any(question.bounds and question.bounds[1] < 0 for question in questions)
    assert any(question.bounds and question.bounds[0] > 0 for question in questions)
    assert any(side.takes_arrival_time for question in questions for side in question.sides)
    assert any(side.idle_us for question in questions for side in question.sides)


def test_a_fraction_beside_unsigned_integers_stays_a_fraction() -> None:
    """Cast to the column's type it would be 0, and let 0 pass."""
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    query = ps.WindowJoin(streams, on="k", within="10 us", where="b.x >= 0.5")
    with query.start() as join:
        rows = {"ts": [0, 0], "k": [1, 1], "x": pa.array([0, 1], pa.uint64())}
        join.push(b=pa.table(rows))
        assert join.metrics.streams["b"].filtered == 1
