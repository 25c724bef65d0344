"""Figures 8 to 12 of Ding and Rundensteiner, "Evaluating Window Joins over Punctuated Streams"
(2004), section 6: what a window join gains from punctuations.

The three algorithms that the paper compares are one engine here, and differ in what lets tuples go:

    PWJoin   windows and punctuations
    WJoin    windows alone
    PJoin    punctuations alone; it has no windows, so its results are not those of the others

Each function runs its algorithms side by side over the same streams: all get the rows of one
sampling interval of event time, then the next. It returns a `Run` for each, by the name it has in
the figure. The streams have the paper's rates and patterns. How long they were it does not say.

What the paper found and what comes out here:

    memory         PWJoin holds fewer tuples, the more so the larger the window. The same here: it
                   can save little more than the 40 % of tuples that match their punctuation.
    time           PWJoin is slightly slower with windows of 5 seconds and clearly faster with 15.
                   Not so here: it takes about 1.2 times as long with both. The hash index has an
                   entry for each key, so a probe meets partners alone, and a smaller window saves
                   it nothing. With `index="scan"`, if a probe looks at the whole window, PWJoin
                   catches up as windows grow; it is faster with windows of 200 seconds.
    punctuations   PWJoin gives out more than PJoin, and some even if only one stream has any, where
                   PJoin gives none. The same here. Those that close no tuple's key save no memory
                   and cost little time; here they cost as much as the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.model.stream import Stream
from penstock.samples import PunctuatedStreams, uniform
from penstock.window_join import WindowJoin

__all__ = [
    "ALGORITHMS", "Run", "irrelevant_punctuations", "memory_and_output", "one_sided_punctuations",
    "punctuations_out",
]  # fmt: skip

# What `WindowJoin.start(forget=)` calls them.
ALGORITHMS: Final[Mapping[str, str]] = {
    "PWJoin": "both", "WJoin": "window", "PJoin": "punctuation",
}  # fmt: skip

_PATTERNS: Final = ("punct-asc-30-40", "punct-random-30-40")


@dataclass(frozen=True)
class Run:
    """One algorithm over both streams, at each sampling step.

    seconds: event time since the start.
    live: tuples in both windows.
    results: how many have come out so far.
    punctuations: how many keys have come out as over so far. The paper's operators give out each
        key once. The engine forgets old ones and may repeat them, which does not count here.
    taken_s: process time of all pushes so far; the paper's output rate is results by this time.
        Compare it between runs of one call only.
    """

    seconds: tuple[float, ...]
    live: tuple[int, ...]
    results: tuple[int, ...]
    punctuations: tuple[int, ...]
    taken_s: tuple[float, ...]


def memory_and_output(
    *,
    windows_s: Sequence[int] = (1, 5, 15),
    segments: int = 300,
    every_s: float = 2.0,
    seed: int = 0,
    index: str = "hash",
    rounds: int = 1,
) -> dict[str, Run]:
    """Figures 8 and 9: PWJoin and WJoin by the length of both windows.

    Runs are called 'PWJoin-5', 'WJoin-15' and so on, after the seconds of their windows. A segment
    takes about a second of event time.

    every_s: seconds of event time between samples, and of each push. Pushes of 400 rows, as with 2
        seconds, take most of their time for themselves: to compare times, give 50 seconds.
    rounds: run everything N times, and take the shortest time of each push. One round is enough
        for the counts; a second leaves out the time to compile.
    """
    streams = PunctuatedStreams(pattern="punct-asc-100-40", segments=segments, seed=seed)
    batches = _batches(streams.tables(), every_s)
    runs = {}
    for window_s in windows_s:
        names, query = ("PWJoin", "WJoin"), _query(window_s)
        for name, run in _side_by_side(query, names, batches, index=index, rounds=rounds).items():
            runs[f"{name}-{window_s}"] = run
    return runs


def irrelevant_punctuations(
    *, window_s: int = 5, segments: int = 1000, every_s: float = 2.0, seed: int = 0, rounds: int = 1
) -> dict[str, Run]:
    """Figure 10: 'PWJoin' and 'WJoin' if every punctuation closes a key that no tuple has.

    The paper does not say which window it took. Such a punctuation comes out at once.
    """
    streams = PunctuatedStreams(pattern=_PATTERNS, segments=segments, seed=seed, irrelevant=1.0)
    batches = _batches(streams.tables(), every_s)
    return _side_by_side(_query(window_s), ("PWJoin", "WJoin"), batches, rounds=rounds)


def punctuations_out(
    *, window_s: int = 1, segments: int = 1000, every_s: float = 1.0, seed: int = 0
) -> dict[str, Run]:
    """Figure 11: 'PWJoin' and 'PJoin' over streams that close their keys in different orders.

    PJoin gives out a key when both streams have closed it, PWJoin as soon as the last tuple of a
    stream that has closed it leaves the window.
    """
    streams = PunctuatedStreams(pattern=_PATTERNS, segments=segments, seed=seed)
    batches = _batches(streams.tables(), every_s)
    return _side_by_side(_query(window_s), ("PWJoin", "PJoin"), batches)


def one_sided_punctuations(
    *, window_s: int = 5, segments: int = 1000, every_s: float = 1.0, seed: int = 0
) -> dict[str, Run]:
    """Figure 12: 'PWJoin' and 'PJoin' if stream A has no punctuations, and its keys are uniform.

    The window is that of stream B, which has them, as the figure's caption says; the text could be
    read otherwise. That of stream A is unbounded. Its tuples come at an even rate, each at a random
    time within its 10 milliseconds.
    """
    streams = PunctuatedStreams(pattern=_PATTERNS[0], segments=segments, seed=seed)
    _, punctuated = streams.tables()
    plain = uniform(keys=streams.keys, rows=len(punctuated), rate=100.0, seed=seed).table("left")
    batches = _batches((plain, punctuated), every_s)
    return _side_by_side(_query(window_s, one_sided=True), ("PWJoin", "PJoin"), batches)


def _query(window_s: int, one_sided: bool = False) -> WindowJoin:
    window = f"{window_s} s"
    plain = Stream("a", time="ts", window="unbounded")
    first, second = (Stream(n, time="ts", window=window, punctuation="is_end") for n in "ab")
    return WindowJoin([plain if one_sided else first, second], on="k")


def _batches(streams: Sequence[pa.Table], every_s: float) -> dict[float, dict[str, pa.Table]]:
    """The rows of each sampling interval, by the seconds at which it ends.

    Only whole intervals of both streams: after the end of one, windows would not move on.
    """
    every_us = round(every_s * 1_000_000)
    times_us = [table["ts"].to_numpy().astype(np.int64) for table in streams]
    start_us = PunctuatedStreams.start_us
    steps = (min(int(each[-1]) for each in times_us) - start_us) // every_us
    ends_us = start_us + np.arange(steps + 1) * every_us
    cuts = [np.searchsorted(each, ends_us).tolist() for each in times_us]
    return {
        (step + 1) * every_s: {
            name: table.slice(cut[step], cut[step + 1] - cut[step])
            for name, table, cut in zip("ab", streams, cuts, strict=True)
        }
        for step in range(steps)
    }


def _side_by_side(
    query: WindowJoin,
    algorithms: Sequence[str],
    batches: Mapping[float, Mapping[str, pa.Table]],
    *,
    index: str = "hash",
    rounds: int = 1,
) -> dict[str, Run]:
    """Each batch goes to all algorithms in turn, so that what else the machine does slows all."""
    fastest = {name: np.full(len(batches), np.inf) for name in algorithms}
    for _ in range(rounds):
        joins = {name: query.start(forget=ALGORITHMS[name], indexes=index) for name in algorithms}
        counts: dict[str, list[tuple[int, int, int]]] = {name: [] for name in algorithms}
        over: dict[str, set[int]] = {name: set() for name in algorithms}
        for step, batch in enumerate(batches.values()):
            for name, join in joins.items():
                began = process_time()
                join.push(batch)
                fastest[name][step] = min(fastest[name][step], process_time() - began)
                over[name].update(join.punctuations()["k"].to_pylist())
                counts[name].append((join.metrics.live, join.metrics.produced, len(over[name])))
    runs = {}
    for name in algorithms:
        live, results, punctuations = zip(*counts[name], strict=True)
        taken_s = tuple(np.cumsum(fastest[name]).tolist())
        runs[name] = Run(tuple(batches), live, results, punctuations, taken_s)
    return runs
