"""Input files without end, a pure function of the seed, and the answer that is right for them.

A file holds ten seconds of one stream, out of order within its lateness, so nothing is ever
late and the answer is one of the data alone: of no batch, no partition and no crash.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps

SCHEMA = "ts timestamp, k string, v bigint"
QUERY = ps.WindowJoin(
    [ps.Stream("a", time="ts", lateness="2 seconds"), ps.Stream("b", time="ts", lateness="2 s")],
    on="k",
    within="5 seconds",
)

_SECOND = 1_000_000
_START = 1_700_000_000 * _SECOND
_ROWS = 200
_KEYS = 40


class Feed:
    """A directory of files for each stream."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._seed = seed
        self._directories = {name: directory / name for name in QUERY.names}
        self.files = 0
        for each in self._directories.values():
            each.mkdir(parents=True)

    def write(self, files: int) -> None:
        """Let each stream go on by so many files."""
        for number in range(self.files, self.files + files):
            for name, directory in self._directories.items():
                # Spark does not see a name that begins with a point, and so no half a file.
                hidden = directory / f".{number:05}.parquet"
                pq.write_table(self._table(name, number), hidden)
                os.utime(hidden, (_START // _SECOND + number,) * 2)
                hidden.rename(directory / hidden.name[1:])
        self.files += files

    def answer(self) -> pa.Table:
        """What the embedded join makes of all that was written."""
        join = QUERY.start()
        tables = [
            join.push({name: self._table(name, number) for name in QUERY.names})
            for number in range(self.files)
        ]
        assert not any(stream.late for stream in join.metrics.streams.values())
        return pa.concat_tables([*tables, join.finish()])

    def _table(self, name: str, number: int) -> pa.Table:
        random = np.random.default_rng([self._seed, ord(name), number])
        times = random.integers(0, 10 * _SECOND, _ROWS)
        keys = random.integers(0, _KEYS, _ROWS)
        order = np.argsort(times + random.integers(0, 2 * _SECOND, _ROWS))
        return pa.table(
            {
                "ts": pa.array(
                    (_START + number * 10 * _SECOND + times)[order], pa.timestamp("us", "UTC")
                ),
                "k": [f"key {key}" if key else None for key in keys],
                "v": number * _ROWS + np.arange(_ROWS),
            }
        )
