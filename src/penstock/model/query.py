"""A query: which streams are joined, on what, and within which windows.

Pure data that validates itself. What it means is section "What the answer is" of
docs/semantics.md, and, to the letter, tests/support/oracle.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Self

from penstock.errors import QueryError
from penstock.model.access import Access, access_paths
from penstock.model.duration import Duration, signed_us
from penstock.model.join_type import JOIN_TYPES, JoinType
from penstock.model.predicates.column_name import split_name
from penstock.model.predicates.key_terms import divided, keys_of
from penstock.model.predicates.predicate import Predicate
from penstock.model.predicates.udf import Udf
from penstock.model.predicates.where import Where, parse_where
from penstock.model.stream import Stream
from penstock.model.window import (
    ArrivalWindow,
    BoundWindow,
    RowWindow,
    TimeWindow,
    TumblingWindow,
    Window,
    parse_window,
)

__all__ = ["MAX_STREAMS", "Columns", "Query"]

MAX_STREAMS: Final = 16

Columns = str | Sequence[str]


@dataclass(frozen=True)
class Query:
    """A join of two or more streams.

    how: which tuples come out: 'inner' those that match; of two streams also 'left', 'right'
        and 'full', which give out those of the left, the right or both that match nothing,
        with nulls for the other; 'semi' and 'anti', which give out only tuples of the left,
        once, those that match something and those that match nothing.
    on: the key: a column that all streams share, several of them, or for each stream
        its own column or columns.
    where: further predicates, or all of them: SQL text (see `predicates.where`), `udf`s, or a
        list of these, all of which must hold.
    within: the window of every stream that names none.
    between: for two streams, instead of windows: the least and the greatest difference
        `second.ts - first.ts`, each a length of time, negative as `"-5 seconds"`.
    closed: which ends of `between` belong to it: 'both', 'left', 'right' or 'neither'.
    select: output columns, as `{"new_name": "stream.column"}` or `["stream.column", …]`
        (then named `stream_column`); all columns of all streams when not given.
    """

    streams: Sequence[Stream]
    on: Columns | Mapping[str, Columns] | None = None
    within: Window | Duration | None = None
    select: Mapping[str, str] | Sequence[str] | None = None
    between: tuple[Duration, Duration] | None = None
    closed: str = "both"
    where: Where | None = None
    how: str = "inner"

    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    windows: tuple[Window, ...] = field(init=False, repr=False, compare=False)
    keys: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    selected: tuple[tuple[str, str, str], ...] | None = field(init=False, repr=False, compare=False)
    filters: tuple[Predicate, ...] = field(init=False, repr=False, compare=False)
    residuals: tuple[Predicate, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        derived = object.__setattr__  # the one way to fill a frozen dataclass
        derived(self, "streams", _streams(self.streams))
        derived(self, "names", tuple(stream.name for stream in self.streams))
        predicates = () if self.where is None else parse_where(self.where, self.names)
        if self.where is not None and not isinstance(self.where, str | Udf):
            derived(self, "where", tuple(self.where))
        if self.on is not None:
            keys = _keys(self.names, self.on)
        elif self.where is not None:
            keys = keys_of(predicates, len(self.names))
        else:
            raise QueryError("a join needs on= or where=; give the columns that must be equal")
        derived(self, "keys", keys)
        filters, residuals = divided(predicates, keys)
        derived(self, "filters", filters)
        derived(self, "residuals", residuals)
        within = self.within
        if within is not None:
            within = parse_window(within, "within")
            derived(self, "within", within)
        if self.between is None and self.closed != "both":
            raise QueryError(f"closed={self.closed!r} is for between=, which is not given; drop it")
        windows = (
            _windows(self.streams, within)
            if self.between is None
            else _bounds(self.streams, within, self.between, self.closed)
        )
        derived(self, "windows", windows)
        _check_key(self)
        for stream in self.streams:
            stream.check_promises_in(self.names, keys[0], self.counts)
        _check_how(self.how, self.names)
        derived(self, "selected", _selected(self.names, self.select))
        _check_given_out(self)

    def resized(self, stream: int, window: Window) -> Self:
        """The same with another length of one window of time or rows."""
        old = self.windows[stream]
        which = f"the window of stream {self.names[stream]!r}"
        if not isinstance(old, TimeWindow | RowWindow) or old.per_key:
            raise QueryError(
                f"{which} is {old} and cannot be resized; windows of time and of rows can"
            )
        if type(window) is not type(old) or window.per_key:
            raise QueryError(
                f"{which}, a window of {old} cannot become one of {window}; "
                "give another length of the same kind"
            )
        streams = list(self.streams)
        streams[stream] = replace(streams[stream], window=window)
        return replace(self, streams=streams)

    def without_windows(self) -> Self:
        """The same, in which only promises say when a tuple is of no more use."""
        if self.between is not None or self.counts:
            raise QueryError(
                "forget='punctuation' is for windows of time, which it does without; this join has "
                "between=, or counts rows or arrivals"
            )
        streams = [replace(stream, window="unbounded") for stream in self.streams]
        return replace(self, streams=streams, within=None)

    @cached_property
    def access(self) -> Access:
        """By what the tuples of its windows can be found."""
        return access_paths(self.keys, self.residuals)

    @property
    def join_type(self) -> JoinType:
        """What comes out of it."""
        return JOIN_TYPES[self.how]

    @property
    def is_semi(self) -> bool:
        """Whether tuples of the left come out with their first match, and are then done."""
        return self.join_type.left_only and self.join_type.matches

    @cached_property
    def preserved(self) -> tuple[int, ...]:
        """The streams whose tuples come out when they match nothing."""
        return self.join_type.preserved

    @cached_property
    def given_out(self) -> tuple[int, ...]:
        """The streams whose columns come out."""
        return (0,) if self.join_type.left_only else tuple(range(len(self.streams)))

    @cached_property
    def marked(self) -> tuple[int, ...]:
        """The streams of which it must be known which tuples have matched."""
        return (0,) if self.join_type.left_only else self.preserved

    @cached_property
    def counts(self) -> bool:
        """Whether rows or arrivals are counted, so that tuples must wait for their turn."""
        return any(window.rows or window.arrivals for window in self.windows)

    @cached_property
    def counts_arrivals(self) -> bool:
        """Whether distance is in arrivals of all streams, not in time."""
        return any(window.arrivals for window in self.windows)

    @cached_property
    def counts_by_key(self) -> bool:
        """Whether a window is of N rows per key."""
        return any(window.per_key for window in self.windows)

    @cached_property
    def promises(self) -> bool:
        """Whether a stream says what it will not bring any more."""
        return any(stream.promised for stream in self.streams)

    def filters_of(self, stream: int) -> list[Predicate]:
        """The predicates that a stream's tuples must hold before they enter its window."""
        return [
            each for each in self.filters if all(column.stream == stream for column in each.columns)
        ]

    def keeps_keyless(self, stream: int) -> bool:
        """Whether tuples without a key are rows of a stream's window."""
        window = self.windows[stream]
        return window.rows > 0 and not window.per_key

    def position(self, name: str) -> int:
        """Which stream is called `name`."""
        if name not in self.names:
            raise QueryError(f"no stream is called {name!r}; the streams are {_list(self.names)}")
        return self.names.index(name)

    def describe(self) -> dict[str, Any]:
        """All that decides the answer, in plain values: equal queries, equal descriptions."""
        return {
            "streams": [
                {
                    "name": stream.name,
                    "time": stream.time_column,
                    "window": str(window),
                    "lateness_us": stream.lateness_us,
                    "key": list(key),
                    **stream.promised,
                }
                for stream, window, key in zip(self.streams, self.windows, self.keys, strict=True)
            ],
            "where": _description(self.where),
            "how": self.how,
            "select": None if self.selected is None else [list(row) for row in self.selected],
        }


