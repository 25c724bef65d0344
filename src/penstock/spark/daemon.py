"""The parent of Spark's Python workers, with what they import already there.

A worker is a fork of it, and each batch of a new query needs a dozen: importing numba, pandas
and Arrow in every one takes as many seconds of CPU. For `spark.python.daemon.module`.

Nothing is computed before the fork, since threads do not survive it.
"""

from __future__ import annotations

import gc
import sys
from importlib.util import find_spec
from pathlib import Path


def _leave_archives() -> None:
    """Import PySpark from where it is installed, if its archives on the path are copies of that.

    Spark puts them first on every worker's path. Python compiles what comes from an archive
    anew each time, which takes a second, and reads their directories again in each fork.
    """
    before = list(sys.path)
    archives = [entry for entry in before if entry.endswith((".zip", ".jar"))]
    sys.path[:] = [entry for entry in before if entry not in archives]
    installed = find_spec("pyspark")
    home = Path(installed.origin).parent if installed and installed.origin else None
    if home is None or find_spec("py4j") is None:
        sys.path[:] = before
        return
    # Those inside the installed package are of its version; others are somebody else's.
    copies = [entry for entry in archives if home in Path(entry).parents]
    sys.path[:] = [entry for entry in before if entry not in copies]
    for entry in copies:
        sys.path_importer_cache.pop(entry, None)


if __name__ == "__main__":
    _leave_archives()

    from numba.core.registry import cpu_target
    from pyspark.daemon import manager

    import penstock.spark.operator
    import penstock.spark.task  # noqa: F401 - what workers run

    # Numba's tables of types and operations, which the first kernel of a process would load.
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    gc.freeze()  # what is never collected stays shared
    manager()
