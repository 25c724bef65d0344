"""Punctuations: what a stream promises not to bring any more.

A punctuation is (stream, pattern, at): after the batch that carries it, the stream brings no tuple
of the pattern with `ts >= at`. A pattern says for each column of the key which values are meant; a
column that it leaves out means any value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

from penstock.errors import InputError, QueryError

__all__ = ["DROP", "NOTHING", "Nothing", "OneOf", "Pattern", "Promising", "Range"]


class Promising(NamedTuple):
    """What a running join does with promises. forgets_early: whether tuples go by them. refuses:
    whether a batch with a tuple that breaks one is refused, or the tuple dropped."""

    forgets_early: bool = True
    refuses: bool = False

    @classmethod
    def of(cls, forget: str, promises: str) -> Promising:
        """As a user asks for it."""
        if forget not in ("window", "punctuation", "both"):
            raise QueryError(f"forget must be 'window', 'punctuation' or 'both', got {forget!r}")
        if promises not in ("drop", "error"):
            raise QueryError(f"promises must be 'drop' or 'error', got {promises!r}")
        return cls(forget != "window", promises == "error")


DROP: Final = Promising()


@dataclass(frozen=True)
class Range:
    """All values from `low` to `high`, both included; an end that is None is open."""

    low: Any = None
    high: Any = None

    def __post_init__(self) -> None:
        if self.low is None or self.high is None:
            return
        try:
            is_empty = self.high < self.low
        except TypeError as error:
            raise InputError(
                f"a range has ends of one type, got {self.low!r} and {self.high!r}"
            ) from error
        if is_empty:
            raise InputError(
                f"a range goes from its low end to its high one, got {self.low!r} to "
                f"{self.high!r}; turn them round, or give ps.NOTHING"
            )


@dataclass(frozen=True)
class OneOf:
    """These values."""

    values: Iterable[Any]

    def __post_init__(self) -> None:
        if isinstance(self.values, str | bytes) or not isinstance(self.values, Iterable):
            raise InputError(f"OneOf takes a list of values, got {self.values!r}; wrap it in []")
        object.__setattr__(self, "values", tuple(self.values))


@dataclass(frozen=True)
class Nothing:
    """No value: such a punctuation promises nothing."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = Nothing()


@dataclass(frozen=True)
class Pattern:
    """Which keys of a stream are meant. columns: of the key, in its order."""

    columns: Sequence[str]
    values: Mapping[str, Any]

    @property
    def is_empty(self) -> bool:
        """Whether no key can be meant."""
        return any(
            isinstance(each, Nothing) or (isinstance(each, OneOf) and not each.values)
            for each in self.values.values()
        )

    @property
    def is_of_keys(self) -> bool:
        """Whether it names whole keys, one by one."""
        return all(
            name in self.values and not isinstance(self.values[name], Range)
            for name in self.columns
        )

    def keys(self) -> list[dict[str, Any]]:
        """The keys that it names, if it does."""
        choices = [
            self.values[name].values
            if isinstance(self.values[name], OneOf)
            else [self.values[name]]
            for name in self.columns
        ]
        return [dict(zip(self.columns, key, strict=True)) for key in product(*choices)]
