"""Sliding-window joins over unbounded streams.

`import penstock` loads what describes a query. The engine, the planner and all else are imported
when they are first asked for (`_LATER`, `window_join`), so of other packages only numba, numpy,
pyarrow and sqlglot are loaded, and no sooner than they are needed.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from penstock.errors import (
    InputError,
    InputWarning,
    MissingExtraError,
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
from penstock.model.predicates.udf import udf
from penstock.model.punctuation import NOTHING, OneOf, Range
from penstock.model.stream import Stream
from penstock.model.workload.workload import Workload
from penstock.window_join import WindowJoin

if _TYPE_CHECKING:
    from penstock.lab import measures, static
    from penstock.lab.optimum.optimum import Optimum, optimum
    from penstock.planning.explain.explanation import Explanation
    from penstock.runtime.estimate import Estimate, estimate
    from penstock.runtime.group_by import group_by
    from penstock.runtime.join import Join
    from penstock.runtime.metrics import Metrics, StreamMetrics
    from penstock.runtime.why.why import Why

__version__ = "0.1.0"

__all__ = [
    "ARRIVAL",
    "NOTHING",
    "Estimate",
    "Explanation",
    "InputError",
    "InputWarning",
    "Join",
    "Limits",
    "Metrics",
    "MissingExtraError",
    "OneOf",
    "Optimum",
    "PenstockError",
    "PlanError",
    "PlanWarning",
    "QueryError",
    "Range",
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
    "group_by",
    "measures",
    "optimum",
    "static",
    "udf",
]

# Names that are imported when they are first asked for: from which module, or that module itself.
_LATER = {
    "Estimate": "penstock.runtime.estimate",
    "Explanation": "penstock.planning.explain.explanation",
    "Join": "penstock.runtime.join",
    "Metrics": "penstock.runtime.metrics",
    "Optimum": "penstock.lab.optimum.optimum",
    "StreamMetrics": "penstock.runtime.metrics",
    "Why": "penstock.runtime.why.why",
    "estimate": "penstock.runtime.estimate",
    "group_by": "penstock.runtime.group_by",
    "measures": "penstock.lab.measures",
    "optimum": "penstock.lab.optimum.optimum",
    "static": "penstock.lab.static",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    module = _import_module(_LATER[name])
    value = getattr(module, name, module)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
