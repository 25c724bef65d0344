"""Sliding-window joins over unbounded streams."""

from penstock.errors import (
    InputError,
    InputWarning,
    PenstockError,
    PlanError,
    PlanWarning,
    QueryError,
    SchemaError,
    SnapshotError,
    StateError,
    TimestampError,
    UdfError,
)
from penstock.model.arrival_time import ARRIVAL
from penstock.model.limits import Limits
from penstock.model.stream import Stream
from penstock.model.udf import udf
from penstock.model.workload import Workload
from penstock.offline.optimum import Optimum, optimum
from penstock.planning.explanation import Explanation
from penstock.runtime.estimate import Estimate, estimate
from penstock.runtime.join import Join
from penstock.runtime.metrics import Metrics, StreamMetrics
from penstock.runtime.why import Why
from penstock.shedding import measures, static
from penstock.window_join import WindowJoin

__version__ = "0.1.0"

__all__ = [
    "ARRIVAL",
    "Estimate",
    "Explanation",
    "InputError",
    "InputWarning",
    "Join",
    "Limits",
    "Metrics",
    "Optimum",
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
    "UdfError",
    "Why",
    "WindowJoin",
    "Workload",
    "__version__",
    "estimate",
    "measures",
    "optimum",
    "static",
    "udf",
]
