"""What promises of streams save, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

import penstock as ps
from benchmarks.measure import Measurement, interleave

__all__ = ["promises"]

_ROUNDS: Final = 5
_ORDERS: Final = 600_000
_BATCH_US: Final = 1_000_000
_GAP_US: Final = 20
_WAYS: Final = ("without", "unique", "irrelevant")


def promises() -> list[Measurement]:
    """Orders that come once, each paid one to three times: with that said over without it."""
    batches = _batches()
    marked = [_with_irrelevant(batch) for batch in batches]
    live: dict[str, int] = {}
    size: dict[str, int] = {}
    results: dict[str, int] = {}

    def run(name: str, given: Sequence[dict[str, pa.Table]], **more: Any) -> Callable[[], None]:
        streams = [ps.Stream("orders", time="ts", **more), ps.Stream("payments", time="ts")]
        query = ps.WindowJoin(streams, on="k", within="10 seconds", select=["payments.v"])

        def joined() -> None:
            most_live, most_bytes = 0, 0
            with query.start() as join:
                for batch in given:
                    join.push(batch)
                    metrics = join.metrics
                    most_live = max(most_live, metrics.live)
                    most_bytes = max(most_bytes, metrics.bytes)
            live[name], size[name], results[name] = most_live, most_bytes, metrics.produced

        return joined

    ways = [
        run("without", batches),
        run("unique", batches, unique=True),
        run("irrelevant", marked, punctuation="is_end"),
    ]
    for way in ways:
        way()  # compiles what no cache has
    times = dict(zip(_WAYS, interleave(_ROUNDS, *ways), strict=True))
    if len(set(results.values())) != 1:
        raise AssertionError(f"promises have changed the answer: {results}")
    details: dict[str, Any] = {"live": live, "bytes": size, "results": results}
    details["seconds"] = {each: taken.wall for each, taken in times.items()}

    def ratio(what: str, name: str, of: dict[str, float], required: float) -> Measurement:
        return Measurement(
            name="promises",
            what=what,
            measured=of[name] / of["without"],
            required=required,
            at_least=False,
            details=details,
        )

    processor = {each: taken.best_processor for each, taken in times.items()}
    tuples = {each: float(count) for each, count in live.items()}
    return [
        ratio("time if orders are said to be unique over that without", "unique", processor, 1.0),
        ratio("tuples held at most, the same", "unique", tuples, 0.5),
        ratio(
            "time with a punctuation that matches nothing for every ten orders over that without",
            "irrelevant",
            processor,
            1.05,
        ),
    ]


def _batches() -> list[dict[str, pa.Table]]:
    random = np.random.default_rng(1)
    ordered = np.arange(_ORDERS) * _GAP_US
    keys = random.permutation(_ORDERS)
    count = random.integers(1, 4, _ORDERS)
    paid = np.repeat(ordered, count) + random.integers(0, 5_000_000, int(count.sum()))
    order = np.argsort(paid, kind="stable")
    tables = {
        "orders": _table(ordered, keys),
        "payments": _table(paid[order], np.repeat(keys, count)[order]),
    }
    return [
        {
            name: table.slice(begin, end - begin)
            for name, table in tables.items()
            for begin, end in (
                np.searchsorted(table["ts"].to_numpy(), (start, start + _BATCH_US)).tolist(),
            )
        }
        for start in range(0, _ORDERS * _GAP_US, _BATCH_US)
    ]


def _table(ts: np.ndarray[Any, Any], keys: np.ndarray[Any, Any]) -> pa.Table:
    return pa.table({"ts": ts, "k": keys, "v": ts})


def _with_irrelevant(batch: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """A batch whose orders have a promise about a key that never comes behind every ten."""
    orders = batch["orders"]
    ts = orders["ts"].to_numpy()
    marks = np.arange(9, len(ts), 10)
    order = np.argsort(np.concatenate([ts, ts[marks]]), kind="stable")
    keys = np.concatenate([orders["k"].to_numpy(), _ORDERS + ts[marks] // _GAP_US])[order]
    is_end = np.concatenate([np.zeros(len(ts), np.bool_), np.ones(len(marks), np.bool_)])[order]
    times = np.concatenate([ts, ts[marks]])[order]
    table = pa.table({"ts": times, "k": keys, "v": times, "is_end": is_end})
    return {**batch, "orders": table}
