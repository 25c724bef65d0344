"""The parent of Spark's Python workers, with what they import already there.

A worker is a fork of it, and each batch of a new query needs a dozen: importing numba, pandas
and Arrow in every one takes as many seconds of CPU. For `spark.python.daemon.module`.

Nothing is computed before the fork, since threads do not survive it.
"""

from __future__ import annotations

import gc

import pyspark.worker  # noqa: F401 - what workers run
from pyspark.daemon import manager

import penstock.spark.operator  # noqa: F401 - and what they run there

if __name__ == "__main__":
    gc.freeze()  # what is never collected stays shared
    manager()
