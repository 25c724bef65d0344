"""Whether the cost model foretells what joins cost: predicted beside measured, for all pairs of
indexes, with the weights of this machine."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from statistics import median
from time import process_time_ns
from typing import Any, Final

import numpy as np
import pyarrow as pa
from scipy.stats import spearmanr

import penstock as ps
from benchmarks.measure import Measurement
from penstock.planning.binary import binary_cost
from penstock.planning.calibration import calibrate
from penstock.planning.touched import NODE_ENTRIES
from penstock.planning.weights import Weights

__all__ = ["planning"]

_INDEXES: Final = ("scan", "hash", "bplus_tree", "t_tree")
_COMBINATIONS: Final = tuple(product(_INDEXES, _INDEXES))
# Of left_rate to right_rate, each as whole numbers.
_RATIOS: Final = ((1, 100), (1, 30), (1, 10), (1, 3), (1, 1), (3, 1), (10, 1), (30, 1), (100, 1))
_WINDOWS: Final = ((16, 16), (300, 300), (2000, 2000), (200, 5000))  # in tuples
_ARRIVALS: Final = 20_000  # of both streams together, timed
_WARM_UP: Final = 2_000  # arrivals before them
_ROUNDS: Final = 5
_CLOSE: Final = 1.1
_SHARE: Final = 0.9
_CORRELATION: Final = 0.9

Combination = tuple[str, str]


@dataclass(frozen=True)
class _Case:
    """rates: as whole numbers. windows: in tuples."""

    rates: tuple[int, int]
    windows: tuple[int, int]

    @property
    def keys(self) -> int:
        """Of both streams: an arrival finds one tuple of the larger window, on average."""
        return max(self.windows)

    @property
    def periods(self) -> tuple[int, int]:
        """Microseconds between arrivals."""
        return self.rates[1], self.rates[0]

    @property
    def query(self) -> ps.WindowJoin:
        """Windows of time that hold so many tuples."""
        return ps.WindowJoin(
            [
                ps.Stream(name, time="ts", window=f"{max(tuples * period - 1, 1)} us")
                for name, tuples, period in zip(
                    ("left", "right"), self.windows, self.periods, strict=True
                )
            ],
            on="k",
        )

    def tables(self, begin_us: int, end_us: int, seed: int) -> dict[str, pa.Table]:
        """All arrivals of a stretch of time."""
        random = np.random.default_rng(seed)
        tables = {}
        for name, period in zip(("left", "right"), self.periods, strict=True):
            ts = np.arange(-(-begin_us // period) * period, end_us, period)
            tables[name] = pa.table(
                {"ts": ts, "k": random.integers(0, self.keys, len(ts)), "v": ts}
            )
        return tables

    @property
    def fill_us(self) -> int:
        """The time after which both windows are full."""
        return max(n * period for n, period in zip(self.windows, self.periods, strict=True))

    def lasting(self, arrivals: int) -> int:
        """The time in which so many come, of both streams."""
        return int(arrivals / sum(1 / period for period in self.periods))

    def predicted(self, combination: Combination, weights: Weights) -> float:
        """Nanoseconds an arrival."""
        return binary_cost(
            *combination,
            left_rate=self.rates[0] / sum(self.rates),
            right_rate=self.rates[1] / sum(self.rates),
            left_window=self.windows[0],
            right_window=self.windows[1],
            weights=weights,
            node=NODE_ENTRIES,
            model="penstock",
            distinct=(self.keys, self.keys),
        )

    def measured(self) -> dict[Combination, float]:
        """Nanoseconds of the processor an arrival, the least of several rounds."""
        query, fill = self.query, self.fill_us
        with query.start() as join:
            join.push(self.tables(0, fill, seed=1))
            full = join.snapshot()
        warm = fill + self.lasting(_WARM_UP)
        before = self.tables(fill, warm, seed=2)
        batch = self.tables(warm, warm + self.lasting(_ARRIVALS), seed=3)
        arrivals = sum(table.num_rows for table in batch.values())
        least = dict.fromkeys(_COMBINATIONS, float("inf"))
        found = set()
        for _ in range(_ROUNDS):
            for left, right in _COMBINATIONS:
                join = query.restore(full, indexes={"left": left, "right": right})
                join.push(before)
                begin = process_time_ns()
                results = join.push(batch)
                taken = (process_time_ns() - begin) / arrivals
                found.add(results.num_rows)
                least[left, right] = min(least[left, right], taken)
        if len(found) > 1:
            raise AssertionError(f"the indexes do not find the same: {sorted(found)}")
        return least


def planning() -> list[Measurement]:
    """Predicted and measured cost of all pairs of indexes, over 9 ratios of rates and 4 windows."""
    weights = calibrate().weights
    cases = [_Case(rates, windows) for windows in _WINDOWS for rates in _RATIOS]
    gc.collect()
    gc.disable()  # what it takes is more than what is measured, and comes at any time
    try:
        measured = [case.measured() for case in cases]
    finally:
        gc.enable()
    predicted = [{each: case.predicted(each, weights) for each in _COMBINATIONS} for case in cases]
    return compared(cases, measured, predicted, weights)


def compared(
    cases: list[_Case],
    measured: list[dict[Combination, float]],
    predicted: list[dict[Combination, float]],
    weights: Weights,
) -> list[Measurement]:
    """How well the one foretells the other."""
    # What an arrival costs whatever the indexes: the same for all, by the median.
    rest = median(
        taken[each] - cost[each]
        for taken, cost in zip(measured, predicted, strict=True)
        for each in _COMBINATIONS
    )
    rows = []
    for case, taken, cost in zip(cases, measured, predicted, strict=True):
        chosen, best = min(cost, key=cost.__getitem__), min(taken, key=taken.__getitem__)
        rows.append(
            {
                "rates": case.rates,
                "windows": case.windows,
                "chosen": chosen,
                "best": best,
                "over_best": taken[chosen] / taken[best],
                "spread": max(taken.values()) / taken[best],
                "correlation": _correlation([taken], [cost], _COMBINATIONS),
                "measured_ns": {" ".join(each): taken[each] for each in _COMBINATIONS},
                "predicted_ns": {" ".join(each): cost[each] + rest for each in _COMBINATIONS},
            }
        )
    unscanned = [each for each in _COMBINATIONS if "scan" not in each]
    errors = [
        (cost[each] + rest) / taken[each] - 1
        for taken, cost in zip(measured, predicted, strict=True)
        for each in _COMBINATIONS
    ]
    details: Mapping[str, Any] = {
        "rest_ns": rest,
        "correlation_without_scan": _correlation(measured, predicted, unscanned),
        "median_correlation_in_a_case": median(row["correlation"] for row in rows),
        "median_relative_error": float(np.median(np.abs(errors))),
        "worst_over_best": max(row["over_best"] for row in rows),
        "chosen_is_best": sum(row["chosen"] == row["best"] for row in rows) / len(rows),
        "weights": weights.to_dict(),
        "cases": rows,
    }
    return [
        Measurement(
            name="planning",
            what="cases in which the choice is within 10 % of the best",
            measured=sum(row["over_best"] <= _CLOSE for row in rows) / len(rows),
            required=_SHARE,
            at_least=True,
            unit="of all",
            details=details,
        ),
        Measurement(
            name="planning",
            what="rank correlation of predicted and measured cost",
            measured=_correlation(measured, predicted, _COMBINATIONS),
            required=_CORRELATION,
            at_least=True,
            unit="",
        ),
    ]


def _correlation(
    measured: list[dict[Combination, float]],
    predicted: list[dict[Combination, float]],
    of: tuple[Combination, ...] | list[Combination],
) -> float:
    return float(
        spearmanr(
            [taken[each] for taken in measured for each in of],
            [cost[each] for cost in predicted for each in of],
        ).statistic
    )
