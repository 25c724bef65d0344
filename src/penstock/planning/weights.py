"""Weights: what it costs to touch one tuple of a structure, and the sets of weights there are.

Kang, Naughton and Viglas count the tuples that a probe or an update touches, and multiply them by
a weight of the structure that was touched. Their two papers measured theirs on the machines of
2002 and 2003; Golab and Özsu count the tuples and stop there. All three are rows of `WEIGHTS`.
Weights measured elsewhere have the same form, and more parts: what a probe or an update costs
before it has touched anything, and what a tuple costs more that is far: that has to be fetched from
beyond the processor's caches. Of n tuples, n / (n + cached) are. So none is far in a small window,
half of them in one of `cached` tuples, and at last all.

Invariant: weights are finite, and not below zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Final

from penstock.errors import PlanError

__all__ = ["STRUCTURES", "UNITS", "WEIGHTS", "Weight", "Weights", "weights_of"]

STRUCTURES: Final = ("scan", "hash", "buckets", "bplus_tree", "t_tree")
UNITS: Final = ("s", "ns", "tuples", "units")


@dataclass(frozen=True)
class Weight:
    """Of one structure. search, update: of each tuple that a probe or an update touches.
    per_probe, per_update: of each probe, and of each tuple that is inserted or removed.
    far_search, far_update: of each tuple touched that is far."""

    search: float
    update: float
    per_probe: float = 0.0
    per_update: float = 0.0
    far_search: float = 0.0
    far_update: float = 0.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not (isfinite(value) and value >= 0)
            ):
                raise PlanError(
                    f"a weight must be a number that is not below zero, got {name}={value!r}"
                )

    def of_probe(self, touched: float, far: float = 0.0) -> float:
        """The cost of a probe that touches `touched` tuples, `far` of them far."""
        return self.per_probe + self.search * touched + self.far_search * far

    def of_update(self, touched: float, far: float = 0.0) -> float:
        """The cost of inserting or removing a tuple, which touches `touched`, `far` of them far."""
        return self.per_update + self.update * touched + self.far_update * far


@dataclass(frozen=True)
class Weights:
    """A set of weights, in one unit. A structure that was not measured is left out. cached: tuples
    of a window of which half are far; None where no tuple is."""

    name: str
    unit: str
    structures: Mapping[str, Weight]
    cached: float | None = None

    def __post_init__(self) -> None:
        if self.cached is not None and not (
            isinstance(self.cached, int | float) and isfinite(self.cached) and self.cached > 0
        ):
            raise PlanError(
                f"cached= is a number of tuples above zero, or None, got {self.cached!r}"
            )
        if self.unit not in UNITS:
            raise PlanError(f"weights are in one of {UNITS}, got {self.unit!r}")
        for index, weight in self.structures.items():
            if index not in STRUCTURES:
                raise PlanError(
                    f"weights {self.name!r} name {index!r}, which is no structure; "
                    f"the structures are {STRUCTURES}"
                )
            if not isinstance(weight, Weight):
                raise PlanError(f"the weight of {index!r} must be a Weight, got {weight!r}")

    def of(self, index: str) -> Weight:
        """The weight of a structure."""
        if index not in self.structures:
            raise PlanError(
                f"the weights {self.name!r} have none for {index!r}, only for "
                f"{tuple(self.structures)}; use other weights, or another index"
            )
        return self.structures[index]

    def far_share(self, tuples: float) -> float:
        """The share of `tuples` that is far."""
        return 0.0 if self.cached is None else tuples / (tuples + self.cached)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        structures = {index: asdict(weight) for index, weight in self.structures.items()}
        return {
            "name": self.name,
            "unit": self.unit,
            "structures": structures,
            "cached": self.cached,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Weights:
        """What `to_dict` gave."""
        try:
            structures = {
                index: Weight(**weight) for index, weight in dict(stored["structures"]).items()
            }
            return cls(str(stored["name"]), stored["unit"], structures, stored.get("cached"))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, PlanError):
                raise
            raise PlanError(
                f"these are no stored weights: {error!r}; "
                "give what `Weights.to_dict` gave: name, unit and structures"
            ) from error


def _alike(weight: Weight) -> dict[str, Weight]:
    return dict.fromkeys(STRUCTURES, weight)


# Buckets are what both papers of Kang et al. call a hash table.
WEIGHTS: Final[dict[str, Weights]] = {
    "kang2003": Weights(
        "kang2003",
        "s",
        {
            "scan": Weight(3e-4, 1e-4),
            "hash": Weight(5.5e-4, 7.8e-4),
            "buckets": Weight(5.5e-4, 7.8e-4),
            "bplus_tree": Weight(2.6e-4, 2.6e-4),
            "t_tree": Weight(2.6e-4, 2.7e-4),
        },
    ),
    # One weight for both, in no unit that means anything: only 0.65 / 0.5 does.
    "kang2002": Weights(
        "kang2002",
        "units",
        {
            "scan": Weight(0.5, 0.5),
            "hash": Weight(0.65, 0.65),
            "buckets": Weight(0.65, 0.65),
        },
    ),
    "tuples": Weights("tuples", "tuples", _alike(Weight(1.0, 0.0))),
    # Of the structures of penstock.kernels, with the model 'penstock': measured by `penstock
    # calibrate` on a virtual machine of two cores, a server processor with 2 MiB of cache a core.
    "penstock": Weights(
        "penstock",
        "ns",
        {
            "scan": Weight(1.2, 3.8, 19.6, far_search=0.27),
            "hash": Weight(6.6, 4.5, 19.4, far_search=152.0, far_update=9.4),
            "buckets": Weight(5.4, 5.2, 27.6, far_search=101.0, far_update=7.6),
            "bplus_tree": Weight(5.3, 8.1, 5.4, far_search=101.0, far_update=189.0),
            "t_tree": Weight(5.2, 9.4, 7.5, 1.4, far_search=151.0, far_update=451.0),
        },
        cached=1 << 19,
    ),
}


def weights_of(value: str | Weights) -> Weights:
    """Weights by name, or as they are."""
    if isinstance(value, Weights):
        return value
    if not isinstance(value, str) or value not in WEIGHTS:
        raise PlanError(
            f"no weights are called {value!r}; choose from {tuple(WEIGHTS)}, or give Weights"
        )
    return WEIGHTS[value]
