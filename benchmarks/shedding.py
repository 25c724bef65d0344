"""What it costs to keep within half the memory that the exact answer needs, and to count losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import penstock as ps
from benchmarks.measure import Measurement, interleave
from benchmarks.subject import join_within
from penstock.samples import SampleStreams, uniform, zipf

__all__ = ["shedding"]

_ROUNDS: Final = 5
_ROWS: Final = 300_000
_HALF: Final = "60000 rows"  # of 60,000 in each window
_LOSSES: Final = ("off", "sampled", "exact")


def shedding() -> list[Measurement]:
    """Speed by 'prob' in half the memory over that in all of it; and what the ledger costs."""
    works = {
        f"Zipf {skew}": zipf(seed=1, rows=_ROWS, rate=1000, keys=60_000, skew=skew)
        for skew in (0.8, 0.5)
    }
    works["uniform"] = uniform(seed=1, rows=_ROWS, rate=1000, keys=60_000)
    return [each for keys, work in works.items() for each in _measured(keys, work)]


def _measured(keys: str, work: SampleStreams) -> list[Measurement]:
    tables = {stream: work.table(stream) for stream in work.streams}
    batches = [
        {stream: table.slice(start, 20_000) for stream, table in tables.items()}
        for start in range(0, work.rows, 20_000)
    ]
    query = join_within("60 seconds")
    told: dict[str, ps.Metrics] = {}

    def run(loss: str | None) -> Callable[[], None]:
        limits = None if loss is None else ps.Limits(memory=_HALF, shed="prob", loss=loss)

        def joined() -> None:
            with query.start(limits=limits) as join:
                for batch in batches:
                    join.push(batch)
                join.finish()
            told[loss or "all"] = join.metrics

        return joined

    ways = [run(None), *(run(loss) for loss in _LOSSES)]
    for way in ways:
        way()  # compiles what no cache has
    exact, whole = told["all"].produced, told["exact"]
    if whole.produced + (whole.lost or 0) != exact:
        raise AssertionError(f"{whole.produced:,} results and {whole.lost:,} lost of {exact:,}")
    everything, *limited = interleave(_ROUNDS, *ways)
    times = dict(zip(_LOSSES, limited, strict=True))
    details = {
        "results": exact,
        "recall": whole.recall,
        "shed": whole.shed,
        "interval": told["sampled"].lost_interval,
        "lost": whole.lost,
        "all_s": everything.wall,
        **{f"{loss}_s": each.wall for loss, each in times.items()},
    }
    return [
        Measurement(
            name="shedding",
            what=f"speed in half the memory over that in all, losses counted ({keys})",
            measured=everything.best_processor / times["exact"].best_processor,
            required=0.6,
            at_least=True,
            details=details,
        ),
        *(
            Measurement(
                name="shedding",
                what=f"time with losses {how} over that without ({keys})",
                measured=times[loss].best_processor / times["off"].best_processor,
                required=required,
                at_least=False,
            )
            for loss, how, required in (("exact", "counted", 1.25), ("sampled", "sampled", 1.05))
        ),
    ]
