"""Aggregates over an answer of which random tuples were shed, as estimates with intervals.

Kang, Naughton and Viglas shed at random so that what comes out is a sample of the exact answer.
The ledger says how large a part of it, so a sum is scaled up by that. Results are not drawn one by
one: a tuple that is shed takes all results to come with it. So the variance is that of drawing
tuples, each with all the results in which it was the oldest, and the interval is rather too wide
than too narrow: a tuple that was kept for a part of its time counts as if it had been kept for all
of it or for none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.padding import microseconds
from penstock.errors import InputError, PlanError
from penstock.runtime.join import Join

__all__ = ["Estimate", "estimate"]

_WITHIN_95: Final = 1.96  # standard deviations
_NONE_SEEN: Final = 3.0  # rule of three: rows of which none was seen are at most 3/p, to 95 %


@dataclass(frozen=True)
class Estimate:
    """value: what the exact answer would give, about. interval: where it is, with a chance of
    95 %."""

    value: float
    interval: tuple[float, float]

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:,.6g} ({low:,.6g} to {high:,.6g})"


def estimate(
    table: pa.Table, join: Join, *, sum: str | None = None, mean: str | None = None
) -> Estimate:
    """A sum or a mean of a column, or the number of rows, that the exact answer would give.

    table: results of a join with shed='random', all or those that some condition holds for; with
        the time columns of all streams, which show whose tuple was the oldest.
    """
    if not isinstance(table, pa.Table):
        raise InputError(f"estimate takes a table of results, got a {type(table).__name__}")
    if sum is not None and mean is not None:
        raise InputError("estimate gives a sum or a mean, not both at once; call it twice")
    part, spread = _part(join)
    if mean is not None and mean in table.column_names:
        table = table.filter(pc.is_valid(table[mean]))  # as SQL has it
    values = _values(table, sum or mean)
    tuples = _oldest(table, join)
    if not len(values) and part < 1.0:
        if sum is not None or mean is not None:
            raise InputError(
                "of no rows nothing can be estimated; give a table that has some, or ask for the "
                "number of rows"
            )
        return Estimate(0.0, (0.0, _NONE_SEEN / part))
    scaled, variance = _scaled(values, tuples, part, spread)
    if mean is None:
        told = _around(scaled, variance)
        if sum is None:  # there are at least those that came out
            told = replace(told, interval=(max(told.interval[0], len(values)), told.interval[1]))
        return told
    count = len(values) / part
    if not count:
        raise InputError("a mean of no rows cannot be estimated; give a table that has some")
    ratio = scaled / count
    # Of a ratio: that of what is left when the ratio is taken off each value.
    _, of_rest = _scaled(values - ratio, tuples, part, 0.0)
    return _around(ratio, of_rest / count**2)


def _part(join: Join) -> tuple[float, float]:
    """Which part of the exact answer came out, and the variance of it, relative to its square."""
    shedder, metrics = join.driver.shedder, join.metrics
    if shedder.limits is None:
        return 1.0, 0.0
    limits = shedder.limits
    if metrics.unprobed and limits.drop == "probe":
        raise PlanError(
            "with service_rate= and drop='probe' tuples of one stream look for partners more often "
            "than those of another, so results are no random sample; use drop='tuple' for estimates"
        )
    if metrics.shed and limits.memory.is_limited and limits.shed != "random":
        raise PlanError(
            f"shed={shedder.limits.shed!r} keeps the tuples that it takes for the best, so results "
            "are no random sample; use shed='random' for estimates"
        )
    if metrics.recall is None:
        raise PlanError(
            "with loss='off' it is not known which part of the answer came out; "
            "use loss='exact' or 'sampled' for estimates"
        )
    if metrics.recall == 0.0:
        raise InputError("all results were lost, and nothing can be estimated from none")
    due = metrics.produced + (metrics.lost or 0)
    return metrics.recall, (shedder.losses.variance or 0.0) / max(due, 1) ** 2


def _values(table: pa.Table, name: str | None) -> npt.NDArray[np.float64]:
    if name is None:
        return np.ones(len(table))
    if name not in table.column_names:
        raise InputError(f"no column is called {name!r}; the columns are {table.column_names}")
    try:
        floats = pc.cast(table[name], pa.float64(), safe=False)
    except pa.ArrowException as error:
        raise InputError(f"column {name!r} is no number: {error}; cast it first") from error
    filled: npt.NDArray[np.float64] = pc.fill_null(floats, 0.0).to_numpy()
    return filled


def _oldest(table: pa.Table, join: Join) -> npt.NDArray[np.int64]:
    """For each row a number that says which tuple was the oldest in it."""
    binding = join.driver.binding
    times, columns = [], []
    for stream in join.query.given_out:
        names = {out.column: out.name for out in binding.output if out.stream == stream}
        time = names.get(join.query.streams[stream].time_column)
        if time is None or time not in table.column_names:
            raise InputError(
                f"the table lacks the time of stream {join.query.names[stream]!r}, by which the "
                "oldest tuple of a result is told; add it to select="
            )
        times.append(microseconds(table[time].combine_chunks()))
        columns.append([name for name in names.values() if name in table.column_names])
    if not len(table):
        return np.empty(0, np.int64)
    oldest = np.argmin(np.stack(times), axis=0)
    numbers = np.zeros(len(table), np.int64)
    for stream, names_there in enumerate(columns):
        rows = np.flatnonzero(oldest == stream)
        code = np.zeros(len(rows), np.int64)
        for name in names_there:
            values: Any = table[name].take(pa.array(rows)).combine_chunks().dictionary_encode()
            code = code * (len(values.dictionary) + 1) + values.indices.fill_null(-1).to_numpy() + 1
            _, code = np.unique(code, return_inverse=True)
        numbers[rows] = code * len(columns) + stream
    return np.unique(numbers, return_inverse=True)[1]


def _scaled(
    values: npt.NDArray[np.float64], tuples: npt.NDArray[np.int64], part: float, spread: float
) -> tuple[float, float]:
    """The sum of all values scaled up, and its variance."""
    scaled = float(values.sum()) / part
    of_tuples = np.bincount(tuples, weights=values) if len(values) else np.zeros(1)
    drawn = float((of_tuples**2).sum()) * (1.0 - part) / part**2
    return scaled, drawn + scaled**2 * spread


def _around(value: float, variance: float) -> Estimate:
    off = _WITHIN_95 * sqrt(variance)
    return Estimate(value, (value - off, value + off))
