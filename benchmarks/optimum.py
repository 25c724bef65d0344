"""How fast the offline optimum is found, and how near to it one comes where it is too large."""

from __future__ import annotations

import resource
from typing import Any, Final

import numpy as np
import pyarrow as pa

import penstock as ps
from benchmarks.measure import Measurement, interleave, seconds
from benchmarks.subject import join_within
from penstock.samples import zipf_pair

__all__ = ["optimum", "optimum_interval"]

_FASTER: Final = 10.0
_WIDEST: Final = 1.0  # percent


def optimum() -> list[Measurement]:
    """Time of the flow over matches over that of the flow over arrivals, 2 x 5,600 tuples."""
    window = 800
    query, tables = _streams(5_600, window, 50)
    found: dict[str, Any] = {}

    def run(method: str) -> None:
        found[method] = ps.optimum(query, tables, memory=window, method=method)

    run("per_arrival")  # loads the solver
    per_arrival, per_match = interleave(1, lambda: run("per_arrival"), lambda: run("per_match"))
    if found["per_arrival"].produced != found["per_match"].produced:
        raise AssertionError(f"two optima: {found}")
    return [
        Measurement(
            name="optimum",
            what="speed of the optimum per arrival over that per match",
            measured=per_match.best_processor / per_arrival.best_processor,
            required=_FASTER,
            at_least=True,
            details={
                "per_arrival_seconds": per_arrival.processor,
                "per_match_seconds": per_match.processor,
                "recall": found["per_arrival"].recall,
            },
        )
    ]


def optimum_interval() -> list[Measurement]:
    """Width of the certified interval of 2 x 100,000 tuples, window 5,000, in percent."""
    window = 5_000
    query, tables = _streams(100_000, window, 650)
    found: list[ps.Optimum] = []
    taken = seconds(lambda: found.append(ps.optimum(query, tables, memory=window, method="prices")))
    (bounds,) = found
    return [
        Measurement(
            name="optimum_interval",
            what="between what can be had for certain and what cannot, of 2 x 100,000 tuples",
            measured=100 * (bounds.upper - bounds.produced) / bounds.upper,
            required=_WIDEST,
            at_least=False,
            unit="%",
            details={
                "seconds": taken[0],
                "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000,
                "recall": [bounds.recall, bounds.recall_upper],
            },
        )
    ]


def _streams(rows: int, window: int, keys: int) -> tuple[ps.WindowJoin, dict[str, pa.Table]]:
    """Two streams in step, keys by Zipf's law in both, windows of so many instants."""
    work = zipf_pair(keys=keys, skews=(1.0, 1.0), rows=rows, seed=1, payload=0)
    at = pa.array(np.arange(rows) * 1_000_000)
    tables = {
        name: pa.table({"ts": at, "k": work.table(stream)["k"]})
        for name, stream in zip(("left", "right"), work.streams, strict=True)
    }
    return join_within(f"{window - 1} seconds"), tables