def _description(where: Where | None) -> str | list[str] | None:
    if where is None or isinstance(where, str):
        return where
    return [str(part) for part in ([where] if isinstance(where, Udf) else where)]


def _check_key(query: Query) -> None:
    for name, window in zip(query.names, query.windows, strict=True):
        if window.per_key and not query.keys[0]:
            raise QueryError(
                f"stream {name!r} has a window of {window}, and where= makes no columns of all "
                "streams equal, so there is no key; count rows without 'per key', or give on="
            )


def _check_how(how: Any, names: Sequence[str]) -> None:
    if not isinstance(how, str) or how not in JOIN_TYPES:
        raise QueryError(f"how must be one of {_list(list(JOIN_TYPES))}, got {how!r}")
    if how != "inner" and len(names) != 2:
        raise QueryError(
            f"how={how!r} is for joins of two streams, got {len(names)}; join two of them "
            "first, or use how='inner'"
        )


def _check_given_out(query: Query) -> None:
    names = [query.names[stream] for stream in query.given_out]
    others = [f"{name}.{column}" for _, name, column in query.selected or () if name not in names]
    if others:
        raise QueryError(
            f"how={query.how!r} gives out columns of {names[0]!r} only, and select has "
            f"{_list(others)}; leave them out, or use how='left'"
        )


