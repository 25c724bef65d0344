"""How much may be held after each instant, in each pool of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from penstock.errors import PlanError
from penstock.kernels.arena import Words
from penstock.lab.optimum.step_function import StepFunction, parse_steps
from penstock.model.limits import Limits, Memory, parse_memory
from penstock.model.query import Query
from penstock.model.window import FOREVER
from penstock.shedding.sharing import portions

__all__ = ["Rooms", "parse_rooms"]

_POOLS: Final = ("shared", "fixed")


@dataclass(frozen=True)
class Rooms:
    """memory: rows as time goes on. parts: in what proportion it is divided, None if it is not."""

    memory: StepFunction
    parts: tuple[float, ...] | None

    def pools(self, times: Words) -> list[Words]:
        """The room from each time to the next, of one pool for all streams or of one for each."""
        if self.parts is None:
            return [self.memory.lowest(times)]
        divided = np.array([portions(int(rows), self.parts) for rows in self.memory.values])
        return [StepFunction(self.memory.begins, each).lowest(times) for each in divided.T]


def parse_rooms(query: Query, memory: Any, pool: Any) -> Rooms:
    """From rows, or times and rows, and how they are shared."""
    if isinstance(memory, Sequence) and not isinstance(memory, str):
        steps = parse_steps(memory, "memory", _rows)
    else:
        steps = StepFunction(np.zeros(1, np.int64), np.array([_rows(memory)], np.int64))
    if not isinstance(pool, Mapping) and not (isinstance(pool, str) and pool in _POOLS):
        raise PlanError(f"pool must be one of {_POOLS}, or parts by stream, got {pool!r}")
    if isinstance(pool, Mapping) and set(pool) != set(query.names):
        raise PlanError(
            f"pool must have a part for each stream, got {dict(pool)!r}; "
            f"the streams are {query.names}"
        )
    parts = Limits(memory="1 row", pool=pool).parts(query.names)
    return Rooms(steps, None if parts is None else tuple(parts))


def _rows(given: Any) -> int:
    advice = "memory must be a number of rows, such as 1000 or '1000 rows'"
    if isinstance(given, str | Memory):
        rows = parse_memory(given, "memory").rows
        if rows is None:
            raise PlanError(f"{advice}, got {given!r}; the optimum counts tuples, not bytes")
        return rows
    if not isinstance(given, int | np.integer) or isinstance(given, bool):
        raise PlanError(f"{advice}, or pairs of a time and such a number, got {given!r}")
    if given < 0:
        raise PlanError(f"{advice}, 0 or more, got {given!r}")
    if given > FOREVER:
        raise PlanError(f"{advice}, got {given!r}, more than can be counted")
    return int(given)
