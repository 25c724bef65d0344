"""The offline optimum is that of trying everything."""

from __future__ import annotations

import random
from itertools import chain, combinations

import pytest

from optimum import Arrivals, optimum

# A tuple is (stream, place in it); what is in memory is a set of them.
Content = frozenset[tuple[int, int]]


def by_trying(
    left: Arrivals,
    right: Arrivals,
    windows: tuple[int, int],
    memory: int | tuple[int, int],
    counted_from: int = 0,
) -> int:
    """The most results over all contents the memory may have after each instant."""
    streams = (left, right)
    best: dict[Content, int] = {frozenset(): 0}
    for now in sorted({ts for ts, _ in (*left, *right)}):
        arriving = [
            (stream, place)
            for stream in range(2)
            for place, (ts, _) in enumerate(streams[stream])
            if ts == now
        ]
        following: dict[Content, int] = {}
        for kept, results in best.items():
            earned = results
            if now >= counted_from:
                present = [*kept, *arriving]
                earned += sum(
                    {one, two} <= set(present)
                    and not {one, two} <= kept
                    and streams[0][one[1]][1] == streams[1][two[1]][1]
                    and all(now - streams[s][p][0] <= windows[s] for s, p in (one, two))
                    for one in present
                    for two in present
                    if one[0] == 0 and two[0] == 1
                )
            for content in _contents([*kept, *arriving], memory):
                following[content] = max(following.get(content, 0), earned)
        best = following
    return max(best.values())


def _contents(tuples: list[tuple[int, int]], memory: int | tuple[int, int]) -> list[Content]:
    total = memory if isinstance(memory, int) else sum(memory)
    chosen = chain.from_iterable(combinations(tuples, size) for size in range(total + 1))
    contents = [frozenset(choice) for choice in chosen]
    if isinstance(memory, int):
        return contents
    return [
        content
        for content in contents
        if all(sum(s == stream for s, _ in content) <= memory[stream] for stream in range(2))
    ]


def test_the_example_of_the_paper() -> None:
    left = list(enumerate([1, 1, 1, 3, 2]))
    right = list(enumerate([2, 3, 1, 1, 3]))
    assert optimum(left, right, (2, 2), 100) == 7
    assert optimum(left, right, (2, 2), (1, 1)) == 5
    assert by_trying(left, right, (2, 2), (1, 1)) == 5


@pytest.mark.parametrize("seed", range(60))
def test_small_inputs(seed: int) -> None:
    rng = random.Random(seed)
    in_step = seed % 2 == 0  # as in the paper: one tuple of each stream at every instant
    keys = rng.choice([1, 2, 3])
    streams = []
    for _ in range(2):
        count = 7 if in_step else rng.randint(0, 7)
        times = range(count) if in_step else sorted(rng.randint(0, 7) for _ in range(count))
        streams.append([(ts, rng.randrange(keys)) for ts in times])
    left, right = streams
    windows = (rng.randint(0, 4), rng.randint(0, 4))
    counted_from = rng.choice([0, 0, 3])
    for memory in (0, 1, 2, 3, (1, 1), (2, 1), (0, 2)):
        expected = by_trying(left, right, windows, memory, counted_from) if left or right else 0
        assert optimum(left, right, windows, memory, counted_from) == expected
