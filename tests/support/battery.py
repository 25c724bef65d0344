"""Streams of many kinds, to try the ledger on: none of it is tuned to any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import penstock as ps

KEYS = 1000
WIDE = 256
Keys = Callable[[np.random.Generator, str, int], np.ndarray]


class Size(NamedTuple):
    """Tuples in a window of a kind that does not shrink it, rows of each stream, pushes, and bytes
    beside the key of each tuple of the first stream."""

    window: int
    rows: int
    pushes: int
    width: int = 0


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

    def in_bytes(self, window: int, rows: int, pushes: int) -> Size:
        """A size such that a tenth of the memory needed is much more than a join takes without a
        tuple: where windows are shorter, tuples of the first stream are wider."""
        return Size(window, rows // self.shrink, pushes, WIDE * self.shrink)

    @lru_cache(8)  # noqa: B019 -- kinds live as long as the tests
    def tables(self, seed: int, rows: int, width: int = 0) -> dict[str, pa.Table]:
        """About one tuple of each stream in a millisecond. width: bytes that each of the first
        stream has beside its key."""
        rng = np.random.default_rng(seed)
        tables = {}
        for name in self.names:
            keys = self.keys(rng, name, rows)
            ts = np.sort(rng.integers(0, rows * 1000, len(keys)))
            tables[name] = pa.table({"ts": ts, "k": keys})
            if width and name == self.names[0]:
                wide = pa.array([bytes(width)] * len(keys), pa.binary(width))
                tables[name] = tables[name].append_column("wide", wide)
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
    "three streams": Kind(_zipf(0.5), names="abc", shrink=2),
    "a band": Kind(_zipf(0.5), predicates=(("where", "abs(a.k - b.k) <= 1"),), shrink=2),
}


@dataclass(frozen=True)
class Need:
    """What a join gives, and holds at most; and on average once tuples had to go."""

    produced: int
    rows: int
    bytes: int
    mean_rows: float = 0.0


def batches(tables: dict[str, pa.Table], rows: int, pushes: int) -> Iterator[dict[str, pa.Table]]:
    """Equal stretches of time, from tables with about `rows` milliseconds."""
    times = {name: table["ts"].to_numpy() for name, table in tables.items()}
    for step in range(pushes):
        cuts = [rows * 1000 * each // pushes for each in (step, step + 1)]
        spans = {name: np.searchsorted(ts, cuts) for name, ts in times.items()}
        yield {name: tables[name].slice(low, high - low) for name, (low, high) in spans.items()}


def run(
    kind: Kind, seed: int, size: Size, limits: ps.Limits | None = None
) -> tuple[ps.Metrics, Need]:
    """The last metrics of a run, and its peaks."""
    query = kind.query(size.window)
    join = query.start(limits=limits) if limits else query.start()
    live = held = 0
    shedding = []
    for batch in batches(kind.tables(seed, size.rows, size.width), size.rows, size.pushes):
        join.push(batch)
        metrics = join.metrics
        live, held = max(live, metrics.live), max(held, metrics.bytes)
        if metrics.shed:
            shedding.append(metrics.live)
    mean = float(np.mean(shedding)) if shedding else 0.0
    return join.metrics, Need(join.metrics.produced, live, held, mean)


@cache
def need(name: str, seed: int, size: Size) -> Need:
    return run(KINDS[name], seed, size)[1]
