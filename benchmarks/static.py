"""How much faster the best k tuples of a static join are found than by the paper's recurrence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import penstock as ps
from benchmarks.measure import Measurement, interleave
from penstock.samples.key_laws import ZipfKeys

__all__ = ["recurrence", "static"]

_TUPLES: Final = 50_000  # a side
_KEYS: Final = 1_000
_KEEP: Final = 5_000
_SKEWS: Final = (0.0, 0.5, 1.0, 2.0)
_METHODS: Final = ("optimal", "average_degree", "recurrence")
_ROUNDS: Final = 3
_REQUIRED: Final = 20.0


def static() -> list[Measurement]:
    """Time of the paper's recurrence for 5,000 of 100,000 tuples over that of 'optimal'."""
    ratios, details = {}, {}
    for skew in _SKEWS:
        left, right = _counts(skew)
        found: dict[str, int] = {}
        optimal, greedy, by_recurrence = interleave(
            _ROUNDS, *(_way(method, left, right, found) for method in _METHODS)
        )
        if found["optimal"] != found["recurrence"]:
            raise AssertionError(f"{found['optimal']:,} pairs, not {found['recurrence']:,}")
        ratios[skew] = by_recurrence.best_processor / optimal.best_processor
        details[f"Zipf {skew}"] = {
            "times": ratios[skew],
            "recurrence_seconds": by_recurrence.processor,
            "optimal_seconds": optimal.processor,
            "average_degree_seconds": greedy.processor,
            "average_degree_of_optimal": found["average_degree"] / found["optimal"],
        }
    return [
        Measurement(
            name="static",
            what="speed of the best choice over that of the paper's recurrence",
            measured=min(ratios.values()),
            required=_REQUIRED,
            at_least=True,
            details=details,
        )
    ]


def _counts(skew: float) -> list[Any]:
    random = np.random.default_rng(1)
    law = ZipfKeys(_KEYS, skew)
    return [np.bincount(law.pick(random.random(_TUPLES)), minlength=_KEYS) for _ in range(2)]


def _way(method: str, left: Any, right: Any, found: dict[str, int]) -> Callable[[], None]:
    def chosen() -> None:
        if method == "recurrence":
            found[method] = recurrence(left, right, _KEEP)
        else:
            found[method] = ps.static.truncate(left, right, keep=_KEEP, method=method).joined

    return chosen


def recurrence(left: Any, right: Any, keep: int) -> int:
    """OPTDP: T(i, j) = max over p of T(i - 1, j - p) + C(p), for all j at once. It only counts the
    pairs, and does not note which tuples they are of."""
    table = np.full(keep + 1, np.iinfo(np.int64).min // 2)
    table[0] = 0
    for m, n in zip(left.tolist(), right.tolist(), strict=True):
        nodes = np.arange(min(m + n, keep) + 1)
        fewer = np.minimum(min(m, n), nodes // 2)
        grown = table.copy()
        for p, joined in enumerate((fewer * (nodes - fewer)).tolist()):
            np.maximum(grown[p:], table[: keep + 1 - p] + joined, out=grown[p:])
        table = grown
    return int(table[keep])
