"""What has been shed and lost so far, read from the arena that counts it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.kernels.arena import Words
from penstock.kernels.budget.records import GROUPS
from penstock.windows.windows import Windows

__all__ = ["Losses"]


class Losses:
    """Of one join. is_semi: whether left tuples come out, each at most once."""

    def __init__(self, windows: Windows, *, is_semi: bool) -> None:
        self.windows = windows
        self._is_semi = is_semi

    @property
    def shed(self) -> Words:
        """Tuples that were shed, of each stream."""
        counted: Words = self.windows.state.quotas["shed"]
        return counted

    @property
    def lost(self) -> npt.NDArray[np.float64]:
        """Results that were lost, by the stream whose tuple was shed."""
        counted: npt.NDArray[np.float64] = self.windows.state.quotas["lost"]
        return counted

    @property
    def variance(self) -> float | None:
        """Of the number of lost results, if a sample estimates it; else None."""
        state = self.windows.state
        if state.budget["threshold"][0] >= 1.0 and not 0.0 < self.looks < 1.0:
            return None
        start = int(state.budget["groups"][0])
        sums = state.floats[start : start + GROUPS]
        return float(((sums - sums.mean()) ** 2).sum()) * GROUPS / (GROUPS - 1)

    @property
    def unprobed(self) -> Words:
        """Tuples that did not look for partners, of each stream."""
        counted: Words = self.windows.state.quotas["unprobed"]
        return counted

    @property
    def unprobed_lost(self) -> float:
        """Results that were lost for that."""
        return float(self.windows.state.quotas["unprobed_lost"].sum())

    @property
    def looks(self) -> float:
        """The chance that the results of such a tuple are counted; 1 if all look."""
        budget = self.windows.state.budget[0]
        return float(budget.looks) if budget.service_rate > 0.0 else 1.0

    def forget(self) -> None:
        """Count lost results from here on."""
        state = self.windows.state
        state.quotas["lost"] = state.quotas["unprobed_lost"] = 0.0
        state.budget["certain"] = 0.0
        if self.windows.has_groups:
            start = int(state.budget["groups"][0])
            state.floats[start : start + GROUPS] = 0.0

    @property
    def threshold(self) -> float:
        """The least chance of being kept that a ghost has had."""
        return float(self.windows.state.budget["threshold"][0])

    def most_lost(self, produced: int) -> int | None:
        """In a semi join, the left tuples that have gone and not come out; None in others. There a
        sample says little, for all ghosts of a key are in it or none."""
        if not self._is_semi:
            return None
        return self.windows.expired(0) + int(self.shed[0]) - produced

    @property
    def seen(self) -> float:
        """Lost results that are certain: counted, not estimated from a sample."""
        return float(self.windows.state.budget["certain"][0])
