"""What the tuples of a recording meet, in either form."""

from __future__ import annotations

from typing import NamedTuple

from penstock.kernels.arena import Words
from penstock.lab.optimum.holding import Meetings, earned

__all__ = ["Met"]


class Met(NamedTuple):
    """streams: what the tuples of each meet later. rows: of which rows of the tables they are.
    at_once: what pairs of one instant are worth, which meet whatever is held."""

    streams: tuple[Meetings, Meetings]
    rows: tuple[Words, Words]
    at_once: int

    @property
    def total(self) -> int:
        """What all meetings are worth, as in the exact join."""
        return self.at_once + sum(earned(each, each.end) for each in self.streams)
