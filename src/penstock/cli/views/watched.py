"""Files that are read, with a progress bar that follows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from penstock.cli.views.display import short
from penstock.files.source import Source

__all__ = ["Watched"]


class Watched:
    """Several files. update: takes how many of their bytes are behind us, and what is shown."""

    def __init__(self, sources: Sequence[Source], update: Callable[[int, str], None]) -> None:
        self._sources = sources
        self._update = update
        self._started = time.perf_counter()
        self._rows = 0

    def batches(self, at: int) -> Iterator[pa.RecordBatch]:
        """Those of one file."""
        for batch in self._sources[at].batches:
            yield batch
            self._rows += batch.num_rows
            seconds = max(time.perf_counter() - self._started, 1e-9)
            behind = sum(source.position() for source in self._sources)
            self._update(behind, f"{short(self._rows / seconds)} rows/s")
