"""Runs benchmarks and shows each number beside its bound: `python -m benchmarks [NAME …]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import penstock
from benchmarks import (
    band,
    join_types,
    memory,
    on_spark,
    optimum,
    planning,
    promises,
    shedding,
    static,
    throughput,
)
from benchmarks.measure import Measurement

BENCHMARKS: Final[dict[str, Callable[[], list[Measurement]]]] = {
    "narrow": throughput.narrow,
    "wide": throughput.wide,
    "one_row": throughput.one_row,
    "live": throughput.live,
    "outer": join_types.outer,
    "promises": promises.promises,
    "band": band.band,
    "shedding": shedding.shedding,
    "planning": planning.planning,
    "static": static.static,
    "optimum": optimum.optimum,
    "optimum_interval": optimum.optimum_interval,
    "state": memory.state,
    "flat": memory.flat,
    "spark_first": on_spark.spark_first,
    "spark_small": on_spark.spark_small,
    "spark_narrow": on_spark.spark_narrow,
    "spark_wide": on_spark.spark_wide,
    "spark_steady": on_spark.spark_steady,
}

_RESULTS: Final = Path(__file__).parent / "results"


def main() -> int:
    """Runs what the command line names, or everything."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures penstock. Each benchmark prints a number and the bound it must keep.",
        epilog="\n".join(
            f"{name:<16} {(run.__doc__ or '').splitlines()[0]}" for name, run in BENCHMARKS.items()
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="which to run (all, when none is named)"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a bound is missed")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; choose from {', '.join(BENCHMARKS)}")

    # One thread for penstock: its kernels use one, and Arrow's own pool is held to one.
    pa.set_cpu_count(1)
    console = Console()
    measurements: list[Measurement] = []
    for name in arguments.names or BENCHMARKS:
        with console.status(f"running {name}"):
            measurements += BENCHMARKS[name]()
    console.print(_shown(measurements))
    for measurement in measurements:
        console.print(f"[bold]{measurement.name}[/]", _rounded(measurement.details))
    console.print(f"written to {_written(measurements).relative_to(_RESULTS.parent.parent)}")
    missed = any(not measurement.passed for measurement in measurements)
    return 1 if arguments.strict and missed else 0


def _shown(measurements: list[Measurement]) -> Table:
    table = Table("benchmark", "what", title="penstock benchmarks", title_justify="left")
    table.add_column("measured", justify="right")
    table.add_column("required", justify="right")
    table.add_column("")
    for one in measurements:
        bound = "at least" if one.at_least else "at most"
        table.add_row(
            one.name,
            one.what,
            f"{_short(one.measured)} {one.unit}",
            f"{bound} {_short(one.required)}",
            "[green]pass[/]" if one.passed else "[red]missed[/]",
        )
    return table


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return value


def _written(measurements: list[Measurement]) -> Path:
    now = datetime.now(UTC)
    record = {
        "at": now.isoformat(timespec="seconds"),
        "machine": {"processor": _processor(), "cores": os.cpu_count()},
        "versions": {
            "python": platform.python_version(),
            "penstock": penstock.__version__,
            **{name: version(name) for name in ("numba", "pyarrow", "duckdb", "pyspark")},
        },
        "measurements": [{**asdict(one), "passed": one.passed} for one in measurements],
    }
    _RESULTS.mkdir(exist_ok=True)
    path = _RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return path


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


if __name__ == "__main__":
    sys.exit(main())
