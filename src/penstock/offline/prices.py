"""Stub."""

from typing import NamedTuple

from penstock.offline.holding import Holding
from penstock.state.arena import Words


class Bounds(NamedTuple):
    until: Words
    earned: int
    upper: int


def priced(holding: Holding) -> Bounds:
    raise NotImplementedError
