"""Hot state: the windows of buckets between batches, ready to go on. Only a cache.

A token names one state of one bucket. It is drawn at random by the attempt that made the
state and written into the manifest with it, so a state found under the token of a committed
manifest is the one that manifest describes: never that of an attempt that failed, and never
a newer or older one. Whoever claims a state takes it out; two attempts cannot share it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

from penstock.engine.driver import Driver
from penstock.model.binding import Binding
from penstock.model.plan import Plan

__all__ = ["HotState", "ProcessMemory"]

_MOST_STATES: Final = 64


class HotState(Protocol):
    """Where windows wait for the next batch."""

    def make(self, binding: Binding, plan: Plan) -> Driver:
        """Empty windows, of a kind that can be published here."""

    def claim(self, bucket: str, token: str, binding: Binding, plan: Plan) -> Driver | None:
        """Take the windows of a token out, if they are here."""

    def publish(self, bucket: str, token: str, driver: Driver) -> None:
        """Offer windows under a token; the caller uses them no more."""


class ProcessMemory:
    """Windows kept in this worker process; another worker does not find them."""

    def __init__(self, most: int = _MOST_STATES) -> None:
        self._states: OrderedDict[str, Driver] = OrderedDict()
        self._most = most

    def make(self, binding: Binding, plan: Plan) -> Driver:
        return Driver(binding, plan)

    def claim(self, bucket: str, token: str, binding: Binding, plan: Plan) -> Driver | None:
        driver = self._states.pop(token, None)
        if driver is None or (driver.binding, driver.windows.plan) != (binding, plan):
            return None
        return driver

    def publish(self, bucket: str, token: str, driver: Driver) -> None:
        self._states[token] = driver
        # What failed attempts and other workers' buckets left behind goes, oldest first.
        while len(self._states) > self._most:
            self._states.popitem(last=False)
