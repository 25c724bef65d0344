"""penstock, the oracle and a second oracle say the same of small random joins.

The second oracle was written from docs/semantics.md alone. Each join is a function of its seed; one
that fails can be shown by `PYTHONPATH=tests python -m support.small_joins SEED`.
"""

from __future__ import annotations

import pytest

from support.small_judge import disagreements
from support.thoroughness import scaled

SEEDS = scaled(quick=400, all=100_000)
PARTS = scaled(quick=4, all=100)


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
