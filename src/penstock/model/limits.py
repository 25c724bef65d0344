"""Limits: how much a join may hold, what it drops when that is too little, and what it counts.

From Das, Gehrke and Riedewald, "Semantic Approximation of Data Stream Joins": under a memory
budget the tuples that are worth least go first. What a tuple is worth is said by a policy:

    random          nothing: any tuple goes
    oldest          the time it came: the oldest goes
    prob            how often its key comes in the other streams                 (PROB)
    life            the same, times the time that is left to it in its window    (LIFE)
    expected_life   the same, times the time that tuples like it are kept
    age             how much tuples of its age have been found to match
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from numbers import Real
from typing import Any, Final, NamedTuple

from penstock.errors import PlanError

__all__ = [
    "BY_WORTH",
    "DROPS",
    "LEAST_STATISTICS",
    "POLICIES",
    "Limits",
    "Memory",
    "Policy",
    "parse_memory",
]


class Policy(NamedTuple):
    """What a policy needs, and what it says of a tuple that it dropped.

    reason: why that one; `{worth}` is what the tuple was worth, in words. by_worth: whether it goes
    by how often partners come. needs_end: whether windows must end. How it finds its victim is in
    kernels/budget/victims.py.
    """

    reason: str
    by_worth: bool = False
    needs_end: bool = False


_LEAST_OFTEN: Final = "its partners come least often"
POLICIES: Final[dict[str, Policy]] = {
    "random": Policy("it was drawn at random"),
    "oldest": Policy("it was the oldest"),
    "prob": Policy(f"{_LEAST_OFTEN}, {{worth}}", by_worth=True),
    "life": Policy(
        f"{_LEAST_OFTEN} in the time that was left to it, {{worth}}", by_worth=True, needs_end=True
    ),
    "expected_life": Policy(
        f"{_LEAST_OFTEN} in the time that it would be kept, {{worth}}",
        by_worth=True,
        needs_end=True,
    ),
    "age": Policy("tuples of its age match least", needs_end=True),
}
BY_WORTH: Final = tuple(name for name, policy in POLICIES.items() if policy.by_worth)
_POOLS: Final = ("shared", "fixed", "allocated")
_LOSSES: Final = ("exact", "sampled", "off")
DROPS: Final = ("probe", "tuple")
_ROUNDING: Final = 1e-12  # parts of floors may exceed that of the rate by their last bits
_UNITS: Final = {
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}  # fmt: skip
_SIZES: Final = {unit.upper(): size for unit, size in _UNITS.items()}
_TEXT: Final = re.compile(r"(\d[\d_,]*(?:\.\d+)?)\s*([A-Za-z]+)")
_MOST: Final = 1 << 62  # what counts beyond is no limit, and fits no counter
_ROWS: Final = ("row", "rows", "tuple", "tuples")
LEAST_STATISTICS: Final = 1 << 12
_MOST_STATISTICS: Final = 1 << 30


@dataclass(frozen=True)
class Memory:
    """A limit in rows or in bytes; the other is None. Both are None without a limit."""

    rows: int | None = None
    bytes: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.rows is not None or self.bytes is not None

    def __str__(self) -> str:
        if not self.is_limited:
            return "no limit"
        return f"{self.bytes} B" if self.rows is None else f"{self.rows} rows"


def parse_memory(value: Any, what: str) -> Memory:
    """From '100000 rows' or '512 MiB'."""
    if isinstance(value, Memory):
        return value
    match = _TEXT.fullmatch(value.strip()) if isinstance(value, str) else None
    advice = f"{what} must be a number of rows or of bytes, such as '100000 rows' or '512 MiB'"
    if match is None:
        raise PlanError(f"{advice}, got {value!r}")
    digits, unit = match.groups()
    digits = digits.replace("_", "").replace(",", "")
    if float(digits) * _SIZES.get(unit.upper(), 1) > _MOST:
        raise PlanError(f"{advice}, got {value!r}, more than can be counted")
    if unit.lower() in _ROWS and "." not in digits:
        if int(digits) == 0:
            raise PlanError(
                f"{what}={value!r} holds no tuple, and gives no result; make it 1 row or more"
            )
        return Memory(rows=int(digits))
    if unit.upper() not in _SIZES:
        raise PlanError(f"{advice}, got {value!r}; the units are rows, {', '.join(_UNITS)}")
    return Memory(bytes=round(float(digits) * _SIZES[unit.upper()]))


@dataclass(frozen=True)
class Limits:
    """What a join may hold and do, and how it keeps within it.

    memory: '100000 rows', tuples in all windows together, or '512 MiB', of everything the join
        holds: tuples, indexes, holes, statistics and ghosts. None is no limit.
    shed: what goes when it is too much: 'random', 'oldest', 'prob', 'life', 'expected_life' or
        'age'.
    pool: 'shared', one memory for all streams; 'fixed', an equal part for each; {'a': 3, 'b': 1},
        parts in this proportion; or 'allocated', parts by which the most results are to be expected
        when tuples go at random.
    loss: how lost results are counted: 'exact', until there are too many ghosts; 'sampled'; or
        'off'.
    ghosts: how many dropped tuples are remembered, without their payload, to count what is lost
        without them; beyond it the loss is sampled. The default is four for each row of `memory`
        and 16,384 at least; in bytes, as many as fit.
    seed: of what is drawn at random.
    value: what a result is worth, an expression over columns of one stream, such as 'a.price';
        worths of 'prob', 'life' and 'expected_life' are multiplied by it.
    frequencies: by stream, how often each key comes, as a mapping from keys to numbers; a stream
        that is not named is learned from.
    statistics: the memory to learn frequencies in, for each thing that a stream's tuples are found
        by.
    service_rate: how many tuples the join deals with in a second of event time, of all streams
        together. When more come, some are drawn that are not dealt with, divided among the streams
        so that the most results are to be expected.
    drop: what that means: 'probe', such a tuple looks for no partners, but enters its window and
        is found by others; or 'tuple', it is dropped.
    floors: by stream, how many of its tuples are dealt with in a second at least.
    """

    memory: Any = None
    shed: str = "prob"
    pool: Any = "shared"
    loss: str = "exact"
    ghosts: int | None = None
    seed: int = 0
    value: str | None = None
    frequencies: Mapping[str, Mapping[Any, float]] = field(default_factory=dict)
    statistics: Any = "256 KiB"
    service_rate: float | None = None
    drop: str = "probe"
    floors: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        derived = object.__setattr__  # the one way to fill a frozen dataclass
        memory = Memory() if self.memory is None else parse_memory(self.memory, "memory")
        derived(self, "memory", memory)
        statistics = parse_memory(self.statistics, "statistics")
        if not LEAST_STATISTICS <= (statistics.bytes or 0) <= _MOST_STATISTICS:
            raise PlanError(
                f"statistics must be {LEAST_STATISTICS:,} bytes to 1 GiB, got {self.statistics!r}"
            )
        derived(self, "statistics", statistics)
        for what, chosen, choices in (
            ("shed", self.shed, tuple(POLICIES)),
            ("loss", self.loss, _LOSSES),
            ("drop", self.drop, DROPS),
        ):
            if chosen not in choices:
                raise PlanError(f"{what} must be one of {choices}, got {chosen!r}")
        for what, number in (("ghosts", self.ghosts), ("seed", self.seed)):
            if number is None and what == "ghosts":
                continue
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise PlanError(f"{what} must be a whole number, 0 or more, got {number!r}")
        _check_frequencies(self.frequencies)
        self._check_pool()
        self._check_service()
        if self.value is not None and self.shed not in BY_WORTH:
            raise PlanError(
                f"value= is for shed= one of {BY_WORTH}, got {self.shed!r}, which does not heed it"
            )
        if self.ghosts == 0:
            raise PlanError(
                "ghosts=0 leaves nothing to count by; write loss='off' to count nothing"
            )

    def _check_pool(self) -> None:
        pool = self.pool
        if isinstance(pool, Mapping):
            if any(not _is_number(each) or not 0 <= each < inf for each in pool.values()) or not (
                0 < sum(pool.values()) < inf
            ):
                raise PlanError(
                    f"pool must give parts that are numbers, 0 or more and not all 0, got {pool!r}"
                )
        elif not isinstance(pool, str) or pool not in _POOLS:
            raise PlanError(f"pool must be one of {_POOLS}, or parts by stream, got {pool!r}")
        if pool == "allocated" and self.shed != "random":
            raise PlanError(
                f"pool='allocated' is for shed='random', got shed={self.shed!r}, which goes by "
                "what tuples are worth; use pool='shared' with it"
            )
        if pool == "allocated" and self.memory.rows is None:
            raise PlanError(
                f"pool='allocated' is for a limit in rows, got memory={str(self.memory)!r}; "
                "write memory='100000 rows'"
            )

    def parts(self, names: Sequence[str]) -> list[float] | None:
        """In what proportion the memory is divided among streams; None if it is not."""
        if isinstance(self.pool, Mapping):
            return [float(self.pool.get(name, 0.0)) for name in names]
        return None if self.pool == "shared" else [1.0] * len(names)

    def _check_service(self) -> None:
        rate = self.service_rate
        for what, given in (("drop", self.drop != "probe"), ("floors", bool(self.floors))):
            if given and rate is None:
                raise PlanError(f"{what}= is for service_rate=, which was not given")
        if rate is None and not self.memory.is_limited:
            raise PlanError(
                "limits need memory= or service_rate=, got neither; write Limits(memory='1 GiB')"
            )
        if rate is None:
            return
        if not _is_number(rate) or not 0 < rate < inf:
            raise PlanError(
                f"service_rate must be a number of tuples a second, above 0, got {rate!r}"
            )
        if not isinstance(self.floors, Mapping) or not all(
            _is_number(each) and 0 <= each < inf for each in self.floors.values()
        ):
            raise PlanError(
                "floors must be a mapping from streams to tuples a second, 0 or more, "
                f"got {self.floors!r}"
            )
        if sum(self.floors.values()) > rate * (1 + _ROUNDING):
            raise PlanError(
                f"floors add up to {sum(self.floors.values()):g} tuples a second, more than "
                f"service_rate={rate:g}; lower them, or raise it"
            )

    def share(self, place: int, of: int) -> Limits:
        """The limits for one of `of` equal parts of the join."""
        rows, size = self.memory.rows, self.memory.bytes
        return replace(
            self,
            memory=Memory(
                None if rows is None else _part(rows, place, of),
                None if size is None else _part(size, place, of),
            ),
            ghosts=None if self.ghosts is None else max(_part(self.ghosts, place, of), 1),
            service_rate=None if self.service_rate is None else self.service_rate / of,
            floors={name: floor / of for name, floor in self.floors.items()},
            statistics=Memory(bytes=max(self.statistics.bytes // of, LEAST_STATISTICS)),
            # Two numbers are drawn from a seed, it and the next.
            seed=2 * (self.seed * of + place),
        )


def _is_number(value: Any) -> bool:
    """Whether it is one, and no boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _part(whole: int, place: int, of: int) -> int:
    """An equal part; the first have one more, so that all add up to the whole."""
    return whole // of + (place < whole % of)


def _check_frequencies(frequencies: Any) -> None:
    advice = "frequencies must be a mapping from streams to mappings from keys to numbers"
    if not isinstance(frequencies, Mapping):
        raise PlanError(f"{advice}, got {frequencies!r}")
    for name, given in frequencies.items():
        if not isinstance(given, Mapping):
            raise PlanError(f"{advice}, got {given!r} for stream {name!r}")
        for key, weight in given.items():
            if not _is_number(weight) or not 0 <= weight < inf:
                raise PlanError(
                    f"frequencies of stream {name!r} must be numbers, 0 or more, "
                    f"got {weight!r} for key {key!r}"
                )
