"""Whether a tuple that a user describes was shed: when, and for what.

Ghosts show it, as long as they are kept: all of those whose window has not ended, unless losses
are sampled or not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from penstock.engine.words import tuple_words
from penstock.kernels.arena import UNPROBED
from penstock.kernels.budget.ghosts import levels
from penstock.kernels.budget.levels import worths_of
from penstock.kernels.stats.frequencies import count
from penstock.model.access import Equal
from penstock.model.limits import POLICIES
from penstock.runtime.metrics import time_text
from penstock.runtime.why.line import same_values
from penstock.shedding.saved import save_ghosts
from penstock.shedding.shedder import Shedder
from penstock.windows.payload.storage import as_kept

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["Shed", "is_unprobed", "may_be_forgotten", "shed_of"]

_RARE: Final = 1e-3  # what comes less often has not come


@dataclass(frozen=True)
class Shed:
    """instant: the event time it was shed at. reason: why it and no other, in words. at_once:
    whether it was, before it met anything."""

    instant: int
    reason: str
    at_once: bool = False


def is_unprobed(join: Join, stream: int, index: int) -> bool:
    """Whether a tuple of a window, its index from the oldest, did not look for partners."""
    windows = join.driver.windows
    sequences = windows.live_sequences(stream)[index : index + 1]
    return bool(windows.marks(stream, sequences)[0] & UNPROBED)


def may_be_forgotten(join: Join, stream: int) -> bool:
    """Whether a tuple may have been shed and have left no ghost."""
    shedder = join.driver.shedder
    if shedder.limits is None or not shedder.losses.shed[stream]:
        return False
    return not shedder.windows.has_ghosts or shedder.losses.variance is not None


def _rate(shedder: Shedder, stream: int, key: int) -> float:
    """How often a key has come in the other of two streams, in about a window's time. The worth of
    a key that has not come is no rate: it is what such keys turn out to meet, beside others."""
    state = shedder.windows.state
    table = state.tables[int(state.steps[stream, 0].path)]
    if table.given:
        return inf
    return count(state.halves, state.singles, table, key) * float(state.budget["shrink"][0])


def shed_of(join: Join, stream: int, ts: int, row: Mapping[str, pa.Array]) -> Shed | None:
    """What is known of a tuple that was shed; None if it has no ghost."""
    shedder, binding = join.driver.shedder, join.driver.binding
    schema = binding.schemas[stream]
    if shedder.limits is None or schema is None or not shedder.windows.has_ghosts:
        return None
    ghosts = save_ghosts(shedder, stream)
    same = ghosts["ts"].to_numpy() == ts
    for name, value in row.items():
        if f"column {name}" in ghosts.column_names:
            same &= same_values(as_kept(ghosts[f"column {name}"].combine_chunks()), value)
    paths = binding.query.access.words[stream]
    wanted_columns = {
        name
        for path in paths
        for name in (
            path.columns
            if isinstance(path, Equal)
            else [column.name for column in path.expression.columns]
        )
    }
    if wanted_columns <= set(row):
        words, *_ = tuple_words(binding, stream, row, 1)
        for number in range(len(paths)):
            same &= ghosts[f"word {number}"].to_numpy() == words[number, 0]
    found = np.flatnonzero(same)
    if not len(found):
        return None
    at = int(found[-1])
    instant = ghosts["instant"][at].as_py()
    marks = ghosts["marks"][at].as_py()
    if marks & UNPROBED and shedder.limits.drop == "tuple":
        rate = f"service_rate={shedder.limits.service_rate or 0:g}"
        reason = f"was dropped when it came, at random, to keep within {rate}"
        return Shed(instant, reason, at_once=True)
    worth = float(worths_of(levels(np.array([marks], np.int64)))[0])
    if len(binding.schemas) == 2 and shedder.windows.plan.is_plain:
        worth = min(worth, _rate(shedder, stream, ghosts["word 0"][at].as_py()))
    often = f"{worth:.2g} of them in about a window's time" if worth > _RARE else "none of late"
    reason = POLICIES[shedder.limits.shed].reason.format(worth=often)
    if shedder.limits.value is not None:
        reason = f"results with it are worth least, by {shedder.limits.value!r}"
    return Shed(
        instant,
        f"was shed at {time_text(instant)} to keep within {shedder.limits.memory}, "
        f"by {shedder.limits.shed!r}: {reason}",
    )
