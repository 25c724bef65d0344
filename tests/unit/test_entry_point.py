"""Entry points of kernels: one for each form of their arguments, found without asking numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from penstock.kernels.jit import entry_point, kernel


class State(NamedTuple):
    values: Any


@kernel
def total(state: State, more: int) -> Any:
    result = state.values[0]
    for at in range(1, len(state.values)):
        result += state.values[at]
    return result + more


def frozen(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values.flags.writeable = False
    return values


def test_arguments_of_one_form_have_one_entry_point() -> None:
    code = entry_point(total, (State(np.arange(3)), 1))
    assert entry_point(total, (State(np.arange(50)), 7)) is code
    assert code(State(np.arange(4)), 1) == 7


@pytest.mark.parametrize(
    "values",
    [np.arange(6.0) / 4, np.arange(12)[::2], frozen(np.arange(6)), np.arange(6, dtype=np.int32)],
    ids=["floats", "strided", "read only", "narrow"],
)
def test_another_form_has_its_own(values: np.ndarray[Any, Any]) -> None:
    """Code for one form would read the other's memory wrongly."""
    entry_point(total, (State(np.arange(6)), 1))
    assert entry_point(total, (State(values), 1))(State(values), 1) == values.sum() + 1
