"""`penstock demo --embedded`: two generated streams joined while you watch.

Two streams of the same keys, each up to two seconds out of order; a row meets the rows of
its key on the other side that are at most a minute away. The kernels are compiled, or loaded,
before the clock starts.
"""

from __future__ import annotations

import time
from typing import Final

import pyarrow as pa
from rich.console import Console

from penstock import samples
from penstock.cli.demo.embedded_view import EmbeddedState, shown
from penstock.cli.views.display import consoles, say, short
from penstock.cli.views.result_rows import as_rich
from penstock.model.stream import Stream
from penstock.window_join import WindowJoin

__all__ = ["run_embedded_demo"]

_STREAMS: Final = ("orders", "payments")
_SELECTED: Final = ("orders.k", "orders.ts", "orders.v", "payments.ts", "payments.v")
_DISORDER: Final = "2 seconds"
_WITHIN: Final = "1 minute"
_KEYS: Final = 60_000
_RATE: Final = 1_000.0
_BATCH_ROWS: Final = 20_000
# Few rows over a long time: enough for tuples to match and to leave.
_WARM_UP_ROWS: Final = 2_000
_WARM_UP_RATE: Final = 10.0
_WARM_UP_KEYS: Final = 50
_EXAMPLES: Final = 5


def run_embedded_demo(rows: int, seed: int) -> None:
    """Join `rows` rows, half of them of each stream, and show how it goes and what came out."""
    each = -(-rows // len(_STREAMS))
    workload = samples.uniform(
        seed=seed, rows=each, rate=_RATE, keys=_KEYS, streams=_STREAMS, disorder=_DISORDER
    )
    query = WindowJoin(
        [Stream(name, time="ts", lateness=_DISORDER) for name in _STREAMS],
        on="k",
        within=_WITHIN,
        select=_SELECTED,
    )
    out, _ = consoles()
    say(out, f"kernels ready after {_warm_up(query):.1f} s; the times below do not count it")
    title = f"{' and '.join(_STREAMS)}, equal k, within {_WITHIN}"
    state = EmbeddedState(title, total=each * len(_STREAMS))
    examples: pa.Table | None = None
    join_seconds = 0.0
    with query.start() as join, shown(out, state) as refresh:
        started = time.perf_counter()
        for batch in workload.batches(_BATCH_ROWS):
            before = time.perf_counter()
            table = join.push(batch)
            join_seconds += time.perf_counter() - before
            if not examples:
                examples = table.slice(0, _EXAMPLES)
            metrics = join.metrics
            state.rows += sum(part.num_rows for part in batch.values())
            state.results = metrics.produced
            state.late = metrics.late
            state.live = metrics.live
            state.peak_live = max(state.peak_live, metrics.live)
            state.watermark_us = metrics.watermark
            state.seconds = time.perf_counter() - started
            refresh()
        join.finish()
        state.seconds = time.perf_counter() - started
    if examples:
        say(out, "the first results", "bold")
        out.print(as_rich(examples))
    _summarise(out, state, join_seconds)


def _warm_up(query: WindowJoin) -> float:
    """Have the kernels compiled by a small join; the seconds it took."""
    workload = samples.uniform(
        seed=0,
        rows=_WARM_UP_ROWS,
        rate=_WARM_UP_RATE,
        keys=_WARM_UP_KEYS,
        streams=_STREAMS,
        disorder=_DISORDER,
    )
    started = time.perf_counter()
    with query.start() as join:
        for batch in workload.batches(_WARM_UP_ROWS // 4):
            join.push(batch)
        join.finish()
    return time.perf_counter() - started


def _summarise(console: Console, state: EmbeddedState, join_seconds: float) -> None:
    say(console, f"{state.rows:,} rows joined to {state.results:,} results", "bold")
    say(
        console,
        f"{state.seconds:.1f} s, of which {join_seconds:.1f} s in the join: "
        f"{short(state.rows / max(join_seconds, 1e-9))} rows/s on one thread",
    )
    say(console, f"{state.late:,} rows were late; at most {state.peak_live:,} tuples were live")
