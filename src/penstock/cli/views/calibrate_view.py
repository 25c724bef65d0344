"""The tables of `penstock calibrate`: weights, how well they fit, and what the papers had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from rich.table import Table

from penstock.planning.calibration import Calibration
from penstock.planning.fit import Fit
from penstock.planning.weights import STRUCTURES, Weights

__all__ = ["fit_table", "ratio_table", "weight_table"]

_PARTS: Final = {
    "per_probe": "a probe",
    "search": "+ each touched",
    "far_search": "+ each far",
    "per_update": "an update",
    "update": "+ each touched",
    "far_update": "+ each far",
}


def weight_table(weights: Weights, shipped: Weights) -> Table:
    """Weights, and the shipped ones beside them."""
    table = Table(
        "structure", title="weights in ns; in brackets the shipped ones", title_justify="left"
    )
    for title in _PARTS.values():
        table.add_column(title, justify="right")
    for index in weights.structures:
        own, other = asdict(weights.of(index)), asdict(shipped.of(index))
        table.add_row(index, *(f"{own[part]:.1f} ({other[part]:.1f})" for part in _PARTS))
    table.caption = (
        f"far is what the processor's caches do not hold: half of {weights.cached:,.0f} tuples"
    )
    table.caption_justify = "left"
    return table


def fit_table(found: Calibration) -> Table:
    """How well weights explain what was measured."""
    table = Table(
        "structure", title="the fit over all windows that were measured", title_justify="left"
    )
    for what in ("search", "update"):
        table.add_column(f"{what} R²", justify="right")
        table.add_column("half within", justify="right")
        table.add_column("worst", justify="right")
    for index in found.measured:
        table.add_row(index, *_quality(found.searches[index]), *_quality(found.updates[index]))
    return table


def _quality(fit: Fit) -> tuple[str, str, str]:
    # What is the same in windows of all sizes has nothing to be explained.
    explained = f"{fit.r_squared:.3f}" if fit.is_varied else "constant"
    return explained, f"{fit.usual:.0%}", f"{fit.worst:.0%}"


def ratio_table(sets: Sequence[Weights]) -> Table:
    """Search / update of each touched tuple, over the search weight of a scan."""
    table = Table(
        "weights",
        title="search / update of a tuple touched, where a tuple of a scan is 1",
        title_justify="left",
    )
    for index in STRUCTURES:
        table.add_column(index, justify="right")
    for weights in sets:
        unit = weights.of("scan").search
        row = []
        for index in STRUCTURES:
            if index in weights.structures and unit > 0:
                weight = weights.of(index)
                row.append(f"{weight.search / unit:.2f} / {weight.update / unit:.2f}")
            else:
                row.append("")
        table.add_row(weights.name, *row)
    return table
