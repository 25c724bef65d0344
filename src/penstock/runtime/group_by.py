"""A group-by over a join, whose groups come out when no more results of them can.

A group is over when the join says that its key is (`Join.punctuations`), so what streams promise
makes it early: with an auction that comes once and ends at a known time, the bids for it are
counted when it ends. Without promises all groups come out at the end.

Groups that are not over are kept as partial aggregates, one row for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import QueryError, SchemaError
from penstock.model.query import Query

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["GroupedJoin", "Groups", "group_by"]


class Startable(Protocol):
    """A query that can be run: `WindowJoin`."""

    @property
    def start(self) -> Callable[..., Join]:
        """Runs it in this process."""


Columns = str | Sequence[str] | Mapping[str, str]

# Of each function, the partial aggregates that it takes: how rows become one, how two become one.
_PARTS: Final = {
    "count": (("count", "sum"),),
    "sum": (("sum", "sum"),),
    "min": (("min", "min"),),
    "max": (("max", "max"),),
    "mean": (("sum", "sum"), ("count", "sum")),
}


class Aggregate(NamedTuple):
    """A column that comes out: a function of one that the join gives out; of rows, without one."""

    name: str
    function: str
    column: str | None


def group_by(
    query: Startable,
    keys: str | Sequence[str],
    *,
    count: str | None = None,
    **functions: Columns,
) -> GroupedJoin:
    """Group the results of a join by columns of its output.

    keys: the columns. Groups come out before the end if the key of the join is among them, as the
        column of any stream.
    count: the name of a column with the number of results.
    sum, min, max, mean: output columns to aggregate: `{"total": "bids_price"}`, or names, which
        then come out as `sum_bids_price`. Nulls are left out; a mean is a float.
    """
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    unknown = [name for name in functions if name not in _PARTS or name == "count"]
    if unknown:
        raise QueryError(f"group_by has no {unknown}; there are count, sum, min, max and mean")
    aggregates = [] if count is None else [Aggregate(count, "count", None)]
    for function, given in functions.items():
        aggregates += [
            Aggregate(name, function, column) for name, column in _named(function, given).items()
        ]
    if not names or not aggregates:
        raise QueryError(
            f"group_by takes columns to group by and something to aggregate, got {names} and "
            f"{[each.name for each in aggregates]}; give count='results', for example"
        )
    out = [*names, *(each.name for each in aggregates)]
    twice = sorted({name for name in out if out.count(name) > 1})
    if twice:
        raise QueryError(f"group_by would give out {twice} twice; name the columns apart")
    return GroupedJoin(query, names, tuple(aggregates))


def _named(function: str, given: Columns) -> Mapping[str, str]:
    if isinstance(given, Mapping):
        return given
    names = (given,) if isinstance(given, str) else given
    return {f"{function}_{name}": name for name in names}


@dataclass(frozen=True)
class GroupedJoin:
    """A join and what is aggregated of its results."""

    query: Startable
    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]

    def start(self, **options: Any) -> Groups:
        """Run it in this process; options as those of `WindowJoin.start`."""
        return Groups(self, self.query.start(**options))


class Groups:
    """A running group-by. join: beneath it, for all that is not said here."""

    def __init__(self, grouped: GroupedJoin, join: Join) -> None:
        self.join = join
        self._grouped = grouped
        self._open: pa.Table | None = None
        self._closing = _key_columns(join.query, grouped.keys)
        if self._closing is not None and not join.query.counts:
            join.driver.promised().told.keeps_all = True  # they are asked for with every push

    def push(self, batches: Mapping[str, Any] | None = None, /, **streams: Any) -> pa.Table:
        """Feed one batch; return the groups that are over."""
        return self._over(self.join.push(batches, **streams))

    def punctuate(self, stream: str, *key: Any, **columns: Any) -> pa.Table:
        """A promise, as `Join.punctuate` takes it; return the groups that are over."""
        return self._over(self.join.punctuate(stream, *key, **columns))

    def advance(self, stream: str, ts: Any) -> pa.Table:
        """Move a watermark, as `Join.advance` does; return the groups that are over."""
        return self._over(self.join.advance(stream, ts))

    def finish(self) -> pa.Table:
        """End all streams; return the rest of the groups."""
        self._add(self.join.finish())
        rest, self._open = self._open, None
        return pa.table({}) if rest is None else self._shown(rest)

    @property
    def open_groups(self) -> int:
        """How many groups are not over."""
        return 0 if self._open is None else len(self._open)

    def _over(self, results: pa.Table) -> pa.Table:
        self._add(results)
        if self._open is None:
            return pa.table({})  # the columns are not known yet
        told = self.join.punctuations()
        if self._closing is None or not len(told) or not len(self._open):
            return self._shown(self._open.slice(0, 0))
        over = _are_among(self._open.select(self._closing), told.columns[:-1])
        done = self._shown(self._open.filter(pa.array(over)))
        self._open = self._open.filter(pa.array(~over))
        return done

    def _add(self, results: pa.Table) -> None:
        """Take results into their groups."""
        if not len(results) and not self._is_known(results):
            return  # a stream has not been heard of
        parts = self._partial(results)
        if self._open is None or not len(self._open):
            self._open = parts
        elif len(parts):
            # A stream whose columns were not known may have been heard of meanwhile.
            both = pa.concat_tables([self._open, parts], promote_options="permissive")
            ways = [way for each in self._grouped.aggregates for _, way in _PARTS[each.function]]
            self._open = self._aggregated(both, ways)

    def _is_known(self, results: pa.Table) -> bool:
        return all(name in results.column_names for name in self._needed)

    @property
    def _needed(self) -> list[str]:
        columns = [each.column for each in self._grouped.aggregates]
        return [*self._grouped.keys, *(name for name in columns if name is not None)]

    def _partial(self, results: pa.Table) -> pa.Table:
        columns: dict[str, Any] = {}
        ways: list[str] = []
        for name in self._needed:
            if name not in results.column_names:
                raise SchemaError(
                    f"the join gives out no column {name!r} to group by or aggregate; its columns "
                    f"are {results.column_names}"
                )
        for each in self._grouped.aggregates:
            ones = pa.array(np.ones(len(results), np.int64))
            values = ones if each.column is None else results[each.column]
            for way, _ in _PARTS[each.function]:
                columns[f"part {len(ways)}"] = values
                ways.append(way)
        keys = {name: results[name] for name in self._grouped.keys}
        return self._aggregated(pa.table({**keys, **columns}), ways)

    def _aggregated(self, table: pa.Table, ways: Sequence[str]) -> pa.Table:
        names = [f"part {number}" for number in range(len(ways))]
        grouped = table.group_by(list(self._grouped.keys), use_threads=False)
        found = grouped.aggregate(list(zip(names, ways, strict=True)))
        columns = {name: found[name] for name in self._grouped.keys}
        for name, way in zip(names, ways, strict=True):
            columns[name] = found[f"{name}_{way}"]
        return pa.table(columns)

    def _shown(self, parts: pa.Table) -> pa.Table:
        """Groups as they come out."""
        columns = {name: parts[name] for name in self._grouped.keys}
        number = 0
        for each in self._grouped.aggregates:
            value = parts[f"part {number}"]
            if each.function == "mean":
                total = value.cast(pa.float64(), safe=False)
                value = pc.divide(total, parts[f"part {number + 1}"])
            columns[each.name] = value
            number += len(_PARTS[each.function])
        return pa.table(columns)


def _key_columns(query: Query, keys: Sequence[str]) -> list[str] | None:
    """The columns to group by that hold the key of the join; None if they do not hold all of it."""
    shown = {
        (stream, column): name for name, stream, column in query.selected or () if name in keys
    }
    found = []
    for columns in zip(*query.keys, strict=True):
        held = []
        for stream in query.given_out:
            name, column = query.names[stream], columns[stream]
            of_key = f"{name}_{column}" if query.selected is None else shown.get((name, column))
            if of_key is not None and of_key in keys:
                held.append(of_key)
        if not held:
            return None
        found.append(held[0])
    return found or None


def _are_among(
    rows: pa.Table, wanted: Sequence[pa.ChunkedArray]
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which rows are among others, that are given by columns of a type which holds all of them."""
    among = np.zeros(len(rows), np.bool_)
    names = [str(at) for at in range(len(wanted))]
    alike = [column.cast(want.type) for column, want in zip(rows.columns, wanted, strict=True)]
    numbered = {**dict(zip(names, alike, strict=True)), "row": pa.array(np.arange(len(rows)))}
    matched = pa.table(numbered).join(
        pa.table(dict(zip(names, wanted, strict=True))),
        keys=names,
        join_type="left semi",
        use_threads=False,
    )
    among[matched["row"].to_numpy()] = True
    return among
