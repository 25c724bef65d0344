"""From a flow to a decision: how many of a run are held becomes which."""

from __future__ import annotations

from typing import Any

from penstock.kernels.jit import kernel

__all__ = ["keep_newest"]


@kernel
def keep_newest(first: Any, entering: Any, following: Any, until: Any) -> None:
    """From numbers of units to tuples: of those of a run that have come, the newest are held."""
    kept, come = 0, 0
    for meeting in range(len(following)):
        while come < len(first) and first[come] == meeting:
            if entering[come]:
                kept += 1
            elif kept:
                until[come - kept] = meeting  # makes way for the one that comes
            come += 1
        while kept > following[meeting]:
            until[come - kept] = meeting + 1
            kept -= 1
