"""The parent of Spark's Python workers, with what they import already there.

A worker is a fork of it, and each batch of a new query needs a dozen: importing numba, pandas
and Arrow in every one takes as many seconds of CPU. For `spark.python.daemon.module`.

Nothing is computed before the fork, since threads do not survive it.
"""

from __future__ import annotations

import gc

import pyspark.worker  # noqa: F401 - what workers run
from numba.core.registry import cpu_target
from pyspark.daemon import manager

import penstock.spark.operator  # noqa: F401 - and what they run there

if __name__ == "__main__":
    # Numba's tables of types and operations, which the first kernel of a process would load.
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    gc.freeze()  # what is never collected stays shared
    manager()
