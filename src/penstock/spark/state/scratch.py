"""Where the hot state of a query is kept on each host, and when it goes.

On a local master the driver names the directory, `<scratch>/penstock-<user>/<pid>.<random>`,
and removes it when the query has ended; that of a driver which was killed, or of a query that
failed in its first batch, goes with the next clean-up by any query of this user once the driver
is gone. On a cluster it is inside the directory that Spark gives to each executor and removes
with it; what a query left in an executor that lives on goes an hour after it was last used.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

__all__ = ["Place", "place_for"]


@dataclass(frozen=True)
class Place:
    """name: of the directory of one query. scratch: what it is in; None if executors know."""

    name: str
    scratch: str | None

    def root(self) -> Path | None:
        """A private directory on this host for all of a user's queries; None if there is none."""
        given = self.scratch or _named_by_environment() or tempfile.gettempdir()
        root = Path(given) / f"penstock-{os.getuid()}"
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            there = root.lstat()  # a link is not ours, wherever it leads
            mine = there.st_uid == os.getuid() and there.st_mode & 0o077 == 0
            is_usable = mine and stat.S_ISDIR(there.st_mode) and os.access(root, os.W_OK)
            return root if is_usable else None
        except OSError:
            return None


def place_for(spark: Any) -> Place:
    """A new place, for one query of a session."""
    random = secrets.token_hex(8)
    # A Connect client may be on another host than the driver.
    local = spark.conf.get("spark.master", "").startswith("local")
    if not local or "cluster" in spark.conf.get("spark.master") or not hasattr(spark, "_sc"):
        return Place(random, None)
    set_for_spark = spark.conf.get("spark.local.dir", "").split(",")[0]
    scratch = _named_by_environment() or set_for_spark or tempfile.gettempdir()
    _clean_up_after(spark, scratch)
    return Place(f"{os.getpid()}.{random}", scratch)


def _named_by_environment() -> str | None:
    named = os.environ.get("PENSTOCK_SCRATCH") or os.environ.get("SPARK_LOCAL_DIRS")
    return named.split(",")[0] if named else None


class _AfterQueries(StreamingQueryListener):
    """Removes the directory of a query that has ended.

    Which directory it is comes with the query's own progress: a DataFrame does not know which
    queries it will be started as.
    """

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._names: dict[Any, set[str]] = {}

    def onQueryStarted(self, event: Any) -> None:
        """Nothing is known yet."""

    def onQueryProgress(self, event: Any) -> None:
        """Note the directory."""
        for counters in event.progress.observedMetrics.values():
            name = counters.asDict().get("hot_state")
            if str(name).startswith(f"{os.getpid()}."):
                self._names.setdefault(event.progress.runId, set()).add(name)

    def onQueryIdle(self, event: Any) -> None:
        """An idle query goes on."""

    def onQueryTerminated(self, event: Any) -> None:
        """Remove the directory. A query started anew from the same DataFrame makes it again."""
        root = Place("", self._scratch).root()
        for name in self._names.pop(event.runId, ()):
            if root is not None:
                shutil.rmtree(root / name, ignore_errors=True)


def _clean_up_after(spark: Any, scratch: str) -> None:
    """Listen to a session's queries, once for each session."""
    if getattr(spark, "_penstock_listens_in", None) != scratch:
        spark.streams.addListener(_AfterQueries(scratch))
        spark._penstock_listens_in = scratch