def _list(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _streams(streams: Sequence[Stream]) -> tuple[Stream, ...]:
    if not isinstance(streams, Sequence) or not all(
        isinstance(stream, Stream) for stream in streams
    ):
        raise QueryError(f"streams must be a list of Stream, got {streams!r}; wrap each one")
    if not 2 <= len(streams) <= MAX_STREAMS:
        raise QueryError(
            f"a join takes 2 to {MAX_STREAMS} streams, got {len(streams)}; "
            "to join a stream with itself, give it twice under two names"
        )
    names = [stream.name for stream in streams]
    for name in names:
        if names.count(name) > 1:
            raise QueryError(f"two streams are called {name!r}; give each its own name")
    return tuple(streams)


def _columns(columns: Any, what: str) -> tuple[str, ...]:
    names: tuple[str, ...]
    names = (columns,) if isinstance(columns, str) else ()
    if isinstance(columns, Sequence) and not names:
        names = tuple(columns)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise QueryError(f"{what} must name one column or several, got {columns!r}")
    if len(set(names)) < len(names):
        raise QueryError(f"{what} names a column twice, got {_list(names)}; name each once")
    return names


def _keys(names: Sequence[str], on: Any) -> tuple[tuple[str, ...], ...]:
    if isinstance(on, Mapping):
        if set(on) != set(names):
            raise QueryError(
                f"on must give the key of each stream once, got {_list(list(on))}; "
                f"the streams are {_list(names)}"
            )
        keys = tuple(_columns(on[name], f"the key of stream {name!r}") for name in names)
    else:
        keys = (_columns(on, "on"),) * len(names)
    if len({len(key) for key in keys}) > 1:
        counts = ", ".join(f"{name!r} {len(key)}" for name, key in zip(names, keys, strict=True))
        raise QueryError(f"all keys must have equally many columns, got {counts}")
    return keys


def _windows(streams: Sequence[Stream], within: Window | None) -> tuple[Window, ...]:
    windows = []
    for stream in streams:
        window = stream.window if stream.window is not None else within
        if window is None:
            raise QueryError(
                f"stream {stream.name!r} has no window; give it window=, or give the query within="
            )
        windows.append(parse_window(window, f"the window of stream {stream.name!r}"))
    _check_together([stream.name for stream in streams], windows)
    return tuple(windows)


_KINDS_FOR_ALL: Final = (ArrivalWindow, TumblingWindow)


def _check_together(names: Sequence[str], windows: Sequence[Window]) -> None:
    for kind in _KINDS_FOR_ALL:
        some = [isinstance(window, kind) for window in windows]
        if any(some) and len(set(windows)) > 1:
            got = ", ".join(
                f"{name!r} {str(window)!r}" for name, window in zip(names, windows, strict=True)
            )
            raise QueryError(
                f"a window of slots or of arrivals is one for all streams, got {got}; "
                "give it as within="
            )


def _bounds(
    streams: Sequence[Stream], within: Window | None, between: Any, closed: str
) -> tuple[Window, ...]:
    """The windows that stand for bounds on a difference: `-second <= difference <= first`."""
    owners = [stream.name for stream in streams if stream.window is not None]
    if len(streams) != 2 or within is not None or owners:
        raise QueryError(
            "between= is for two streams without windows of their own, got "
            f"{len(streams)} streams, within={within and str(within)!r}, windows of {owners}; "
            "drop one or the other"
        )
    if closed not in _CLOSED:
        raise QueryError(f"closed must be one of {list(_CLOSED)}, got {closed!r}")
    if not isinstance(between, Sequence) or isinstance(between, str) or len(between) != 2:
        raise QueryError(
            f"between needs two lengths of time, got {between!r}; "
            "write for example ('-5 seconds', '10 seconds')"
        )
    least, greatest = (signed_us(each, "between") for each in between)
    at_least, at_most = _CLOSED[closed]
    least, greatest = least + at_least, greatest - at_most
    if least > greatest:
        raise QueryError(
            f"between={tuple(between)!r}, closed={closed!r} leaves nothing; "
            "give the smaller difference first"
        )
    return (BoundWindow(greatest), BoundWindow(-least))


# How many microseconds an open end is further in: times are whole ones.
_CLOSED: Final = {"both": (0, 0), "left": (0, 1), "right": (1, 0), "neither": (1, 1)}


def _selected(names: Sequence[str], select: Any) -> tuple[tuple[str, str, str], ...] | None:
    if select is None:
        return None
    if isinstance(select, str) or not isinstance(select, Mapping | Sequence):
        raise QueryError(
            f"select must be a list of 'stream.column', or a mapping to them, got {select!r}"
        )
    pairs = select.items() if isinstance(select, Mapping) else [(None, text) for text in select]
    selected = []
    for new_name, text in pairs:
        if not isinstance(text, str):
            raise QueryError(f"select must name columns as 'stream.column', got {text!r}")
        found = split_name(text, names)
        if found is None:
            raise QueryError(
                f"select must name columns as 'stream.column', got {text!r}; "
                f"the streams are {_list(names)}"
            )
        stream, column = found
        selected.append((new_name or f"{stream}_{column}", stream, column))
    return tuple(selected)
