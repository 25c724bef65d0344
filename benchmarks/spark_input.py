"""What streams on Spark are read from: parquet files, one for each batch and stream.

Spark reads the files of a directory in order of age, so each is given its own second.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.samples import SampleStreams

__all__ = ["Shape", "write_input"]

_ROW_GROUP_ROWS: Final = 250_000  # a file is read by several tasks
_FIRST_AGE_S: Final = 1_700_000_000


@dataclass(frozen=True)
class Shape:
    """The streams of a contest: batches of so many rows a side, and the columns left out."""

    work: SampleStreams
    batch_rows: int
    without: Sequence[str] = ()

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return self.work.rows // self.batch_rows

    @property
    def columns(self) -> list[str]:
        """The columns of every stream."""
        return [name for name in self.work.schema.names if name not in self.without]


def write_input(shape: Shape, directory: Path) -> None:
    """Write every batch of every stream: `<directory>/<stream>/<batch>.parquet`."""
    for stream in shape.work.streams:
        (directory / stream).mkdir(parents=True)
    for number, batch in enumerate(shape.work.batches(shape.batch_rows)):
        for stream, table in batch.items():
            path = directory / stream / f"{number:05}.parquet"
            # Without a zone Spark would take the time for a local one.
            in_utc = table["ts"].cast(pa.timestamp("us", tz="UTC"))
            rows = table.set_column(0, "ts", in_utc).select(shape.columns)
            pq.write_table(rows, path, row_group_size=_ROW_GROUP_ROWS)
            os.utime(path, (_FIRST_AGE_S + number,) * 2)
