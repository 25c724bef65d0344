"""The auction streams as a source of Spark's, and the demo command that joins them."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from penstock.cli.demo.auctions import Digest
from penstock.cli.demo.state import DemoState
from penstock.cli.demo.view import shown
from penstock.errors import InputError
from penstock.samples import Nexmark
from penstock.spark.nexmark_source import NexmarkReader, NexmarkSource, ReadAllAvailable
from support.thoroughness import WAY

RUN_ANYWAY = pytest.mark.skipif(WAY == "ci", reason=".ci/run runs the demo itself")

WORK = Nexmark(events=1_000_003, seed=5)
BATCH = 300_000


def read(reader: NexmarkReader, start: dict[str, int], end: dict[str, int]) -> pa.RecordBatch:
    parts = [part for partition in reader.partitions(start, end) for part in reader.read(partition)]
    return pa.concat_batches(parts)


@pytest.mark.parametrize("stream", Nexmark.STREAMS)
def test_the_source_gives_each_row_once_and_again_on_replay(stream: str) -> None:
    reader = NexmarkReader(WORK, stream, BATCH)
    offset, parts, ends = reader.initialOffset(), [], []
    while (end := reader.latestOffset(offset, reader.getDefaultReadLimit())) != offset:
        parts.append(read(reader, offset, end))
        assert read(NexmarkReader(WORK, stream, 7), offset, end).equals(parts[-1])
        offset = end
        ends.append(end["events"])
    assert ends == [300_000, 600_000, 900_000, WORK.events]
    assert pa.concat_batches(parts).equals(WORK.batch(stream, 0, WORK.events))
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable()) == offset
    assert reader.partitions(offset, offset) == []


def test_partitions_are_few_and_even() -> None:
    sizes = {
        stream: [
            part.stop - part.start
            for part in NexmarkReader(WORK, stream, BATCH).partitions(
                {"events": 0}, {"events": BATCH}
            )
        ]
        for stream in Nexmark.STREAMS
    }
    assert sizes == {"persons": [6_000], "auctions": [18_000], "bids": [92_000] * 3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stream": "sellers"}, "asked for stream 'sellers'; set the option stream to one of"),
        ({"stream": "bids"}, "option events of penstock_nexmark is None; set it to a whole number"),
        ({"stream": "bids", "events": "many"}, "is 'many'; set it to a whole number of at least 1"),
        ({"stream": "bids", "events": "9", "events_per_batch": "0"}, "option events_per_batch"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, str], message: str) -> None:
    source = NexmarkSource(options)
    with pytest.raises(InputError, match=re.escape(message)):
        source.streamReader(source.schema())


def demo(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock.cli", "demo", *arguments]
    environment = {**os.environ, "TMPDIR": str(directory)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=280, check=False
    )


@RUN_ANYWAY
@pytest.mark.slow
def test_the_demo_joins_on_spark_and_compares(tmp_path: Path) -> None:
    result = demo(tmp_path, "--rows", "300000", "--seed", "5", "--seconds", "250")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    assert "300,000 rows joined to" in result.stdout
    assert "6,000 persons, 18,000 auctions, 276,000 bids" in result.stdout
    assert re.search(r"^ +event_time +name +city", result.stdout, re.MULTILINE)
    found = re.search(r"^same ([\d,]+) results as the embedded engine", result.stdout, re.MULTILINE)
    assert found
    assert f"joined to {found[1]} results" in result.stdout
    assert int(found[1].replace(",", "")) > 5_000
    assert list(tmp_path.iterdir()) == []
    compiled = re.search(r"compiled: 250,000 rows, ([\d,]+) results", result.stdout)
    assert compiled
    assert f"  {compiled[1]} results  250,000 live" in result.stdout  # those of Spark's first batch


@pytest.mark.slow
def test_the_demo_of_few_rows_and_no_time_compares_and_succeeds(tmp_path: Path) -> None:
    result = demo(tmp_path, "--rows", "60", "--seconds", "0")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
    assert "60 rows joined to 0 results" in result.stdout
    assert "for results give more --rows" in result.stdout
    assert "same 0 results as the embedded engine" in result.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shown", ["Spark starts", "batch 1"])
@pytest.mark.slow
def test_ctrl_c_ends_the_demo_in_words(tmp_path: Path, shown: str) -> None:
    command = [sys.executable, "-u", "-m", "penstock.cli", "demo", "--rows", "300000"]
    with subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if shown in line:
                # To all of them, as a terminal does.
                os.killpg(process.pid, signal.SIGINT)
                break
        out, err = process.communicate(timeout=200)
    said = "".join(lines) + out
    assert process.returncode == 130, said + err
    assert err == ""
    assert "0 rows joined to 0 results" in said
    assert said.endswith("interrupted: the results were not compared with the embedded engine's\n")
    assert not list(tmp_path.glob("penstock-*"))


@pytest.mark.parametrize("width", [80, 120])
def test_the_panel_fits_a_terminal(width: int) -> None:
    console = Console(width=width, force_terminal=True, file=io.StringIO(), record=True)
    state = DemoState("a title", total=10, rows=dict.fromkeys(Nexmark.STREAMS, 10_000_000))
    with shown(console, state) as refresh:
        state.wait("query", "batch 1")
        refresh("wait")
        state.seconds.append(1.5)
        state.stream_speeds = dict.fromkeys(Nexmark.STREAMS, 123_456.0)
        state.speeds.extend([1.0, 2.0] * 40)
        state.results, state.live, state.bytes, state.lag_us = 10**9, 10**8, 10**9, 27_000_000
        refresh("batch")
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= width
    shown_text = "\n".join(lines)
    for part in ("1,000,000,000", "100,000,000", "1,000 MB", "27.0 s", "123k", "1.50 s"):
        assert part in shown_text


def test_digests_do_not_depend_on_the_order() -> None:
    names = ("person", "auction", "bid_on", "bid_at", "event_time")
    rows = pa.table({name: pa.array([3, 1, 2]) for name in names})
    other = pa.table({name: pa.array([3, 1, 4]) for name in names})
    assert Digest.of(rows) == Digest.of(rows.take([2, 0, 1]))
    assert Digest.of(rows) == Digest.of(rows[:1]) + Digest.of(rows[1:])
    assert Digest.of(rows) != Digest.of(other)
    assert Digest.of(rows[:0]) == Digest()
