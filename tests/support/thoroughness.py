"""How thorough a run of the tests is, in one place.

`PENSTOCK_TESTS=quick`, the default and what `make test` runs, takes a cut of every family and
draws the same examples each time. `PENSTOCK_TESTS=all`, what `make test-all` runs, takes all seeds
and draws anew each time. A test that could try more in more time asks `scaled` how much to try:

    SEEDS = scaled(quick=20, all=1000)
"""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import settings
from numba import config

WAYS = ("quick", "all")
WAY = os.getenv("PENSTOCK_TESTS") or "quick"
if WAY not in WAYS:
    raise ValueError(f"PENSTOCK_TESTS must be one of {WAYS}, got {WAY!r}")

Amount = TypeVar("Amount")


def scaled(quick: Amount, all: Amount) -> Amount:
    """As much as a run as thorough as this one takes."""
    return quick if WAY == "quick" else all


# Hypothesis by the same name; `HYPOTHESIS_PROFILE=thorough` tries most.
settings.register_profile(
    "quick", deadline=None, derandomize=True, database=None, print_blob=True, max_examples=20
)
settings.register_profile("all", deadline=None, print_blob=True, max_examples=60)
# Without the JIT a kernel is about a hundred times slower.
settings.register_profile("quick without the JIT", settings.get_profile("quick"), max_examples=10)
settings.register_profile("all without the JIT", settings.get_profile("all"), max_examples=25)
settings.register_profile("thorough", settings.get_profile("all"), max_examples=5_000)
settings.load_profile(
    f"{WAY} without the JIT" if config.DISABLE_JIT else os.getenv("HYPOTHESIS_PROFILE", WAY)
)

EXAMPLES = settings().max_examples


def examples(share: float) -> settings:
    """For a test whose examples are dear: this share of what others try."""
    return settings(max_examples=max(1, round(EXAMPLES * share)))
