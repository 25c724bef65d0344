"""What is known of the streams of a query: how fast they come, and how often they match.

Pure data that validates itself: given by hand, measured from files (runtime.profile), or taken from
a running join (runtime.observed).

Time is event time: a rate is tuples in a second of it. What follows from a workload and a query are
expectations: of streams that go on as they are, whose keys are equally frequent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.errors import PlanError, QueryError
from penstock.model.access import Equal, Word
from penstock.model.duration import Duration, duration_us
from penstock.model.query import Query
from penstock.model.window import FOREVER, Window
from penstock.model.workload.fields import (
    Allowed,
    by_pair,
    by_stream,
    distinct_values,
    windows_of,
)
from penstock.model.workload.plain import plain_workload, unplain_fields

__all__ = ["Workload", "path_columns"]

_RATE: Final = Allowed("a rate, in tuples a second,", 0)
_PUNCTUATION_RATE: Final = Allowed("a rate, in punctuations a second,", 0)
_DISTINCT: Final = Allowed("a number of distinct values", 1)
_SELECTIVITY: Final = Allowed("a selectivity", 0, 1)
_ROW_BYTES: Final = Allowed("a number of bytes a row", 0)
_BY_NAME: Final = (
    "rates", "distinct", "selectivities", "row_bytes", "windows", "punctuation_rates",
)  # fmt: skip
_US: Final = 1e6


def path_columns(word: Word) -> tuple[str, ...]:
    """The columns that an access path is made of, in order of their names."""
    if isinstance(word, Equal):
        return tuple(sorted(word.columns))
    return tuple(sorted(column.name for column in word.expression.columns))


@dataclass(frozen=True)
class Workload:
    """What is known of the streams of a query. Numbers are for all streams, or by stream.

    rates: tuples in a second of event time.
    distinct: how many different keys there are in a window. Of a stream that is found by several
        things also by column, or tuple of columns: `{"a": {"x": 50, ("y", "z"): 2000}}`.
    selectivities: by pair of streams, the share of all pairs of their tuples that match; 1 over
        the larger number of keys when not given, and what else `where=` asks for is not counted.
    row_bytes: what is kept of a tuple.
    windows: to be planned for in the place of the query's own.
    horizon: how long streams go on whose windows never end, such as '1 day'.
    punctuation_rates: punctuations in a second of event time, each of which closes a key.
    """

    rates: Any
    distinct: Any = None
    selectivities: Any = None
    row_bytes: Any = None
    windows: Any = None
    horizon: Duration | None = None
    punctuation_rates: Any = None

    def __post_init__(self) -> None:
        derived = object.__setattr__  # the one way to fill a frozen dataclass
        derived(self, "rates", by_stream(self.rates, _RATE))
        for field, made in (
            ("distinct", lambda value: distinct_values(value, _DISTINCT)),
            ("selectivities", lambda value: by_pair(value, _SELECTIVITY)),
            ("row_bytes", lambda value: by_stream(value, _ROW_BYTES)),
            ("windows", windows_of),
            ("punctuation_rates", lambda value: by_stream(value, _PUNCTUATION_RATE)),
        ):
            if getattr(self, field) is not None:
                derived(self, field, made(getattr(self, field)))
        if self.horizon is not None:
            try:
                duration_us(self.horizon, "horizon")
            except QueryError as error:
                raise PlanError(str(error)) from None
        if isinstance(self.rates, dict):
            self._check_names(self.rates, "has a rate")

    def _check_names(self, known: Iterable[str], which: str) -> None:
        """Refuse fields that name a stream which is not among the known ones."""
        known = tuple(known)
        for field in _BY_NAME:
            told = getattr(self, field)
            for key in told if isinstance(told, dict) else ():
                for name in (key,) if isinstance(key, str) else key:
                    if name not in known:
                        raise PlanError(
                            f"{field} names {name!r}, and no such stream {which}; "
                            f"the streams are {known}"
                        )

    # What it says of one stream.

    def check(self, query: Query) -> None:
        """Raise PlanError unless it is of the streams of a query, and has a rate for each."""
        self._check_names(query.names, "is in the query")
        for name, words in zip(query.names, query.access.words, strict=True):
            self.rate(name)
            told = self.distinct.get(name) if isinstance(self.distinct, dict) else None
            paths = [tuple(sorted(path_columns(word))) for word in words]
            if isinstance(told, dict) and told and not set(told) & set(paths):
                raise PlanError(
                    f"distinct has values of {[*told]} of stream {name!r}, which is found by "
                    f"{paths}; give those, or the query that they are of"
                )
        if self.punctuation_rates is not None and (query.counts or not query.keys[0]):
            why = "its windows count rows or arrivals" if query.counts else "it has no key"
            raise PlanError(
                f"punctuation_rates are {self.punctuation_rates!r}, and this join cannot use "
                f"promises: {why}; leave them out"
            )

    def rate(self, name: str) -> float:
        """Tuples of a stream in a second."""
        return self._of(self.rates, name, "rate", "rates")

    def punctuation_rate(self, name: str) -> float | None:
        """Punctuations of a stream in a second; None when not given."""
        told = self.punctuation_rates
        return told.get(name) if isinstance(told, dict) else told

    def bytes_of_row(self, name: str) -> float:
        """What is kept of a tuple of a stream."""
        return self._of(self.row_bytes, name, "row width", "row_bytes")

    def knows_distinct(self, name: str, columns: Sequence[str] | None = None) -> bool:
        """Whether `distinct_keys` has an answer."""
        return self._distinct(name, columns) is not None

    def distinct_keys(self, name: str, columns: Sequence[str] | None = None) -> float:
        """How many different values a stream's columns have in its window.

        columns: of the key, or of another access path; need not be given where there is one.
        """
        found = self._distinct(name, columns)
        if found is None:
            told = self.distinct.get(name) if isinstance(self.distinct, dict) else None
            known = f"; known are those of {list(told)}" if isinstance(told, dict) else ""
            of = f" of {tuple(columns)}" if columns else ""
            raise PlanError(
                f"how many distinct values{of} stream {name!r} has is not known{known}; "
                "give distinct=, or measure it with `penstock profile`"
            )
        return found

    def _distinct(self, name: str, columns: Sequence[str] | None) -> float | None:
        told = self.distinct.get(name) if isinstance(self.distinct, dict) else self.distinct
        if not isinstance(told, dict):
            return told
        if columns is None:
            return next(iter(told.values())) if len(told) == 1 else None
        return told.get(tuple(sorted(columns)))

    def _of(self, told: Any, name: str, what: str, field: str) -> float:
        value = told.get(name) if isinstance(told, dict) else told
        if value is None:
            known = f", got those of {list(told)}" if isinstance(told, dict) else ""
            raise PlanError(
                f"the {what} of stream {name!r} is not known{known}; give it in {field}=, "
                "or measure it with `penstock profile`"
            )
        return float(value)

    # What follows for a query.

    def window(self, query: Query, name: str) -> Window:
        """The window to plan for."""
        own = query.windows[query.position(name)]
        given = self.windows.get(name) if isinstance(self.windows, dict) else self.windows
        return given if isinstance(given, Window) else own

    def window_tuples(self, query: Query, name: str) -> float:
        """How many tuples a stream's window is expected to hold.

        A window of slots is empty at the begin of a slot and full at its end: half of that.
        """
        window = self.window(query, name)
        if window.per_key:
            return window.rows * self.distinct_keys(name, query.keys[query.position(name)])
        if window.rows:
            return float(window.rows)
        if window.arrivals:
            of_all = sum(self.rate(each) for each in query.names)
            return window.arrivals * self.rate(name) / of_all if of_all else 0.0
        if window.slot_us:
            return self.rate(name) * window.slot_us / _US / 2
        if window.length_us < FOREVER:
            # Of two bounds on a difference one may be negative: nothing waits there.
            return self.rate(name) * max(window.length_us, 0) / _US
        if self.horizon is None:
            raise PlanError(
                f"the window of stream {name!r} is {str(window)!r} and never ends, so what it will "
                "hold is not known; say how long the streams go on with horizon=, such as '1 day' "
                "(in a shell, --horizon '1 day')"
            )
        return self.rate(name) * duration_us(self.horizon, "horizon") / _US

    def live_tuples(self, query: Query, name: str) -> float:
        """The same, with those that are kept since others may still come as late as allowed."""
        lateness_us = max(stream.lateness_us for stream in query.streams)
        return self.window_tuples(query, name) + self.rate(name) * lateness_us / _US

    def live_bytes(self, query: Query, name: str) -> float:
        """What is kept of these, without rings and indexes."""
        return self.live_tuples(query, name) * self.bytes_of_row(name)

    def selectivity(self, query: Query, first: int | str, second: int | str) -> float:
        """The share of the pairs of two streams' tuples that match, windows aside.

        When it is not given, by the numbers of keys: where all keys are equally frequent and those
        of one stream are among those of the other, it is 1 over the larger. Predicates that no
        index can serve then count as if they always held, as do streams that nothing links.
        """
        left, right = (
            query.position(each) if isinstance(each, str) else each for each in (first, second)
        )
        pair = query.names[left], query.names[right]
        given = self.selectivities
        if isinstance(given, Mapping):
            given = given.get((min(pair), max(pair)))
        if given is not None:
            return float(given)
        words = query.access.words
        share = 1.0
        for group in query.access.groups:
            if left in group and right in group:
                share /= self._larger(pair, (words[left][group[left]], words[right][group[right]]))
        for relation in query.access.relations:
            ends = dict([relation.left, relation.right])
            if set(ends) != {left, right}:
                continue
            if relation.op != "same":
                raise PlanError(
                    f"how many pairs of {pair[0]!r} and {pair[1]!r} match by order is not known; "
                    f"give selectivities={{{pair!r}: 0.01}} (in a shell, "
                    f"--selectivity {','.join(pair)}=0.01), or measure it with `penstock profile`"
                )
            share /= self._larger(pair, (words[left][ends[left]], words[right][ends[right]]))
        return share

    def _larger(self, pair: tuple[str, str], words: tuple[Word, Word]) -> float:
        """The larger number of keys, by what is known of two streams."""
        paths = [(name, path_columns(word)) for name, word in zip(pair, words, strict=True)]
        known = [self.distinct_keys(*path) for path in paths if self.knows_distinct(*path)]
        return max(known) if known else self.distinct_keys(*paths[0])

    # As plain values.

    def to_dict(self) -> dict[str, Any]:
        """All of it in values that JSON has; `from_dict` reads them."""
        return plain_workload({field: getattr(self, field) for field in self.__dataclass_fields__})

    @classmethod
    def from_dict(cls, plain: Any) -> Workload:
        """The reverse of `to_dict`."""
        return cls(**unplain_fields(plain, tuple(cls.__dataclass_fields__)))
