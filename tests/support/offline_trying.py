"""The offline optimum by trying everything: the definition that penstock's is compared with.

After every instant the memory holds a set of tuples, chosen from those it held before and those
that have just come. A result comes at the time of the later of its two tuples: when both are of
that instant, or the earlier is held till then. Which results there are is the oracle's affair;
of windows that change, and of windows of single tuples, which it does not know, it is said here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from math import inf
from typing import Any, NamedTuple

from support.oracle import Combination, Row

Tuple = tuple[str, int]  # its stream, and its id
Steps = Sequence[tuple[int, int]]  # from each of these times on it is so much
Number = int | float


class Pair(NamedTuple):
    """A result: its tuples, that with the lower time first, and what it is worth."""

    earlier: Tuple
    later: Tuple
    value: Number


class Pool(NamedTuple):
    """How many tuples of some streams may be held."""

    streams: Collection[str]
    rows: int

    def takes(self, held: Collection[Tuple]) -> bool:
        return sum(stream in self.streams for stream, _ in held) <= self.rows


@dataclass(frozen=True)
class Offline:
    """times: of all tuples. memory: what the first step says holds before it, too. pool: 'shared',
    'fixed', or parts by stream."""

    names: Sequence[str]
    times: Mapping[Tuple, int]
    pairs: Sequence[Pair]
    memory: Steps
    pool: str | Mapping[str, Number] = "shared"

    @property
    def total(self) -> Number:
        return sum(pair.value for pair in self.pairs)

    def pools(self, moment: int) -> list[Pool]:
        """What may be held at a moment."""
        rows = value_at(self.memory, moment, self.memory[0][1])
        if self.pool == "shared":
            return [Pool(self.names, rows)]
        parts = dict.fromkeys(self.names, 1) if self.pool == "fixed" else self.pool
        assert isinstance(parts, Mapping)
        shares = divided(rows, [parts[name] for name in self.names])
        return [Pool([name], share) for name, share in zip(self.names, shares, strict=True)]

    def pools_from(self, start: float, end: float) -> list[Pool]:
        """What may be held from one time until just before another: memory that is gone for a
        while between two instants is gone for tuples held from the one to the other."""
        moments = [int(start), *(time for time, _ in self.memory if start < time < end)]
        return [pool for moment in moments for pool in self.pools(moment)]


def value_at(steps: Steps, time: int, before: int) -> int:
    """What the last step up to a time says; what is so before the first."""
    return ([before] + [value for start, value in steps if start <= time])[-1]


def divided(rows: int, parts: Sequence[Number]) -> list[int]:
    """In proportion; what is left over goes to the first of those that miss most."""
    exact = [Fraction(rows) * Fraction(part) / sum(map(Fraction, parts)) for part in parts]
    shares = [int(each) for each in exact]
    for _ in range(rows - sum(shares)):
        missing = [wanted - share for wanted, share in zip(exact, shares, strict=True)]
        shares[missing.index(max(missing))] += 1
    return shares


def most(offline: Offline) -> Number:
    """The most that any choice of contents brings: for every content that the memory can have
    after an instant, the most that can have come by then."""
    instants: list[float] = sorted(set(offline.times.values()))
    best: dict[frozenset[Tuple], Number] = {frozenset(): 0}
    for now, next_instant in pairwise([*instants, inf]):
        arriving = {each for each, ts in offline.times.items() if ts == now}
        coming = [pair for pair in offline.pairs if offline.times[pair.later] == now]
        useful = {pair.earlier for pair in offline.pairs if offline.times[pair.later] > now}
        pools = offline.pools_from(now, next_instant)
        following: dict[frozenset[Tuple], Number] = {}
        for held, earned in best.items():
            there = held | arriving
            reached = earned + sum(
                pair.value for pair in coming if {pair.earlier, pair.later} <= there
            )
            for content in contents(sorted(there & useful), pools):
                following[content] = max(reached, following.get(content, 0))
        best = following
    return max(best.values())


def contents(tuples: Sequence[Tuple], pools: Sequence[Pool]) -> Iterator[frozenset[Tuple]]:
    """All parts of a set that may be held."""
    largest = min(len(tuples), sum(pool.rows for pool in pools))
    for size in range(largest + 1):
        for chosen in combinations(tuples, size):
            if all(pool.takes(chosen) for pool in pools):
                yield frozenset(chosen)


def replayed(offline: Offline, kept: Mapping[Tuple, int | None]) -> list[Pair]:
    """What comes when every tuple is held until the time given, or not at all; it must fit in the
    memory at every moment. At its last time a tuple still meets what comes, but takes no room."""
    times = offline.times
    ends = {each: times[each] if kept[each] is None else kept[each] for each in times}
    for moment in {*times.values(), *(time for time, _ in offline.memory)}:
        held = [each for each in times if times[each] <= moment < ends[each]]
        for pool in offline.pools(moment):
            assert pool.takes(held), f"at {moment} {held} are held, but there is room for {pool}"
    return [pair for pair in offline.pairs if times[pair.later] <= ends[pair.earlier]]


def in_its_window(ts: int, now: int, window_us: int, changes: Steps) -> bool:
    """Whether a tuple is still in a window of time that changes: it must have been all the time,
    for what a shorter window has ended does not come back."""
    return all(moment <= ts + value_at(changes, moment, window_us) for moment in range(ts, now + 1))


def pair_of(names: Sequence[str], combination: Combination, value: Number) -> Pair:
    """A result of the oracle's, its rows known by their ids."""
    rows = dict(zip(names, combination[0], strict=True))
    earlier, later = sorted(names, key=lambda name: the(rows[name])["ts"])
    return Pair((earlier, the(rows[earlier])["id"]), (later, the(rows[later])["id"]), value)


def the(row: Row | None) -> Mapping[str, Any]:
    assert row is not None  # inner joins only
    return row
