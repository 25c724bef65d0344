"""What is assumed of streams that nothing is known of, so that a plan can be made all the same.

Every stream comes as fast as any other. A window that counts rows is as large as it says; every
other one is large, for a wrong guess then costs little: an index that is not needed is a small
loss, and a scan of a window that turns out to be large a great one. A tuple meets about one tuple
of every other window. So what must be equal is found by hash and what has an order in a tree, as
far as the weights of the machine do not say otherwise.

Of a stream that is silent it is assumed that it comes back, slowly.
"""

from __future__ import annotations

from typing import Final

from penstock.model.query import Query
from penstock.model.window import RowWindow
from penstock.model.workload.workload import Workload

__all__ = ["LARGE_WINDOW", "ROW_BYTES", "SILENT", "USUAL_RATE", "assumed_workload"]

USUAL_RATE: Final = 1_000.0  # tuples a second, of every stream
LARGE_WINDOW: Final = 100_000  # tuples
SILENT: Final = 1e-3  # of the fastest rate, that of a stream which does not come
ROW_BYTES: Final = 64.0  # kept of a tuple, where it is not known


def assumed_workload(query: Query) -> Workload:
    """The workload to plan for when none is given."""
    windows, distinct = {}, {}
    for name, window in zip(query.names, query.windows, strict=True):
        keys = float(LARGE_WINDOW)
        if window.per_key:
            keys = max(LARGE_WINDOW / window.rows, 1.0)
        elif window.rows:
            keys = float(window.rows)
        elif window.arrivals:
            keys = max(window.arrivals / len(query.names), 1.0)
        else:
            windows[name] = RowWindow(LARGE_WINDOW)
        distinct[name] = keys
    return Workload(
        USUAL_RATE,
        distinct=distinct,
        selectivities={
            pair: 1 / max(distinct[name] for name in pair) for pair in _ordered_pairs(query)
        },
        windows=windows,
        row_bytes=ROW_BYTES,
    )


def _ordered_pairs(query: Query) -> list[tuple[str, str]]:
    """The pairs of streams that are linked by order: numbers of keys do not say what they find."""
    names = query.names
    found = {
        tuple(sorted((names[each.left[0]], names[each.right[0]])))
        for each in query.access.relations
    }
    return [(first, second) for first, second in sorted(found)]
