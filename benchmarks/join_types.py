"""What it costs to know which tuples have met a partner, and what a semi join saves by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pyarrow as pa

from benchmarks.measure import Measurement, interleave
from benchmarks.subject import join_within
from penstock.samples import uniform

__all__ = ["outer"]

_ROUNDS: Final = 5
_HOWS: Final = ("inner", "left", "full", "semi", "anti")


def outer() -> list[Measurement]:
    """Left and full joins of 1 M + 1 M tuples over the inner join of the same."""
    work = uniform(seed=1, rows=1_000_000, rate=1000, keys=60_000)
    tables = {stream: work.table(stream) for stream in work.streams}
    batches = [
        {stream: table.slice(start, 50_000) for stream, table in tables.items()}
        for start in range(0, work.rows, 50_000)
    ]
    results: dict[str, int] = {}

    def run(how: str) -> Callable[[], pa.Table]:
        query = replace(join_within("60 seconds"), how=how)

        def joined() -> pa.Table:
            with query.start() as join:
                pieces = [join.push(batch) for batch in batches]
                pieces.append(join.finish())
            results[how] = join.metrics.produced
            return pa.concat_tables(pieces)

        return joined

    ways = [run(how) for how in _HOWS]
    for way in ways:
        way()  # compiles what no cache has
    times = dict(zip(_HOWS, interleave(_ROUNDS, *ways), strict=True))
    alone = results["anti"]
    if results["left"] != results["inner"] + alone or results["semi"] + alone != work.rows:
        raise AssertionError(f"the numbers of results do not add up: {results}")
    slowdowns = [
        Measurement(
            name="outer",
            what=f"time of a {how} join over that of the inner",
            measured=times[how].median / times["inner"].median,
            required=1.3,
            at_least=False,
            details={
                "results": results,
                "ratio_of_processor_time": times[how].best_processor
                / times["inner"].best_processor,
                "seconds": {each: taken.wall for each, taken in times.items()},
            },
        )
        for how in ("left", "full")
    ]
    return [*slowdowns, _kept()]


def _kept() -> Measurement:
    """The left tuples in the windows after 100,000 came, all of which have matched."""
    table = uniform(seed=1, rows=100_000, rate=1000, keys=10_000).table("left")
    live = {}
    for how in ("semi", "inner"):
        with replace(join_within("1 hour"), how=how).start() as join:
            join.push(left=table, right=table)
            live[how] = join.metrics.streams["left"].live
    return Measurement(
        name="outer",
        what="left tuples that a semi join keeps when all have matched",
        measured=live["semi"],
        required=0,
        at_least=False,
        unit="tuples",
        details={"live": live},
    )
