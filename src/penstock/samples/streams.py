"""Several streams whose rows are a pure function of (seed, offset).

Every stream has the columns

    ts   timestamp, microseconds; row i falls at random into the i-th slot of 1 / rate seconds,
         or, with `in_step`, on its beginning
    k    the key: int64, or a string of 20 characters
    v    int64, then p1, p2, … of the types in columns.PAYLOADS

so times rise with the offset, unless `disorder` moves each row forward by a random length
up to it. Then a row is behind an earlier one by at most `disorder`, and a join with that
lateness finds none late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Required, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.model.duration import Duration, duration_us
from penstock.samples.key_laws import KeyLaw, ShuffledKeys, UniformKeys, ZipfKeys
from penstock.samples.payload_columns import PAYLOADS, key_strings
from penstock.stats.counter import draw, unit

__all__ = ["SampleStreams", "StreamOptions", "uniform", "zipf", "zipf_pair"]

# Lanes of a stream's random numbers; payload column c draws from lane _PAYLOAD + c.
_TIME: Final = 0
_DISORDER: Final = 1
_KEY: Final = 2
_PAYLOAD: Final = 3

_START_US: Final = 1_704_067_200_000_000  # 2024-01-01 00:00:00


@dataclass(frozen=True, kw_only=True)
class SampleStreams:
    """Streams to sample from; usually made by `uniform`, `zipf` or `zipf_pair`.

    law: how keys are picked, the same in every stream; or a law for each.
    rows: rows of each stream. They are made when asked for, so it may be huge.
    rate: rows of each stream per second of event time.
    streams: the streams' names. The rows depend on a stream's place, not on its name.
    string_keys: keys of 20 characters in place of integers.
    payload: number of columns beside `ts` and `k`: v, p1, p2, …
    disorder: how far a row may be behind an earlier one of its stream.
    start_us: event time of the first slot, in microseconds since the epoch.
    in_step: row i of every stream comes at the same instant, i / rate seconds after the start.
    """

    law: KeyLaw | Sequence[KeyLaw]
    rows: int
    seed: int = 0
    rate: float = 1000.0
    streams: Sequence[str] = ("left", "right")
    string_keys: bool = False
    payload: int = 1
    disorder: Duration = "0 seconds"
    start_us: int = _START_US
    in_step: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "streams", tuple(self.streams))
        if not self.streams or len(set(self.streams)) < len(self.streams):
            raise ValueError(f"streams must be different names, got {self.streams!r}")
        if isinstance(self.law, Sequence):
            object.__setattr__(self, "law", tuple(self.law))
            if len(self.law) != len(self.streams):
                raise ValueError(
                    f"law must be one for all streams or one for each of {len(self.streams)}, "
                    f"got {len(self.law)}"
                )
        if self.rows < 0:
            raise ValueError(f"rows must be zero or more, got {self.rows!r}")
        if not 0 < self.rate <= 1_000_000:
            raise ValueError(
                f"rate must be above 0 and at most 1,000,000 rows a second, got {self.rate!r}"
            )
        if self.payload < 0:
            raise ValueError(f"payload must be a number of columns, got {self.payload!r}")
        duration_us(self.disorder, "disorder")

    @property
    def schema(self) -> pa.Schema:
        """The columns of every stream."""
        key = pa.string() if self.string_keys else pa.int64()
        return pa.schema(
            [pa.field("ts", pa.timestamp("us")), pa.field("k", key)]
            + [
                pa.field(f"p{column}" if column else "v", PAYLOADS[column % len(PAYLOADS)][0])
                for column in range(self.payload)
            ]
        )

    def table(self, stream: str, start: int = 0, stop: int | None = None) -> pa.Table:
        """Rows `start` to `stop` (all of them, when not given) of a stream, in one chunk."""
        if stream not in self.streams:
            raise ValueError(f"no stream is called {stream!r}; the streams are {self.streams!r}")
        stop = self.rows if stop is None else min(stop, self.rows)
        start = min(max(start, 0), max(stop, 0))
        source = self.streams.index(stream)
        keys = self._keys(source, start, stop)
        columns: list[Any] = [
            pa.array(self._times(source, start, stop)).view(pa.timestamp("us")),
            key_strings(keys) if self.string_keys else pa.array(keys),
        ]
        for column in range(self.payload):
            _, make = PAYLOADS[column % len(PAYLOADS)]
            columns.append(make(draw(self.seed, (source, _PAYLOAD + column), start, stop)))
        return pa.table(columns, schema=self.schema)

    def batches(self, batch_rows: int) -> Iterator[dict[str, pa.Table]]:
        """All rows, `batch_rows` of every stream at a time; the last batch may be shorter."""
        if batch_rows < 1:
            raise ValueError(f"a batch needs at least one row, got {batch_rows!r}")
        for start in range(0, self.rows, batch_rows):
            yield {stream: self.table(stream, start, start + batch_rows) for stream in self.streams}

    def _times(self, source: int, start: int, stop: int) -> npt.NDArray[np.int64]:
        slots = np.arange(start, stop, dtype=np.float64)
        if not self.in_step:
            slots += unit(draw(self.seed, (source, _TIME), start, stop))
        times = (slots * (1e6 / self.rate)).astype(np.int64) + self.start_us
        disorder_us = duration_us(self.disorder, "disorder")
        if disorder_us:
            shifts = unit(draw(self.seed, (source, _DISORDER), start, stop))
            times += (shifts * (disorder_us + 1)).astype(np.int64)
        return times

    def _keys(self, source: int, start: int, stop: int) -> npt.NDArray[np.int64]:
        law = self.law[source] if isinstance(self.law, Sequence) else self.law
        return law.pick(unit(draw(self.seed, (source, _KEY), start, stop)))


class StreamOptions(TypedDict, total=False):
    """What the three below all take, with the meanings and defaults of `SampleStreams`."""

    seed: int
    rows: Required[int]
    rate: float
    streams: Sequence[str]
    string_keys: bool
    payload: int
    disorder: Duration
    start_us: int
    in_step: bool


def uniform(*, keys: int, **options: Unpack[StreamOptions]) -> SampleStreams:
    """Streams whose keys are picked from `keys` equally likely ones."""
    return SampleStreams(law=UniformKeys(keys), **options)


def zipf(*, keys: int, skew: float = 1.0, **options: Unpack[StreamOptions]) -> SampleStreams:
    """Streams in which key i of `keys` is picked in proportion to (i + 1) ** -skew."""
    return SampleStreams(law=ZipfKeys(keys, skew), **options)


def zipf_pair(
    *,
    keys: int,
    skews: tuple[float, float] = (1.0, 1.0),
    shuffle: int | None = None,
    **options: Unpack[StreamOptions],
) -> SampleStreams:
    """Two streams in step, one row of each every second, with a skew for each.

    Das, Gehrke and Riedewald try their policies on such streams. The keys that are common in one
    are common in the other (correlated), unless `shuffle`, a seed, exchanges those of the second.
    """
    first, second = (ZipfKeys(keys, skew) for skew in skews)
    laws = (first, second if shuffle is None else ShuffledKeys(second, shuffle))
    options.setdefault("rate", 1.0)
    options.setdefault("in_step", True)
    return SampleStreams(law=laws, **options)
