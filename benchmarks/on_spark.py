"""Speed, state and memory against Spark's own stream-stream join; batches that stay as short."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any, Final

from benchmarks.measure import Measurement
from benchmarks.spark_contest import PENSTOCK, SPARKS_OWN, Run, compete
from benchmarks.spark_input import Shape
from penstock.samples import uniform

__all__ = [
    "narrow_shape",
    "spark_first",
    "spark_narrow",
    "spark_small",
    "spark_steady",
    "spark_wide",
]

_SEED: Final = 1
_KEYS: Final = 60_000
_HEAT_ROWS: Final = 100_000
_HEAT_BATCHES: Final = 4
_BEST_OF_HEATS: Final = 2
_FIRST_RUNS: Final = 3
_FIRST_OWN: Final = "spark, format 2, rocksdb"  # state where penstock has its own


def spark_first() -> list[Measurement]:
    """The first batch of a query in a new session, of 50,000 + 50,000 rows, kernels compiled.

    Planning, the start of Python workers and what they import are most of it.
    """
    turns = [PENSTOCK, _FIRST_OWN] * _FIRST_RUNS
    first_s: dict[str, list[float]] = {PENSTOCK: [], _FIRST_OWN: []}
    for run in compete(narrow_shape(50_000, batches=2), turns, warm_up=1):
        first_s[run.contestant].append(run.outcome.batch_s[0])
    ours, own = (statistics.median(first_s[name]) for name in (PENSTOCK, _FIRST_OWN))
    return [
        Measurement(
            name="spark_first",
            what="first batch over that of Spark's own",
            measured=ours / own,
            required=1.7,
            at_least=False,
            details={"against": _FIRST_OWN, "first_s": first_s},
        )
    ]


def spark_small() -> list[Measurement]:
    """50,000 + 50,000 rows a batch of ts, k, v; 60 s windows.

    A batch is short enough to be mostly Spark's own work around the join, which the JVM goes on
    compiling, and getting faster at, for some forty batches.
    """
    heats = compete(narrow_shape(50_000, 12), SPARKS_OWN, warm_up=6)
    shape = narrow_shape(50_000, batches=64)
    runs = compete(shape, [PENSTOCK, *_best(heats), PENSTOCK], warm_up=40)
    return _measured("spark_small", "50 k + 50 k rows a batch", runs, 1.8, heats)


def spark_narrow() -> list[Measurement]:
    """1 M + 1 M rows a batch of ts, k, v; 60 s windows."""
    return _large("spark_narrow", "1 M + 1 M rows a batch", narrow_shape, required=8.0)


def spark_wide() -> list[Measurement]:
    """1 M + 1 M rows a batch of ten columns, three of them strings, the key one of these."""
    return _large("spark_wide", "1 M + 1 M rows of 10 columns a batch", _wide, required=5.0)


def spark_steady() -> list[Measurement]:
    """200 batches of 10,000 + 10,000 rows: the last tenth against the first after warm-up.

    A window is 30 batches long, so that segments of the state are merged all the time.
    """
    counted, warm_up, batch_rows = 200, 40, 10_000
    work = uniform(seed=_SEED, rows=(warm_up + counted) * batch_rows, rate=5000, keys=_KEYS)
    (run,) = compete(Shape(work, batch_rows), [PENSTOCK], warm_up)
    tenth = counted // 10
    first, last = run.steady_s[:tenth], run.steady_s[-tenth:]
    return [
        Measurement(
            name="spark_steady",
            what="time of a batch, the last 20 of 200 over the first 20",
            measured=statistics.median(last) / statistics.median(first),
            required=1.15,
            at_least=False,
            details={
                "first_s": first,
                "last_s": last,
                "median_s": run.median_s,
                "state_mb": run.outcome.state_bytes / 1e6,
                "peak_mb": run.peak_bytes / 1e6,
            },
        )
    ]


def narrow_shape(batch_rows: int, batches: int) -> Shape:
    """Batches of ts, k, v; about one result to a tuple."""
    work = uniform(seed=_SEED, rows=batch_rows * batches, rate=1000, keys=_KEYS)
    return Shape(work, batch_rows)


def _wide(batch_rows: int, batches: int) -> Shape:
    work = uniform(
        seed=_SEED, rows=batch_rows * batches, rate=1000, keys=_KEYS, string_keys=True, payload=9
    )
    return Shape(work, batch_rows, without=("p7",))


def _large(
    name: str, what: str, shape: Callable[[int, int], Shape], required: float
) -> list[Measurement]:
    """Batches of a million rows a side; which of Spark's own take part is found on fewer."""
    heats = compete(shape(_HEAT_ROWS, _HEAT_BATCHES), SPARKS_OWN, warm_up=1)
    runs = compete(shape(1_000_000, 3), [PENSTOCK, *_best(heats), PENSTOCK], warm_up=1)
    return _measured(name, what, runs, required, heats)


def _best(heats: list[Run]) -> list[str]:
    fastest_first = sorted(heats, key=lambda run: run.median_s)
    return [run.contestant for run in fastest_first[:_BEST_OF_HEATS]]


def _measured(
    name: str, what: str, runs: list[Run], required: float, heats: list[Run]
) -> list[Measurement]:
    """Speed, state on disk and peak memory, all against the fastest of Spark's own."""
    ours = [run for run in runs if run.contestant == PENSTOCK]
    best = min((run for run in runs if run not in ours), key=lambda run: run.median_s)
    our_median_s = statistics.median([each for run in ours for each in run.steady_s])
    our_processor_s = statistics.median([run.processor_s for run in ours])
    details: dict[str, Any] = {
        "against": best.contestant,
        "ratio_of_processor_time": best.processor_s / our_processor_s,
        "results": best.outcome.results,
        "runs": [{"contestant": run.contestant, **run.described()} for run in runs],
        "heats": {run.contestant: run.described() for run in heats},
    }
    state_bytes = max(run.outcome.state_bytes for run in ours)
    peak_bytes = max(run.peak_bytes for run in ours)
    return [
        Measurement(
            name=name,
            what=f"speed over Spark's own: {what}",
            measured=best.median_s / our_median_s,
            required=required,
            at_least=True,
            details=details,
        ),
        Measurement(
            name=name,
            what="state on disk over that of Spark's own",
            measured=state_bytes / best.outcome.state_bytes,
            required=1.0,
            at_least=False,
            details={
                "penstock_mb": state_bytes / 1e6,
                "spark_mb": best.outcome.state_bytes / 1e6,
            },
        ),
        Measurement(
            name=name,
            what="peak memory of all processes over that of Spark's own",
            measured=peak_bytes / best.peak_bytes,
            required=1.0,
            at_least=False,
            details={"penstock_mb": peak_bytes / 1e6, "spark_mb": best.peak_bytes / 1e6},
        ),
    ]
