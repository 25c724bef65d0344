"""Hot state: the shares of buckets between batches, ready to go on. Only a cache.

A token names one state of one bucket. It is drawn at random by the attempt that made the
state and written into the manifest with it, so a state found under the token of a committed
manifest is the one that manifest describes: never that of an attempt that failed, and never
a newer or older one. Whoever claims a state takes it out; two attempts cannot share it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.spark.state.bucket_engine import BucketEngine

__all__ = ["HotState", "ProcessMemory"]

_MOST_STATES: Final = 64


class HotState(Protocol):
    """Where shares are between two batches."""

    def make(self, binding: Binding, plan: Plan) -> BucketEngine:
        """Empty windows, of a kind that can be published here."""

    def claim(self, bucket: str, token: str, binding: Binding, plan: Plan) -> BucketEngine | None:
        """Take the engine of a token out, if it is here."""

    def publish(self, bucket: str, token: str, engine: BucketEngine) -> None:
        """Offer an engine under a token; the caller uses it no more."""


class ProcessMemory:
    """Shares kept in this worker process; another worker does not find them."""

    def __init__(self, most: int = _MOST_STATES) -> None:
        self._states: OrderedDict[str, BucketEngine] = OrderedDict()
        self._most = most

    def make(self, binding: Binding, plan: Plan) -> BucketEngine:
        return BucketEngine(binding, plan)

    def claim(self, bucket: str, token: str, binding: Binding, plan: Plan) -> BucketEngine | None:
        engine = self._states.pop(token, None)
        if engine is None:
            return None
        made_for = (engine.driver.binding, engine.driver.windows.plan)
        return engine if made_for == (binding, plan) else None

    def publish(self, bucket: str, token: str, engine: BucketEngine) -> None:
        self._states[token] = engine
        # What failed attempts and other workers' buckets left behind goes, oldest first.
        while len(self._states) > self._most:
            self._states.popitem(last=False)
