"""Compiles the kernels that most tests call, before a run: two tests at once would both compile.

PYTHONPATH=tests python -m support.compiled "by a key"
"""

from __future__ import annotations

import sys

import pyarrow as pa

import penstock as ps

STREAMS = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
JOINS = {
    "by a key": ps.WindowJoin(STREAMS, on="k", within="1 second"),
    "by order": ps.WindowJoin(STREAMS, where="a.k <= b.k", within="1 second"),
}


def run(join: ps.WindowJoin) -> None:
    """Without limits, and with such as drop a row."""
    table = pa.table({"ts": [1, 2, 3], "k": [1, 2, 3]})
    for limits in (None, ps.Limits(memory="2 rows")):
        with join.start(limits=limits) as started:
            started.push(a=table, b=table)
            started.finish()


if __name__ == "__main__":
    run(JOINS[sys.argv[1]])
