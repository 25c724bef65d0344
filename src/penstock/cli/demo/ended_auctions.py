"""`penstock demo auctions`: the bids for each auction, counted when the auction ends.

Ding and Rundensteiner's example. An auction comes once and says when it ends: so its bids need not
be kept, and it can be forgotten at its end. Beside it the same join goes by windows alone, which
hold an auction for twelve hours; a panel shows what each of them holds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from penstock.cli.demo.embedded_view import EmbeddedState, shown
from penstock.cli.views.display import consoles, say, short
from penstock.cli.views.result_rows import as_rich
from penstock.model.stream import Stream
from penstock.runtime.group_by import GroupedJoin, group_by
from penstock.samples import Nexmark
from penstock.window_join import WindowJoin

__all__ = ["run_auction_demo"]

_RATE: Final = 500.0  # rows in a second of event time: most auctions end within the demo
_BATCH_ROWS: Final = 20_000
_WARM_UP_ROWS: Final = 4_000
_EXAMPLES: Final = 5
_COLUMNS: Final[dict[str, Sequence[str]]] = {
    "auctions": ["id", "category", "date_time", "expires"],
    "bids": ["auction", "price", "date_time"],
}


def _grouped(work: Nexmark) -> GroupedJoin:
    auctions = Stream(
        "auctions",
        time="date_time",
        window="12 hours",
        lateness=work.disorder,
        unique=True,
        expires={"bids": "expires"},
    )
    # No bid is before its auction; of those that come out of order the lateness takes care.
    bids = Stream("bids", time="date_time", window="0 s", lateness=work.disorder)
    query = WindowJoin(
        [auctions, bids],
        on={"auctions": "id", "bids": "auction"},
        where="bids.date_time < auctions.expires",
        select={"auction": "auctions.id", "category": "auctions.category", "price": "bids.price"},
    )
    return group_by(query, ["auction", "category"], count="bids", max={"highest": "price"})


def run_auction_demo(rows: int, seed: int) -> None:
    """Count the bids of `rows` rows of an auction site, and show what is held meanwhile."""
    out, _ = consoles()
    work = Nexmark(events=rows, seed=seed, rate=_RATE)
    grouped = _grouped(work)
    seconds = _warm_up(grouped)
    say(out, f"kernels ready after {seconds:.1f} s; the times below do not count it")
    state = EmbeddedState("bids for each auction, when it ends", total=rows)
    groups, by_window = grouped.start(), grouped.query.start(forget="window")
    examples: pa.Table | None = None
    taken, most_by_window = 0.0, 0
    started = time.perf_counter()
    with shown(out, state) as refresh:
        for batch in work.batches(_BATCH_ROWS, _COLUMNS):
            given = {name: batch[name] for name in _COLUMNS}
            before = time.perf_counter()
            done = groups.push(given)
            taken += time.perf_counter() - before
            if not examples and len(done):
                examples = done.slice(0, _EXAMPLES)
            by_window.push(given)
            most_by_window = max(most_by_window, by_window.metrics.live)
            metrics = groups.join.metrics
            state.rows += sum(part.num_rows for part in batch.values())
            state.results += len(done)
            state.late, state.live = metrics.late, metrics.live
            state.peak_live = max(state.peak_live, metrics.live)
            state.watermark_us = metrics.watermark
            state.seconds = time.perf_counter() - started
            refresh()
    open_at_end = groups.open_groups
    groups.finish()
    if examples is not None:
        say(out, "the first auctions that ended", "bold")
        out.print(as_rich(examples))
    ended = f"{state.rows:,} rows: {state.results:,} auctions with bids have ended"
    say(out, f"{ended}, {open_at_end:,} are open", "bold")
    speed = short(state.rows / max(taken, 1e-9))
    say(out, f"{taken:.1f} s in the group-by: {speed} rows/s on one thread")
    say(
        out,
        f"at most {state.peak_live:,} tuples were live; by windows alone, {most_by_window:,}",
    )


def _warm_up(grouped: GroupedJoin) -> float:
    """Have the kernels compiled by small joins; the seconds it took."""
    work = Nexmark(events=_WARM_UP_ROWS, rate=1.0)
    started = time.perf_counter()
    groups, by_window = grouped.start(), grouped.query.start(forget="window")
    for batch in work.batches(_WARM_UP_ROWS // 4, _COLUMNS):
        given = {name: batch[name] for name in _COLUMNS}
        groups.push(given)
        by_window.push(given)
    groups.finish()
    return time.perf_counter() - started
