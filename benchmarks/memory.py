"""Bytes of state beside the payload, and memory that stays flat."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.measure import Measurement
from benchmarks.subject import join_within
from penstock.samples import uniform
from penstock.samples.payload_columns import key_strings

__all__ = ["flat", "state"]

Integers = npt.NDArray[np.int64]

_WINDOWS: Final = 100
_WARM_UP_WINDOWS: Final = 10
_PUSHES_A_WINDOW: Final = 4
# The shapes of `flat`: rows of a window and side, payload columns, keys of 20 characters or not.
_SHAPES: Final = {"narrow": (50_000, 1, False), "wide": (10_000, 10, True)}


def state() -> list[Measurement]:
    """Bytes of ring and directory per tuple, the rings three quarters full."""
    rows = 3 << 18  # three quarters of 2^20
    return [
        _state("ten tuples a key", lambda offsets: offsets % (rows // 10), rows, required=64),
        _state("all keys distinct", lambda offsets: offsets, rows, required=128),
    ]


def flat() -> list[Measurement]:
    """Resident memory over 100 windows' worth of input whose keys are new in each window.

    Each shape runs in a process of its own. Of the samples after the warm-up, the highest
    of the last half is compared with the highest of the first.
    """
    return [_flat(shape) for shape in _SHAPES]


def _state(
    what: str,
    keys: Callable[[Integers], Integers],
    rows: int,
    required: float,
) -> Measurement:
    work = uniform(seed=1, rows=rows, rate=1000, keys=1)
    # An odd factor scatters the keys over all 64 bits, one to one.
    scatter = np.int64(-7046029254386353131)
    batch_rows = 8_192
    with join_within("10 days").start() as join:
        for start in range(0, rows, batch_rows):
            column = keys(np.arange(start, start + batch_rows)) * scatter
            # The right side has the negated keys: nothing joins, so the answer costs nothing.
            join.push(
                left=_with_keys(work.table("left", start, start + batch_rows), pa.array(column)),
                right=_with_keys(work.table("right", start, start + batch_rows), pa.array(~column)),
            )
        live, footprint = join.metrics.live, join.footprint()
    if live != 2 * rows:
        raise AssertionError(f"expected {2 * rows:,} live tuples, got {live:,}")
    return Measurement(
        name="state",
        what=f"state beside the payload, {what}",
        measured=footprint["state"] / live,
        required=required,
        at_least=False,
        unit="bytes a tuple",
        details={"live": live, **footprint},
    )


def _flat(shape: str) -> Measurement:
    command = [sys.executable, "-m", "benchmarks.memory", shape]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    samples: list[int] = json.loads(done.stdout)
    half = len(samples) // 2
    first, last = max(samples[:half]), max(samples[half:])
    return Measurement(
        name="flat",
        what=f"resident memory, last half over first half, {shape} rows",
        measured=last / first,
        required=1.05,
        at_least=False,
        details={"first_half_mb": first / 1e6, "last_half_mb": last / 1e6},
    )


def _resident_samples(shape: str) -> Iterator[int]:
    """Resident bytes after each push beyond the warm-up."""
    window_rows, payload, strings = _SHAPES[shape]
    work = uniform(
        seed=1, rows=window_rows * _WINDOWS, rate=1000, keys=window_rows, payload=payload
    )
    with join_within(f"{window_rows} milliseconds").start() as join:
        for number, batch in enumerate(work.batches(window_rows // _PUSHES_A_WINDOW)):
            window = number // _PUSHES_A_WINDOW
            join.push(
                {
                    stream: _renewed(table, window * window_rows, strings)
                    for stream, table in batch.items()
                }
            )
            if window >= _WARM_UP_WINDOWS:
                yield _resident_bytes()


def _renewed(table: pa.Table, first_key: int, strings: bool) -> pa.Table:
    """The rows with keys that follow `first_key`, as strings or as they are."""
    numbers = table["k"].to_numpy() + first_key
    return _with_keys(table, key_strings(numbers) if strings else pa.array(numbers))


def _with_keys(table: pa.Table, keys: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index("k"), "k", keys)


def _resident_bytes() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    if found is None:
        raise RuntimeError("/proc/self/status has no line VmRSS; run this on Linux")
    return int(found.group(1)) * 1024


if __name__ == "__main__":
    pa.set_cpu_count(1)
    print(json.dumps(list(_resident_samples(sys.argv[1]))))
