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
JOINS = {
    "by a key": ps.WindowJoin(STREAMS, on="k", within="100 us"),
    "by order": ps.WindowJoin(STREAMS, where="abs(a.k - b.k) <= 1", within="100 us"),
}


def run(query: ps.WindowJoin) -> None:
    """Windows grow, are left, saved and filled again; without limits, and with some."""
    for limits in (None, ps.Limits(memory="50 rows")):
        join = query.start(limits=limits)
        for begin in range(0, 3 * ROWS, ROWS):
            times = np.arange(begin, begin + ROWS)
            table = pa.table({"ts": times, "k": times % 40})
            join.push(a=table, b=table)
        query.restore(join.snapshot(), limits=limits).finish()


if __name__ == "__main__":
    run(JOINS[sys.argv[1]])
