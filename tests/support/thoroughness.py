"""How thorough a run of the tests is, in one place.

| `PENSTOCK_TESTS` | run by | tries |
|---|---|---|
| `quick`, the default | `make test` | a cut of every family, the same examples each time |
| `ci` | `.ci/run` | more, the same each time |
| `all` | `make test-all` | all seeds, and examples drawn anew each time |

A test that could try more in more time asks `scaled` how much to try:

    SEEDS = scaled(quick=20, all=1000)

A test that is left out of `make test` as a whole is marked `slow`, and `often` does so for all but
some of the values that it is run with.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from numba import config

WAYS = ("quick", "ci", "all")
WAY = os.getenv("PENSTOCK_TESTS") or "quick"
if WAY not in WAYS:
    raise ValueError(f"PENSTOCK_TESTS must be one of {WAYS}, got {WAY!r}")

Amount = TypeVar("Amount")


def scaled(quick: Amount, all: Amount, ci: Amount | None = None) -> Amount:
    """As much as a run as thorough as this one takes. For `ci`, when it is not given and the
    others are whole numbers: their geometric mean; otherwise as `quick`."""
    if WAY == "quick":
        return quick
    if WAY == "all":
        return all
    if ci is not None:
        return ci
    if isinstance(quick, int) and isinstance(all, int):
        return type(quick)(math.isqrt(quick * all))
    return quick


def often(values: Iterable[Any], *quick: Any) -> list[Any]:
    """Values for `pytest.mark.parametrize`, of which `make test` runs the quick ones only."""
    return [pytest.param(each, marks=() if each in quick else pytest.mark.slow) for each in values]


# Hypothesis by the same name; `HYPOTHESIS_PROFILE=thorough` tries most.
settings.register_profile(
    "quick", deadline=None, derandomize=True, database=None, print_blob=True, max_examples=8
)
settings.register_profile("ci", settings.get_profile("quick"), max_examples=16)
settings.register_profile("all", deadline=None, print_blob=True, max_examples=60)
# Without the JIT a kernel is about a hundred times slower.
settings.register_profile("quick without the JIT", settings.get_profile("quick"), max_examples=5)
settings.register_profile("ci without the JIT", settings.get_profile("quick"), max_examples=5)
settings.register_profile("all without the JIT", settings.get_profile("all"), max_examples=25)
settings.register_profile("thorough", settings.get_profile("all"), max_examples=5_000)
settings.load_profile(
    f"{WAY} without the JIT" if config.DISABLE_JIT else os.getenv("HYPOTHESIS_PROFILE", WAY)
)

EXAMPLES = settings().max_examples


def examples(share: float) -> settings:
    """For a test whose examples are dear: this share of what others try."""
    return settings(max_examples=max(1, round(EXAMPLES * share)))
