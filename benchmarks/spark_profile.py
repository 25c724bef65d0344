"""Where the time of a batch goes on Spark: `python -m benchmarks.spark_profile [ROWS …]`.

Prints a table with a column for each number of rows a side and batch: seconds a batch, as
shares of the two cores. docs/benchmarks.md explains the lines.
"""

from __future__ import annotations

import statistics
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from typing import Final

from benchmarks.on_spark import narrow_shape
from benchmarks.spark_contest import Run, directory_of_input, run_alone

_CORES: Final = 2
_WARM_UP: Final = {50_000: 40, 1_000_000: 2}
_COUNTED: Final = {50_000: 24, 1_000_000: 4}

LINES: Final = (
    "read, alone",
    "rows to Arrow",
    "pack",
    "blobs to the shuffle",
    "shuffle and blobs to Python",
    "state calls",
    "state load and commit",
    "segments",
    "hot state",
    "order",
    "kernel",
    "take",
    "rest of the driver",
    "rest of the step",
    "unpack",
    "Arrow to rows",
    "waiting for the longer task",
    "planning and logs",
    "the rest",
)


def profile(batch_rows: int) -> dict[str, float]:
    """Seconds a batch by where they go; the sum is the batch."""
    warm_up, counted = _WARM_UP.get(batch_rows, 4), _COUNTED.get(batch_rows, 6)
    with directory_of_input(narrow_shape(batch_rows, warm_up + counted)) as source:
        reading = run_alone("read only", source, warm_up)
        timed = run_alone("penstock, timed", source, warm_up)
        plain = run_alone("penstock", source, warm_up)
    tasks = _tasks(timed, counted)
    pack, join, unpack = tasks["pack"], tasks["join"], tasks["unpack"]
    read_s = statistics.median(each["addBatch"] for each in reading.outcome.phases_s[warm_up:])
    outputs_s = unpack["work"] + unpack["hand over"]
    inside_s = sum(seconds for what, seconds in join.items() if what not in ("task", "longest"))
    steady = timed.outcome.phases_s[warm_up:]
    load_s, commit_s = (
        sum(each[phase] for each in steady) / counted / _CORES for phase in ("load", "commit")
    )
    # The unpacking worker of a task is there before the joining one gets its first blob, and
    # until the state is committed.
    before_s = max(unpack["task"] - join["task"] - commit_s, 0.0)
    within_s = max(join["task"] - inside_s - outputs_s, 0.0) + join["read blobs"]
    lines = {
        "read, alone": min(read_s, pack["wait"]),
        "rows to Arrow": max(pack["wait"] - read_s, 0.0),
        "pack": pack["work"],
        "blobs to the shuffle": pack["hand over"],
        "shuffle and blobs to Python": before_s + within_s,
        **{name: join[name] for name in LINES if name in join},
        "state load and commit": load_s + commit_s,
        "unpack": unpack["work"],
        "Arrow to rows": unpack["hand over"],
        "waiting for the longer task": pack["longest"] + join["longest"],
    }
    batch_s = statistics.mean(timed.steady_s)
    lines["planning and logs"] = batch_s - statistics.mean(each["addBatch"] for each in steady)
    lines["the rest"] = batch_s - sum(lines.values())
    return {
        **{name: lines.get(name, 0.0) for name in LINES},
        "the batch": batch_s,
        "the batch, untimed": statistics.mean(plain.steady_s),
    }


def _tasks(run: Run, counted: int) -> dict[str, Counter[str]]:
    """Seconds a batch and core of the batches that count, by kind of task and part.

    The part `longest` is by how much the longest task of a batch is above the mean.
    """
    found: dict[str, Counter[str]] = defaultdict(Counter)
    tasks: dict[tuple[str, int], list[float]] = defaultdict(list)
    started_at, batch_s = run.outcome.started_at, run.outcome.batch_s
    for line in run.outcome.times:
        batch = bisect_right(started_at, line["at"]) - 1
        # Behind the last batch with input comes one without.
        if batch >= run.warm_up and line["at"] <= started_at[batch] + batch_s[batch]:
            what = line["what"]
            tasks[what, batch].append(line["task"])
            for part, seconds in line.items():
                if part not in ("at", "what"):
                    found[what][part] += seconds / counted / _CORES
    for (what, _), seconds in tasks.items():
        found[what]["longest"] += max(max(seconds) - sum(seconds) / _CORES, 0.0) / counted
    return found


def main() -> None:
    """Print the table."""
    sizes = [int(given) for given in sys.argv[1:]] or [1_000_000, 50_000]
    profiles = [profile(rows) for rows in sizes]
    print("| where |" + "".join(f" {rows:,} + {rows:,} |" for rows in sizes))
    print("|---|" + "---:|" * len(sizes))
    for name in profiles[0]:
        cells = [f"{each[name]:.2f} s, {each[name] / each['the batch']:.0%}" for each in profiles]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
