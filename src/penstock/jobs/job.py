"""A job: a join over files, declared in full.

The flags of every command that reads files fill one (`cli.request`). It is plain data in the words
of the query, which checks them: `Job.query` raises what `WindowJoin` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.model.limits import Limits
from penstock.model.stream import Stream
from penstock.window_join import WindowJoin

__all__ = ["Job", "JobStream"]


@dataclass(frozen=True)
class JobStream:
    """A stream of a job: the file that its rows are in, and how they are joined.

    key: the columns of its key; none in a join by predicates alone. index: None for the cheapest.
    """

    path: Path
    name: str
    key: Sequence[str]
    time: str
    window: str
    lateness: str = "0 seconds"
    index: str | None = None


@dataclass(frozen=True)
class Job:
    """A join over files.

    where, how: as of `WindowJoin`. limits: None for all the memory that the windows need.
    batch_rows: how many rows of a file are read at a time.
    """

    streams: Sequence[JobStream]
    where: str | None = None
    how: str = "inner"
    limits: Limits | None = None
    batch_rows: int = 65_536

    @property
    def query(self) -> WindowJoin:
        """The join."""
        keys = {stream.name: stream.key for stream in self.streams}
        return WindowJoin(
            [
                Stream(each.name, each.time, window=each.window, lateness=each.lateness)
                for each in self.streams
            ],
            on=keys if all(keys.values()) else None,
            where=self.where,
            how=self.how,
        )

    @property
    def indexes(self) -> dict[str, str]:
        """The indexes that are given, by stream."""
        return {each.name: each.index for each in self.streams if each.index is not None}
