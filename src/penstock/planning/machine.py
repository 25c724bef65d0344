"""The weights of the machine at hand: those that were measured on it, else the shipped ones.

Measured weights are kept in the user's cache, in one small JSON file:

    {"format": 1, "machine": "...", "weights": {"name": ..., "unit": ..., "structures": ...}}

A file of another format or another machine, or one that cannot be read, is as good as none: to
plan with the shipped weights is never wrong, only less exact. `penstock calibrate` writes it.
"""

from __future__ import annotations

import json
import os
import platform
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from penstock.errors import PlanError
from penstock.planning.weights import STRUCTURES, WEIGHTS, Weights

__all__ = ["SHIPPED", "forget_weights", "machine", "store_weights", "weights_file", "weights_here"]

SHIPPED: Final = WEIGHTS["penstock"]
# Of the file, and of what weights are multiplied by: one more when either changes.
_FORMAT: Final = 1
_PROCESSORS: Final = Path("/proc/cpuinfo")


def machine() -> str:
    """What weights depend on: the processor by its name, and what kind it is of."""
    with suppress(OSError):
        for line in _PROCESSORS.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return f"{line.partition(':')[2].strip()}, {platform.machine()}"
    return f"{platform.processor() or 'unknown'}, {platform.machine()}"


def weights_file() -> Path:
    """Where the weights of this machine are kept, if they are."""
    given = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(given).expanduser() / "penstock" / "weights.json"


def weights_here() -> Weights:
    """The weights that were measured on this machine, else `SHIPPED`."""
    try:
        stored = json.loads(weights_file().read_text(encoding="utf-8"))
        if stored["format"] != _FORMAT or stored["machine"] != machine():
            return SHIPPED
        weights = Weights.from_dict(stored["weights"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, PlanError):
        return SHIPPED
    is_whole = weights.unit == SHIPPED.unit and all(
        each in weights.structures for each in STRUCTURES
    )
    return weights if is_whole else SHIPPED


def store_weights(weights: Weights) -> Path:
    """Keep weights as those of this machine; where. Readers see all of it, or what was before."""
    path = weights_file()
    stored = {"format": _FORMAT, "machine": machine(), "weights": weights.to_dict()}
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False
    ) as written:
        written.write(json.dumps(stored, indent=2) + "\n")
    Path(written.name).replace(path)
    return path


def forget_weights() -> None:
    """Go back to the shipped weights."""
    weights_file().unlink(missing_ok=True)
