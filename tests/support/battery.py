"""Streams of many kinds, to try the ledger on: none of it is tuned to any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps

KEYS = 1000
Keys = Callable[[np.random.Generator, str, int], np.ndarray]


@dataclass(frozen=True)
class Kind:
    """Streams whose keys follow some law, joined in some way. keys: of `rows` tuples of a stream.
    shrink: windows are shorter by this factor, where results would be too many."""

    keys: Keys
    names: str = "ab"
    shrink: int = 1
    predicates: tuple[tuple[str, Any], ...] = (("on", "k"),)

    def query(self, window: int) -> ps.WindowJoin:
        """A window holds about `window` tuples of each stream."""
        streams = [ps.Stream(name, time="ts") for name in self.names]
        within = f"{window // self.shrink} ms"
        return ps.WindowJoin(streams, within=within, **dict(self.predicates))

    @cache  # noqa: B019 -- kinds live as long as the tests
    def tables(self, seed: int, rows: int) -> dict[str, pa.Table]:
        """About one tuple of each stream in a millisecond."""
        rng = np.random.default_rng(seed)
        tables = {}
        for name in self.names:
            keys = self.keys(rng, name, rows)
            ts = np.sort(rng.integers(0, rows * 1000, len(keys)))
            tables[name] = pa.table({"ts": ts, "k": keys})
        return tables


def _zipf(skew: float, keys: int = KEYS) -> Keys:
    chances = np.arange(1, keys + 1) ** -skew
    chances /= chances.sum()
    return lambda rng, name, rows: rng.choice(keys, rows, p=chances)


def _drifting(rng: np.random.Generator, name: str, rows: int) -> np.ndarray:
    """Which keys are the hot ones moves on, by a key for every twenty tuples."""
    return _zipf(1.0)(rng, name, rows) + np.arange(rows) // 20


def _foreign(twice: float) -> Keys:
    """Each of `a` comes once, and in `b` up to 400 tuples later; some come there again."""

    def keys(rng: np.random.Generator, name: str, rows: int) -> np.ndarray:
        if name == "a":
            return np.arange(rows)
        order = np.arange(rows) + rng.random(rows) * 400
        again = np.flatnonzero(rng.random(rows) < twice)
        every = np.concatenate([np.arange(rows), again])
        return every[np.argsort(np.concatenate([order, order[again] + 100]), kind="stable")]

    return keys


KINDS = {
    "foreign keys": Kind(_foreign(0.0)),
    "foreign keys, some twice": Kind(_foreign(0.01)),
    "Zipf 0": Kind(_zipf(0.0)),
    "Zipf 0.5": Kind(_zipf(0.5)),
    "Zipf 1": Kind(_zipf(1.0), shrink=2),
    "Zipf 1.5": Kind(_zipf(1.5), shrink=4),
    "drifting hot keys": Kind(_drifting, shrink=2),
    "three streams": Kind(_zipf(0.5), names="abc", shrink=4),
    "a band": Kind(_zipf(0.5), predicates=(("where", "abs(a.k - b.k) <= 1"),), shrink=2),
}


@dataclass(frozen=True)
class Need:
    """What the join without limits gives, and holds at most."""

    produced: int
    rows: int
    bytes: int


def batches(tables: dict[str, pa.Table], rows: int, pushes: int) -> Iterator[dict[str, pa.Table]]:
    """Equal stretches of time, from tables with about `rows` milliseconds."""
    times = {name: table["ts"].to_numpy() for name, table in tables.items()}
    for step in range(pushes):
        cuts = [rows * 1000 * each // pushes for each in (step, step + 1)]
        spans = {name: np.searchsorted(ts, cuts) for name, ts in times.items()}
        yield {name: tables[name].slice(low, high - low) for name, (low, high) in spans.items()}


def run(
    kind: Kind, seed: int, size: tuple[int, int, int], limits: ps.Limits | None = None
) -> tuple[ps.Metrics, Need]:
    """The last metrics of a run, and its peaks. size: tuples in a window, rows and pushes."""
    window, rows, pushes = size
    join = kind.query(window).start(limits=limits) if limits else kind.query(window).start()
    live = held = 0
    for batch in batches(kind.tables(seed, rows), rows, pushes):
        join.push(batch)
        live, held = max(live, join.metrics.live), max(held, join.metrics.bytes)
    return join.metrics, Need(join.metrics.produced, live, held)


@cache
def need(name: str, seed: int, size: tuple[int, int, int]) -> Need:
    return run(KINDS[name], seed, size)[1]
