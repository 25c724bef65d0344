"""The table of docs/sizing.md: how often the intervals of samples hold what all rows say.

`python -m benchmarks.size_coverage [SEEDS]`. Each recording is sized whole, then by so many samples
of a fifth of its rows, each with another seed.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np

import penstock as ps
from penstock.lab.recording.reading import read_recording
from penstock.lab.sizing import Recording, size
from penstock.lab.sizing.intervals import memory_at
from penstock.lab.sizing.sizing import RECALLS, Request
from penstock.samples import SampleStreams, uniform, zipf, zipf_pair

ROWS: Final = 80_000  # of each stream
RATE: Final = 4_000.0
KEYS: Final = 20_000
SHARE: Final = 0.2
WITHIN: Final = "1 second"
POLICIES: Final = ("prob", "life", "oldest")
WORKS: Final[dict[str, SampleStreams]] = {
    "uniform keys": uniform(keys=KEYS, rows=ROWS, rate=RATE),
    "Zipf 0.7": zipf(keys=KEYS, skew=0.7, rows=ROWS, rate=RATE),
    "Zipf 1": zipf(keys=KEYS, skew=1.0, rows=ROWS, rate=RATE),
    "Zipf 1, other keys common in each": zipf_pair(
        keys=KEYS, shuffle=3, rows=ROWS, rate=RATE, in_step=False
    ),
}


def main() -> int:
    """Prints the table, in Markdown."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    held = " | ".join(f"{recall:.0%}" for recall in RECALLS)
    print(f"| keys | policy | rows of a sample | held, of {seeds}: {held} | off by | width |")
    print("|---|---|---:|" + "---:|" * (len(RECALLS) + 2))
    for name, work in WORKS.items():
        for policy in POLICIES:
            print(f"| {name} | `{policy}` | {' | '.join(row(work, policy, seeds))} |", flush=True)
    return 0


def row(work: SampleStreams, policy: str, seeds: int) -> list[str]:
    """How large samples are, how often intervals hold the truth, how far estimates are from it on
    the average, and half the width of intervals."""
    tables = {name: work.table(name) for name in work.streams}
    query = ps.WindowJoin(
        [ps.Stream(name, time="ts") for name in work.streams], on="k", within=WITHIN
    )
    asked = Request(policies=[policy], with_ceiling=False)
    (curve,) = size(Recording.of(query, tables), asked).curves
    memories = np.array([point.memory for point in curve.points], float)
    recalls = np.array([point.recall for point in curve.points])
    truth = [memory_at(memories, recalls, recall) for recall in RECALLS]
    held, errors, widths = np.zeros(len(RECALLS), int), [], []
    for seed in range(seeds):
        recording = read_recording(
            query,
            lambda: {name: table.to_batches() for name, table in tables.items()},
            {name: table.schema for name, table in tables.items()},
            share=SHARE,
            seed=seed,
        )
        (sampled,) = size(recording, asked).curves
        for number, (enough, true) in enumerate(zip(sampled.enough, truth, strict=True)):
            assert enough is not None
            assert enough.interval is not None
            low, high = enough.interval
            held[number] += low <= true <= high
            errors.append(abs(enough.memory / true - 1))
            widths.append(high / enough.memory - 1)
    return [
        f"{recording.present:,}",
        *map(str, held.tolist()),
        f"{np.mean(errors):.1%}",
        f"±{np.mean(widths):.1%}",
    ]


if __name__ == "__main__":
    raise SystemExit(main())
