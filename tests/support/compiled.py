"""Compiles the kernels that most tests call, before a run: two tests at once would both compile.

PYTHONPATH=tests python -m support.compiled "by a key"
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

import penstock as ps

ROWS = 400
STREAMS = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
PREDICATES = {
    "by a key": {"on": "k"},
    "by order": {"where": "abs(a.k - b.k) <= 1"},
}


def run(query: ps.WindowJoin, limits: ps.Limits | None) -> None:
    """Windows grow, are left, looked through, saved and filled again."""
    join = query.start(limits=limits)
    for begin in range(0, 3 * ROWS, ROWS):
        times = np.arange(begin, begin + ROWS)
        table = pa.table({"ts": times, "k": times % 40})
        join.push(a=table, b=table)
    join.driver.check()
    query.restore(join.snapshot(), limits=limits).finish()


def main(predicate: str) -> None:
    newest = [ps.Stream("a", time="ts", window="2 rows per key"), *STREAMS[1:]]
    where = PREDICATES[predicate].get("where")
    run(ps.WindowJoin(newest, on="k", where=where, within="100 us"), None)
    for how in ("inner", "semi", "full"):
        query = ps.WindowJoin(STREAMS, **PREDICATES[predicate], within="100 us", how=how)
        for limits in (None, ps.Limits(memory="50 rows")):
            if limits is None or how != "full":  # an outer join has no limits
                run(query, limits)


if __name__ == "__main__":
    main(sys.argv[1])
