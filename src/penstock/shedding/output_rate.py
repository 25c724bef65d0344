"""How many results a join gives per unit of time: what an allocation makes the most of.

A result is made when its last tuple arrives and probes the other windows, so with n streams

    output = selectivity * sum over streams i of (rate_i * product of the other streams' windows)

which for two is Kang et al.'s sigma * (la * B + lb * A), equation (12) of the 2003 version. The
selectivity is the share of all combinations that satisfy the predicates.

When not every tuple can be dealt with, what is dropped matters:

- `drop="probe"`: the tuple enters its window and does not probe the others. Windows stay whole.
- `drop="tuple"`: the tuple is gone. A window of time then holds effective / real of its tuples, and
  the output is selectivity * (product of the effective rates) * a constant of the time windows;
  for two streams sigma * la' * lb' * (Ta + Tb), equation (10) of the 2002 version.
"""

from __future__ import annotations

from math import prod
from typing import Literal

from penstock.errors import PlanError
from penstock.model.limits import DROPS
from penstock.shedding.quantities import Numbers, per_stream, share

__all__ = ["Drop", "checked_drop", "output_rate", "probe_values"]

Drop = Literal["probe", "tuple"]

# An effective rate worked out as a share of the real one may exceed it in its last bits.
_ROUNDING = 1e-9


def output_rate(
    rates: Numbers,
    windows: Numbers,
    effective: Numbers | None = None,
    *,
    drop: Drop = "probe",
    selectivity: float = 1.0,
) -> float:
    """Results per unit of time.

    rates: tuples per unit of time that arrive, per stream
    windows: tuples in each window when nothing is dropped
    effective: tuples per unit of time that are dealt with; None: all that arrive
    """
    real = per_stream("rates", rates)
    whole = per_stream("windows", windows, len(real))
    dealt_with = real if effective is None else per_stream("effective", effective, len(real))
    for stream, (some, all_of_it) in enumerate(zip(dealt_with, real, strict=True)):
        if some > all_of_it * (1 + _ROUNDING):
            raise PlanError(
                f"stream {stream} cannot be dealt with faster than it arrives: got {some!r} of "
                f"{all_of_it!r}; give effective rates up to the rates"
            )
    if checked_drop(drop) == "tuple":
        whole = tuple(
            window * some / all_of_it if all_of_it else 0.0
            for window, some, all_of_it in zip(whole, dealt_with, real, strict=True)
        )
    values = probe_values(whole)
    return share("selectivity", selectivity) * sum(
        rate * value for rate, value in zip(dealt_with, values, strict=True)
    )


def probe_values(windows: tuple[float, ...]) -> tuple[float, ...]:
    """How many combinations one tuple of each stream completes."""
    return tuple(
        prod(windows[:stream]) * prod(windows[stream + 1 :]) for stream in range(len(windows))
    )


def checked_drop(drop: str) -> Drop:
    if drop not in DROPS:
        raise PlanError(f"unknown drop {drop!r}; give 'probe' or 'tuple'")
    return "probe" if drop == "probe" else "tuple"
