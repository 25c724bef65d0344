"""`penstock demo`: an auction site's three streams joined on Spark while you watch.

Spark runs on this machine. While it starts, and while kernels compile on a new machine, the
embedded engine shows what it finds in the first rows. At the end it joins all the rows that Spark
has joined, and the results are compared.

However slow the machine is, Spark joins one batch at least: the clock starts after it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Final

from rich.console import Console

from penstock.cli.demo.auctions import WITHIN, Digest, embedded_digest
from penstock.cli.demo.previews import Previews
from penstock.cli.demo.run import DemoRun
from penstock.cli.demo.state import DemoState
from penstock.cli.demo.view import Refresh, shown
from penstock.cli.local_spark import SparkUser, check_installed, interrupts_noted, local_spark
from penstock.cli.views.display import consoles, say, short
from penstock.samples.nexmark import Nexmark

__all__ = ["run_demo"]

_CORES: Final = 2
_POLL_S: Final = 0.1
_TITLE: Final = f"who signs up, sells and bids within {WITHIN}"
_USER: Final = SparkUser("the demo", "or run penstock demo --embedded, which needs no Spark")
_DIFFERENT: Final = 1
_INTERRUPTED: Final = 130


@dataclass(frozen=True)
class _Compared:
    """Results of the same rows: Spark's and the embedded engine's, and how long the latter took."""

    found: Digest
    expected: Digest
    embedded_s: float


def run_demo(events: int, seed: int, seconds: float) -> int:
    """Join `events` rows of the three streams and show it; the exit code.

    seconds: that long after the first batch the query is stopped, wherever it is.
    """
    check_installed(_USER)
    out, _ = consoles()
    work = Nexmark(events=events, seed=seed)
    state = DemoState(_TITLE, events, dict.fromkeys(work.STREAMS, 0))
    failures: list[str] = []
    compared = None
    try:
        with shown(out, state) as refresh:
            run = DemoRun(work, state, refresh)
            failures = _join(run, work, state, refresh, seconds)
            joined_s = state.elapsed_s
            compared = _compare(run, work, state, refresh)
    except KeyboardInterrupt:
        joined_s = state.elapsed_s
    for failure in failures:
        say(out, failure, "yellow")
    if compared is not None and state.all_rows < state.total:
        say(
            out,
            f"stopped {seconds:.0f} s after the first batch; for all rows give more --seconds",
            "yellow",
        )
    _summarise(out, state, joined_s)
    if compared is None:
        say(out, "interrupted: the results were not compared with the embedded engine's", "yellow")
        return _INTERRUPTED
    if compared.found != compared.expected:
        say(
            out,
            f"the embedded engine has other results: {compared.expected}, not {compared.found}",
            "bold red",
        )
        return _DIFFERENT
    say(
        out,
        f"same {compared.expected.rows:,} results as the embedded engine, "
        f"which took {compared.embedded_s:.1f} s",
        "green",
    )
    return 0


def _join(
    run: DemoRun, work: Nexmark, state: DemoState, refresh: Refresh, seconds: float
) -> list[str]:
    """On Spark; what failed of the previews, in words. Ctrl-C raises KeyboardInterrupt."""
    state.wait("spark", "Spark starts, about ten seconds")
    with interrupts_noted() as interrupted, Previews(work, state, refresh) as previews:

        def meanwhile() -> None:
            previews.look()
            if interrupted.is_set():
                state.wait("spark", "interrupted; Spark ends, a few seconds")
                refresh("wait")
                raise KeyboardInterrupt

        def is_over() -> bool:
            return interrupted.is_set() or (
                state.first_batch_at is not None and state.after_first_batch_s >= seconds
            )

        with local_spark("penstock-demo", _CORES, _USER, meanwhile) as (spark, directory):
            state.wait("spark", "")
            while not previews.have_ended:
                meanwhile()
                time.sleep(_POLL_S)
            state.wait("query", "batch 1, and Python workers start, about half a minute")
            refresh("wait")
            run.run(spark, directory, is_over)
            state.wait("query", "Spark ends, a few seconds")
        if interrupted.is_set():
            raise KeyboardInterrupt
        return previews.failures


def _compare(run: DemoRun, work: Nexmark, state: DemoState, refresh: Refresh) -> _Compared:
    state.wait("query", "the same rows in the embedded engine, a few seconds")
    refresh("wait")
    before = time.perf_counter()
    expected = embedded_digest(replace(work, events=run.events))
    state.wait("query", "")
    return _Compared(run.digest, expected, time.perf_counter() - before)


def _summarise(console: Console, state: DemoState, joined_s: float) -> None:
    say(console, f"{state.all_rows:,} rows joined to {state.results:,} results", "bold")
    say(console, ", ".join(f"{rows:,} {stream}" for stream, rows in state.rows.items()))
    if not state.seconds:
        return
    if not state.results:
        say(console, "so few rows hold no result; for results give more --rows")
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
