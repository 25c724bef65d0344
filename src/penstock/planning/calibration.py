"""Calibration: the weights of penstock's own structures, measured on the machine at hand.

As in Kang, Naughton and Viglas: workloads that only search and workloads that only update, of 20
windows for each structure, from 10 tuples to 300,000, and weights that fit them. What is
touched at each point is counted by the model 'penstock' of `planning.touched`, so the weights are
good with that model and with no other.

Of how large a window half is far is one number for all structures: the one, of powers of two, with
which they fit best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final

from penstock.planning.binary import binary_breakdown
from penstock.planning.fit import Fit, fitted
from penstock.planning.measuring import Point, Subject
from penstock.planning.touched import (
    NODE_ENTRIES,
    Structure,
    insert_scattered,
    insert_touched,
    probe_scattered,
    probe_touched,
    removal_scattered,
    removal_touched,
)
from penstock.planning.weights import STRUCTURES, Weight, Weights

__all__ = [
    "QUICK_ROUNDS", "ROUNDS", "SCAN_RATIOS", "WINDOWS", "Calibration", "Measured", "calibrate",
    "fit_weights", "points", "scan_limit",
]  # fmt: skip

_MODEL: Final = "penstock"
WINDOWS: Final = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
_MATCHES: Final = (1, 8)
_CHAINS: Final = (2, 10)  # of buckets
_CACHES: Final = tuple(1 << power for power in range(14, 20))
_IN_A_ROW: Final = 8  # runs of one window before it is the next one's turn: it has its cache back
_MOST_TUPLES: Final = 1 << 20

SCAN_RATIOS: Final = (1, 10, 100)  # for which `scan_limit` is reported
ROUNDS: Final = 3
QUICK_ROUNDS: Final = 1


@dataclass(frozen=True)
class Measured:
    """What a probe takes at a point, and what an insert and a removal take together."""

    point: Point
    probe_ns: float
    update_ns: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "tuples": self.point.tuples,
            "matches": self.point.matches,
            "bucket": self.point.chain if self.point.index == "buckets" else None,
            "probe_ns": self.probe_ns,
            "update_ns": self.update_ns,
        }


@dataclass(frozen=True)
class Calibration:
    """weights: that fit best. searches, updates: how well, by structure."""

    weights: Weights
    measured: Mapping[str, Sequence[Measured]]
    searches: Mapping[str, Fit]
    updates: Mapping[str, Fit]

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "weights": self.weights.to_dict(),
            "scan_limit": {str(ratio): scan_limit(self.weights, ratio) for ratio in SCAN_RATIOS},
            "fit": {
                index: {
                    what: {"r_squared": fit.r_squared, "worst": fit.worst, "usual": fit.usual}
                    for what, fit in (
                        ("search", self.searches[index]),
                        ("update", self.updates[index]),
                    )
                }
                for index in self.measured
            },
            "measured": {
                index: [each.to_dict() for each in of_index]
                for index, of_index in self.measured.items()
            },
        }


def points(index: str, windows: Sequence[int] = WINDOWS) -> list[Point]:
    """What is measured of a structure: each window with few matches and with more, or with short
    chains and longer ones where keys share them."""
    if index == "buckets":
        return [Point(index, tuples, 1, chain) for chain in _CHAINS for tuples in windows]
    return [
        Point(index, tuples, min(matches, tuples)) for matches in _MATCHES for tuples in windows
    ]


def calibrate(
    windows: Sequence[int] = WINDOWS,
    rounds: int = ROUNDS,
    done: Callable[[str], None] = lambda _: None,
) -> Calibration:
    """Measure all structures, and fit. done: is given the structure after each of its rounds."""
    measured = {}
    for index in STRUCTURES:
        subjects = [Subject(point) for point in points(index, windows)]
        least = [[inf, inf] for _ in subjects]
        # Rounds over all windows, so that a slow spell of the machine falls on all of them.
        for _ in range(rounds):
            for subject, best in zip(subjects, least, strict=True):
                for _ in range(_IN_A_ROW):
                    best[0] = min(best[0], subject.probe_ns())
                for _ in range(_IN_A_ROW):
                    best[1] = min(best[1], subject.update_ns())
            done(index)
        measured[index] = [
            Measured(subject.point, *best) for subject, best in zip(subjects, least, strict=True)
        ]
    return fit_weights(measured)


def fit_weights(measured: Mapping[str, Sequence[Measured]]) -> Calibration:
    """The weights that explain best what was measured."""
    return min(
        (_fit_with(measured, cached) for cached in _CACHES),
        key=lambda each: sum(fit.loss for fit in (*each.searches.values(), *each.updates.values())),
    )


def _fit_with(measured: Mapping[str, Sequence[Measured]], cached: float) -> Calibration:
    weights = Weights("measured", "ns", {}, cached)
    searches, updates, found = {}, {}, {}
    for index, of_index in measured.items():
        shape = [(each, _structure(each.point)) for each in of_index]
        searches[index] = search = fitted(
            [_probe_counts(structure, each.point, weights) for each, structure in shape],
            [each.probe_ns for each in of_index],
        )
        updates[index] = update = fitted(
            [_update_counts(structure, weights) for _, structure in shape],
            [each.update_ns for each in of_index],
        )
        found[index] = Weight(
            search=search.weights[1],
            update=update.weights[1],
            per_probe=search.weights[0],
            per_update=update.weights[0],
            far_search=search.weights[2],
            far_update=update.weights[2],
        )
    return Calibration(replace(weights, structures=found), measured, searches, updates)


def _structure(point: Point) -> Structure:
    return Structure(point.index, point.tuples, point.tuples / point.buckets, NODE_ENTRIES)


def _probe_counts(
    structure: Structure, point: Point, weights: Weights
) -> tuple[float, float, float]:
    matches = point.tuples / point.distinct
    return (
        1.0,
        probe_touched(structure, _MODEL, matches, point.tuples),
        weights.far_share(point.tuples) * probe_scattered(structure, _MODEL, matches, point.tuples),
    )


def _update_counts(structure: Structure, weights: Weights) -> tuple[float, float, float]:
    tuples = structure.tuples
    touched = insert_touched(structure, _MODEL, tuples)
    touched += removal_touched(structure, _MODEL, "eager", 1.0, tuples)
    scattered = insert_scattered(structure) + removal_scattered(structure)
    return 2.0, touched, weights.far_share(tuples) * scattered


def scan_limit(weights: Weights, ratio: float = 1.0) -> int:
    """The largest window, in tuples, that a scan serves at least as cheaply as hash when keys all
    differ. ratio: of the tuples that enter it to the probes that it gets."""

    def gain(tuples: int) -> float:
        scan, hashed = (
            binary_breakdown(
                "scan",
                index,
                left_rate=1.0,
                right_rate=ratio,
                left_window=tuples,
                right_window=tuples,
                weights=weights,
                model=_MODEL,
                distinct=(tuples, tuples),
            )
            for index in ("scan", "hash")
        )
        return hashed.directions[1].total - scan.directions[1].total

    if gain(1) < 0:
        return 0
    low, high = 1, _MOST_TUPLES
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if gain(middle) >= 0 else (low, middle)
    return low
