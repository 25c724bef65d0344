"""Sliding-window joins over unbounded streams."""

from penstock.errors import (
    InputError,
    PenstockError,
    PlanError,
    PlanWarning,
    QueryError,
    SchemaError,
    SnapshotError,
    StateError,
    TimestampError,
)
from penstock.model.stream import Stream
from penstock.runtime.join import Join
from penstock.runtime.metrics import Metrics, StreamMetrics
from penstock.runtime.why import Why
from penstock.window_join import WindowJoin

__version__ = "0.1.0"

__all__ = [
    "InputError",
    "Join",
    "Metrics",
    "PenstockError",
    "PlanError",
    "PlanWarning",
    "QueryError",
    "SchemaError",
    "SnapshotError",
    "StateError",
    "Stream",
    "StreamMetrics",
    "TimestampError",
    "Why",
    "WindowJoin",
    "__version__",
]
