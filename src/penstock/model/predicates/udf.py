"""A predicate that is a function of the user's, over whole columns at once.

What a function does cannot be compared, kept or described: in a description it is its name and
its columns. That it says the same after a restart is for the user to see to.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import QueryError
from penstock.model.predicates.column_name import split_name
from penstock.model.predicates.predicate import Call, Column

__all__ = ["Udf", "udf"]


@dataclass(frozen=True)
class Udf:
    """What `udf` makes. columns: as the user names them."""

    function: Callable[..., Any]
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """The qualified name of the function; that of its class, if it has none."""
        function: Any = self.function
        while isinstance(function, functools.partial):
            function = function.func
        for attribute in ("__qualname__", "__name__"):
            name = getattr(function, attribute, None)
            if isinstance(name, str):
                return name
        return type(function).__qualname__

    def __str__(self) -> str:
        return f"udf {self.name}({', '.join(self.columns)})"

    def predicate(self, streams: Sequence[str]) -> Call:
        """The predicate it is over streams of these names."""
        arguments = []
        for text in self.columns:
            found = split_name(text, streams)
            if found is None:
                raise QueryError(
                    f"udf {self.name!r} must name columns as 'stream.column', got {text!r}; "
                    f"the streams are {list(streams)}"
                )
            arguments.append(Column(streams.index(found[0]), found[1]))
        return Call(self.name, self.function, tuple(arguments))


def udf(function: Callable[..., Any], columns: Sequence[str]) -> Udf:
    """A predicate for `where=` that a function decides, many rows at a time.

    >>> near = udf(lambda x, y: pc.less(pc.abs(pc.subtract(x, y)), 5), ["a.x", "b.y"])
    ... # doctest: +SKIP

    function: gets a `pyarrow.Array` for each column, all of one length, in the types of the
        streams, and returns a boolean `pyarrow.Array` or numpy array of that length: whether
        it holds for each row; where it is null, it does not. How rows are cut into calls is
        not defined, so it must judge each by its own values, and always in the same way.
    columns: such as `["a.x", "b.y"]`. If all are of one stream, the function filters its
        tuples before they enter the window.

    Snapshots and checkpoints know a function by its qualified name and its columns only: if
    what it does changes under the same name, results of before and after are mixed.
    """
    if not callable(function):
        raise QueryError(f"udf needs a function, got {function!r}; pass one that can be called")
    named = () if isinstance(columns, str) or not isinstance(columns, Sequence) else tuple(columns)
    made = Udf(function, named)
    if not named or not all(isinstance(text, str) for text in named):
        raise QueryError(
            f"udf {made.name!r} needs the columns its function takes, got {columns!r}; "
            "write for example ['a.x', 'b.y']"
        )
    return made
