"""`penstock demo`: an auction site's three streams joined on Spark while you watch.

Spark runs on this machine. At the end the embedded engine joins the same rows, and the
results are compared.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Final

from rich.console import Console

from penstock.cli.auctions import WITHIN, embedded_digest
from penstock.cli.demo_run import DemoRun
from penstock.cli.demo_view import DemoState, shown
from penstock.cli.display import consoles, say, short
from penstock.cli.local_spark import SparkUser, check_installed, interrupts_noted, local_spark
from penstock.workloads.nexmark import Nexmark

__all__ = ["run_demo"]

_CORES: Final = 2
_WARM_UP_EVENTS: Final = 20_000
_TITLE: Final = f"who signs up, sells and bids within {WITHIN}"
_USER: Final = SparkUser("the demo", "or run penstock demo --embedded, which needs no Spark")
_DIFFERENT: Final = 1
_INTERRUPTED: Final = 130


def run_demo(events: int, seed: int, seconds: float) -> int:
    """Join `events` rows of the three streams and show it; the exit code.

    seconds: after so many the query is stopped, wherever it is.
    """
    check_installed(_USER)
    out, _ = consoles()
    work = Nexmark(events=events, seed=seed)
    state = DemoState(_TITLE, events, dict.fromkeys(work.STREAMS, 0))
    # While Java starts. The workers then find the kernels compiled.
    warm_up = threading.Thread(target=embedded_digest, args=(Nexmark(events=_WARM_UP_EVENTS),))
    with shown(out, state) as refresh:
        run = DemoRun(work, state, refresh)
        warm_up.start()
        state.now("Spark starts")
        refresh("doing")
        with local_spark("penstock-demo", _CORES, _USER) as (spark, directory):
            warm_up.join()
            state.now("batch 1, and Python workers start")
            refresh("doing")
            with interrupts_noted() as interrupted:
                run.run(spark, directory, lambda: interrupted.is_set() or state.elapsed_s > seconds)
        joined_s = state.elapsed_s
        expected = None
        if not interrupted.is_set():
            state.now("the same rows in the embedded engine")
            refresh("doing")
            before = time.perf_counter()
            expected = embedded_digest(replace(work, events=run.events))
            embedded_s = time.perf_counter() - before
        state.now("")
    if state.all_rows < state.total and not interrupted.is_set():
        say(out, f"stopped after {seconds:.0f} seconds; for all rows give more --seconds", "yellow")
    _summarise(out, state, joined_s)
    if expected is None:
        say(out, "interrupted: the results were not compared with the embedded engine's", "yellow")
        return _INTERRUPTED
    if expected != run.digest:
        say(out, f"the embedded engine has other results: {expected}, not {run.digest}", "bold red")
        return _DIFFERENT
    say(
        out,
        f"same {expected.rows:,} results as the embedded engine, which took {embedded_s:.1f} s",
        "green",
    )
    return 0


def _summarise(console: Console, state: DemoState, joined_s: float) -> None:
    say(console, f"{state.all_rows:,} rows joined to {state.results:,} results", "bold")
    say(console, ", ".join(f"{rows:,} {stream}" for stream, rows in state.rows.items()))
    if not state.seconds:
        return
    first = "-" if state.first_results_s is None else f"{state.first_results_s:.1f} s"
    say(console, f"{joined_s:.1f} s in all, with the start of Spark; first results after {first}")
    first = " after the first" if len(state.seconds) > 1 else ""
    say(
        console,
        f"batches: {len(state.seconds)}, the median {state.batch_s:.2f} s; "
        f"{short(state.steady_speed)} rows/s{first}",
    )
    say(
        console,
        f"at most {state.peak_live:,} rows live; {state.late:,} rows late; "
        f"{state.rebuilt:,} windows rebuilt",
    )
