"""The `penstock` command, end to end."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

import penstock
from penstock.cli import app
from penstock.cli.join_files import join_files
from penstock.cli.side import Side
from penstock.files.formats import FORMATS
from penstock.files.output import Output
from penstock.files.source import open_source
from support.thoroughness import often

START = datetime(2024, 1, 1)
ENDINGS = [kind.endings[0] for kind in FORMATS]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """The first join on a machine says that it compiles: not in the middle of a test."""
    streams = [penstock.Stream(name, time="ts") for name in "ab"]
    with penstock.WindowJoin(streams, on="k", within="1 second").start() as join:
        join.push(a=stream(3, 1), b=stream(3, 2))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def plain(shown: str) -> str:
    """Without colours, which typer forces on some build servers."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


def stream(rows: int, seed: int, gap_s: float = 1.0, keys: int = 20) -> pa.Table:
    """Rows in order of time, every gap or so."""
    draw = random.Random(seed)
    seconds = sorted(draw.uniform(0, rows * gap_s) for _ in range(rows))
    return pa.table(
        {
            "ts": [START + timedelta(microseconds=int(s * 1e6)) for s in seconds],
            "k": [draw.randrange(keys) for _ in range(rows)],
            "id": list(range(rows)),
        }
    )


def write(path: Path, table: pa.Table) -> Path:
    with Output(path) as output:
        output.write(table)
    return path


def read(path: Path, time: str = "event_time") -> pa.Table:
    source = open_source(path, [], time, 1000)
    return pa.Table.from_batches(source.batches, source.schema)


def pairs(table: pa.Table, left: str, right: str) -> Counter[tuple[int, int]]:
    return Counter(
        zip(table[f"{left}_id"].to_pylist(), table[f"{right}_id"].to_pylist(), strict=True)
    )


def expected(
    left: pa.Table, right: pa.Table, left_s: float, right_s: float
) -> Counter[tuple[int, int]]:
    return Counter(
        (a["id"], b["id"])
        for a in left.to_pylist()
        for b in right.to_pylist()
        if a["k"] == b["k"]
        and timedelta(seconds=-right_s) <= b["ts"] - a["ts"] <= timedelta(seconds=left_s)
    )


def files(folder: Path, ending: str = ".parquet") -> tuple[Path, Path]:
    return (
        write(folder / f"a{ending}", stream(300, seed=1)),
        write(folder / f"b{ending}", stream(200, seed=2, gap_s=1.5)),
    )


WITHIN = ("--on", "k", "--time", "ts", "--within", "30 seconds")


def failure(result: Result) -> str:
    """What it said: one line, and no traceback."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def test_version() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"penstock {penstock.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--version", "true"], "No such command 'true'"),
        (["--version=1"], "'--version' does not take a value"),
        (["join", "--force=1"], "'--force' does not take a value"),
        (["--"], "Missing command"),
    ],
)
def test_flags_take_no_value(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in plain(result.stderr)


def test_help_names_every_command() -> None:
    assert {"join", "profile", "demo"} <= set(re.findall(r"\w+", plain(run("--help").stdout)))


@pytest.mark.parametrize("command", [[], ["join"], ["profile"], ["demo"]])
def test_help_shows_no_values_of_flags(command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Show this message and exit." in plain(result.stdout)
    assert "bool" not in plain(result.stdout)


@pytest.mark.parametrize("source", ENDINGS)
@pytest.mark.parametrize("target", ENDINGS)
def test_join_reads_and_writes_every_format(tmp_path: Path, source: str, target: str) -> None:
    left, right = files(tmp_path, source)
    out = tmp_path / f"out{target}"
    result = run("join", left, right, *WITHIN, "-o", out, "--batch-rows", 16)
    assert result.exit_code == 0, result.output
    table = read(out)
    assert table.schema.names == ["a_ts", "a_k", "a_id", "b_ts", "b_k", "b_id", "event_time"]
    found = pairs(table, "a", "b")
    assert found == expected(stream(300, 1), stream(200, 2, 1.5), 30, 30)
    assert re.search(r"^a +300 rows, 0 late$", result.stdout, re.MULTILINE)
    assert re.search(r"^b +200 rows, 0 late$", result.stdout, re.MULTILINE)
    assert re.search(rf"^results +{found.total():,} rows in ", result.stdout, re.MULTILINE)
    assert re.search(r"^peak live +\d+ tuples$", result.stdout, re.MULTILINE)
    assert result.stderr == ""
    assert {path.name for path in tmp_path.iterdir()} == {left.name, right.name, out.name}


@pytest.mark.parametrize("batch_rows", [1, 7, 100_000])
def test_batches_do_not_change_the_answer(tmp_path: Path, batch_rows: int) -> None:
    left, right = files(tmp_path)
    out = tmp_path / "out.parquet"
    assert run("join", left, right, *WITHIN, "-o", out, "--batch-rows", batch_rows).exit_code == 0
    assert pairs(read(out), "a", "b") == expected(stream(300, 1), stream(200, 2, 1.5), 30, 30)


@pytest.mark.parametrize(
    "options",
    [
        (
            *("--left-time", "at", "--right-time", "ts"),
            *("--left-window", "10 s", "--right-window", "0 s"),
            *("--left-index", "buckets(8)", "--right-index", "scan"),
        ),
        (
            *("--time", "at", "--time", "ts", "--within", "10 s", "--within", "0 s"),
            *("--index", "buckets(8)", "--index", "scan"),
        ),
    ],
    ids=["by side", "in their order"],
)
def test_each_side_has_its_own_options(tmp_path: Path, options: tuple[str, ...]) -> None:
    left = write(tmp_path / "a.csv", stream(200, 1).rename_columns(["at", "user", "id"]))
    right = write(tmp_path / "b.jsonl", stream(200, 2))
    out = tmp_path / "out.arrow"
    result = run(
        *("join", left, right, "--on", "user=k", *options),
        *("--names", "x, y", "-o", out, "--quiet"),
    )
    assert result.exit_code == 0, result.output
    assert result.output == ""
    assert pairs(read(out), "x", "y") == expected(stream(200, 1), stream(200, 2), 10, 0)


def test_composite_keys(tmp_path: Path) -> None:
    def with_second(seed: int) -> pa.Table:
        table = stream(200, seed, keys=3)
        return table.append_column("z", pa.array([str(i % 2) for i in range(200)]))

    left, right = (write(tmp_path / f"{n}.parquet", with_second(n)) for n in (1, 2))
    out = tmp_path / "out.parquet"
    for keys in (("--on", "k", "--on", "z=z"), ("--on", "k", "--left-on", "z", "--right-on", "z")):
        arguments = ("--time", "ts", "--within", "9 seconds", "-o", out, "--force")
        result = run("join", left, right, *keys, *arguments)
        assert result.exit_code == 0, result.output
        # The names of these files are no identifiers.
        found = pairs(read(out), "left", "right")
        every = expected(stream(200, 1, keys=3), stream(200, 2, keys=3), 9, 9)
        assert found == Counter(pair for pair in every.elements() if (pair[0] - pair[1]) % 2 == 0)


def test_a_key_column_with_an_equals_sign_in_its_name(tmp_path: Path) -> None:
    left = write(tmp_path / "a.csv", stream(50, 1).rename_columns(["ts", "user=id", "id"]))
    right = write(tmp_path / "b.csv", stream(50, 2))
    out = tmp_path / "out.csv"
    keys = ("--left-on", "user=id", "--right-on", "k")
    result = run("join", left, right, *keys, "--time", "ts", "--within", "30 seconds", "-o", out)
    assert result.exit_code == 0, result.output
    assert pairs(read(out), "a", "b") == expected(stream(50, 1), stream(50, 2), 30, 30)


def test_names_are_those_of_the_files_where_they_can_be(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    left = write(tmp_path / "a.csv.gz", stream(5, 1))
    right = write(tmp_path / "b.csv", stream(5, 2))
    twin = write(tmp_path / "other" / "a.csv", stream(5, 2))
    out = tmp_path / "out.csv"
    run("join", left, right, *WITHIN, "-o", out)
    assert read(out).schema.names[0] == "a_ts"
    run("join", left, twin, *WITHIN, "-o", out, "--force")
    assert read(out).schema.names[0] == "left_ts"


def test_csv_keys_take_the_type_of_the_other_side(tmp_path: Path) -> None:
    left = tmp_path / "a.csv"
    left.write_text("k,ts\n00123,2024-01-01\n123,2024-01-01\n")
    table = pa.table({"k": ["00123"], "ts": [START]})
    for right in (write(tmp_path / "b.parquet", table), tmp_path / "c.csv"):
        if right.suffix == ".csv":
            right.write_text("k,ts\n00123,2024-01-01\nx,2024-01-01\n")
        out = tmp_path / f"{right.stem}_out.parquet"
        result = run("join", left, right, *WITHIN, "-o", out)
        assert result.exit_code == 0, result.output
        assert read(out)["a_k"].to_pylist() == ["00123"]


def test_an_empty_side_gives_an_empty_answer(tmp_path: Path) -> None:
    left = write(tmp_path / "a.csv", stream(0, 1))
    table = stream(50, 2)
    zoned = table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us", "UTC")))
    right = write(tmp_path / "b.parquet", zoned)
    for arguments in ((left, right), (right, left)):
        out = tmp_path / "out.parquet"
        # An empty CSV file takes the types it is joined with.
        result = run("join", *arguments, *WITHIN, "-o", out, "--force")
        assert result.exit_code == 0, result.output
        assert read(out).num_rows == 0
        assert read(out).num_columns == 7


def shuffled(table: pa.Table, rows: int) -> pa.Table:
    """Each block of `rows` rows in reverse."""
    blocks = [
        reversed(range(start, min(start + rows, len(table))))
        for start in range(0, len(table), rows)
    ]
    return table.take([place for block in blocks for place in block])


def test_late_rows_are_said_loudly_and_kept(tmp_path: Path) -> None:
    left = write(tmp_path / "a.parquet", shuffled(stream(300, 1), 20))
    right = write(tmp_path / "b.parquet", stream(300, 2))
    out = tmp_path / "out.parquet"
    arguments = ("join", left, right, *WITHIN, "-o", out, "--force", "--batch-rows", 10)
    result = run(*arguments, "--late", tmp_path / "late.jsonl")
    assert result.exit_code == 0
    found = re.search(r"^a +300 rows, (\d+) late$", result.stdout, re.MULTILINE)
    assert found
    late = int(found[1])
    assert late > 0
    assert f"warning: {late} of 300 rows of {left} came late" in result.stderr
    assert f"they are in {tmp_path / 'late_a.jsonl'}" in result.stderr
    ids = {json.loads(line)["id"] for line in (tmp_path / "late_a.jsonl").read_text().splitlines()}
    assert len(ids) == late
    assert (tmp_path / "late_b.jsonl").read_text() == ""
    kept = Counter(
        {
            pair: count
            for pair, count in expected(stream(300, 1), stream(300, 2), 30, 30).items()
            if pair[0] not in ids
        }
    )
    assert pairs(read(out), "a", "b") == kept
    # What it advises is enough.
    advice = re.search(r"give --lateness '(\d+ \w+)'", result.stderr)
    assert advice
    result = run(*arguments, "--lateness", advice[1])
    assert result.stderr == ""
    assert pairs(read(out), "a", "b") == expected(stream(300, 1), stream(300, 2), 30, 30)


def test_late_rows_fail_the_command_where_asked(tmp_path: Path) -> None:
    left = write(tmp_path / "a.parquet", shuffled(stream(100, 1), 50))
    right = write(tmp_path / "b.parquet", stream(100, 2))
    out = tmp_path / "out.parquet"
    arguments = ("join", left, right, *WITHIN, "-o", out, "--force", "--batch-rows", 5)
    result = run(*arguments, "--fail-late", "--late", tmp_path / "late.csv")
    assert result.exit_code == 3
    assert "came late" in result.stderr
    assert read(out).num_rows > 0
    assert (tmp_path / "late_a.csv").exists()
    in_order = run(*arguments, "--fail-late", "--lateness", "1 hour")
    assert in_order.exit_code == 0, in_order.output


@pytest.mark.parametrize("block", [30, 400])
@pytest.mark.parametrize("batch_rows", often([7, 300, 100_000], 300, 100_000))
def test_what_is_late_does_not_depend_on_limits(
    tmp_path: Path, block: int, batch_rows: int
) -> None:
    left = write(tmp_path / "a.parquet", shuffled(stream(3000, 1), block))
    right = write(tmp_path / "b.parquet", shuffled(stream(2000, 2, gap_s=1.5), block))

    def late(name: str, *limits: str) -> list[str]:
        arguments = ("join", left, right, *WITHIN, "-o", tmp_path / f"{name}_out.csv", "-q")
        arguments += ("--batch-rows", batch_rows, "--late", tmp_path / f"{name}.csv", *limits)
        result = run(*arguments)
        assert result.exit_code == 0, result.output
        return [(tmp_path / f"{name}_{side}.csv").read_text() for side in "ab"]

    every = late("exact")
    assert any(text.count("\n") > 1 for text in every)
    # Nor on how many ghosts there are, and so on how exactly it is known what the join would hold.
    for number, limits in enumerate(
        [
            ("--memory", "10 rows"),
            ("--memory", "60 rows", "--shed", "oldest"),
            ("--memory", "200 KiB", "--seed", "3"),
            ("--memory", "9999 rows"),
        ]
    ):
        assert late(f"limited_{number}", *limits) == every


def test_results_that_are_many_do_not_change_what_is_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = write(tmp_path / "a.parquet", shuffled(stream(900, 1, keys=1), 200))
    right = write(tmp_path / "b.parquet", shuffled(stream(900, 2, keys=1), 200))
    arguments = ("join", left, right, *WITHIN, "-o", tmp_path / "out.csv", "--force", "-q")
    arguments += ("--late", tmp_path / "late.csv")
    found = []
    for results_at_once in (1 << 20, 100):
        monkeypatch.setattr("penstock.cli.join_files._RESULTS_AT_ONCE", results_at_once)
        assert run(*arguments).exit_code == 0
        found.append([(tmp_path / f"late_{side}.csv").read_text() for side in "ab"])
    assert found[0] == found[1]


def test_the_summary_says_what_was_left_out_and_counts_in_english(tmp_path: Path) -> None:
    left = text_file(tmp_path / "a.csv", "k,ts\n1,10\n,11\n,12\n")
    right = text_file(tmp_path / "b.csv", "k,ts\n1,10\n")
    result = run("join", left, right, *WITHIN, "-o", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[:4] == [
        "a 3 rows, 0 late, 2 without a key",
        "b 1 row, 0 late",
        f"results 1 row in {tmp_path / 'out.csv'}",
        "peak live 2 tuples",
    ]


def text_file(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def loss_of(result: Result) -> tuple[int, int]:
    """Rows that were shed and results that were lost, by the summary."""
    found = re.search(
        r"^shed +([\d,]+) tuples\nlost +([\d,]+) results, recall ([\d.]+)%$",
        result.stdout,
        re.MULTILINE,
    )
    assert found, result.output
    shed, lost = (int(number.replace(",", "")) for number in found.groups()[:2])
    assert (found[3] == "100.0") == (lost == 0)
    return shed, lost


@pytest.mark.parametrize("policy", [None, "random", "oldest", "life"])
@pytest.mark.parametrize("batch_rows", [7, 100_000])
def test_under_a_budget_it_says_what_is_lost(
    tmp_path: Path, policy: str | None, batch_rows: int
) -> None:
    left, right = files(tmp_path)
    out = tmp_path / "out.parquet"
    arguments = ("join", left, right, *WITHIN, "-o", out, "--force", "--batch-rows", batch_rows)
    chosen = () if policy is None else ("--shed", policy, "--seed", 5)
    result = run(*arguments, "--memory", "10 rows", *chosen)
    assert result.exit_code == 0, result.output
    shed, lost = loss_of(result)
    every, found = expected(stream(300, 1), stream(200, 2, 1.5), 30, 30), pairs(read(out), "a", "b")
    assert found < every
    assert shed > 0
    assert lost == every.total() - found.total()
    said = f"warning: {lost:,} of {every.total():,} results were lost, since {shed:,} rows were"
    assert said in result.stderr
    # What it advises is enough.
    advice = re.search(
        r"--memory '(\d+ rows)' is enough to lose none$", result.stderr, re.MULTILINE
    )
    assert advice
    result = run(*arguments, "--memory", advice[1], *chosen)
    assert loss_of(result) == (0, 0)
    assert result.stderr == ""
    assert pairs(read(out), "a", "b") == every


def test_losses_are_told_by_a_sample_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.shedding.ghost_room._LEAST_GHOSTS", 32)
    left, right = files(tmp_path)
    result = run("join", left, right, *WITHIN, "-o", tmp_path / "o.csv", "--memory", "10 rows")
    assert result.exit_code == 0, result.output
    assert re.search(
        r"^lost +about \S+ \(\S+ to \S+\) results, recall about [\d.]+% \([\d.]+% to [\d.]+%\)$",
        result.stdout,
        re.MULTILINE,
    )
    assert re.search(
        r"^warning: about \S+ \(\S+ to \S+\) of about \S+ results were lost", result.stderr
    )
    assert "is enough" not in result.stderr


def test_only_a_memory_that_is_surely_enough_is_advised(tmp_path: Path) -> None:
    left = write(tmp_path / "a.parquet", shuffled(stream(300, 1), 20))
    right = write(tmp_path / "b.parquet", stream(300, 2))
    arguments = ("join", left, right, *WITHIN, "--lateness", "1 minute", "-q")
    result = run(*arguments, "-o", tmp_path / "out.csv", "--memory", "10 rows")
    assert result.exit_code == 0, result.output
    (line,) = result.stderr.splitlines()
    assert line.endswith(" rows were dropped to keep within --memory")


@pytest.mark.parametrize(
    ("first", "warned"), [(1_700_000_000, True), (1_700_000_000_000, True), (1 << 50, False)]
)
def test_integer_times_that_look_like_seconds_are_doubted(
    tmp_path: Path, first: int, warned: bool
) -> None:
    times = {"a": [first, first + 60], "b": [1 << 50]}
    left, right = (
        write(tmp_path / f"{name}.csv", pa.table({"k": [1] * len(values), "ts": values}))
        for name, values in times.items()
    )
    result = run("join", left, right, *WITHIN, "-o", tmp_path / "out.csv", "--quiet")
    assert result.exit_code == 0, result.output
    warnings = result.stderr.splitlines()
    assert len(warnings) == warned
    if warned:
        assert f"warning: the times of {left} lie in early 1970" in warnings[0]
        assert "if column 'ts' is in seconds, multiply it by 1,000,000" in warnings[0]


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ("2024-01-01T00:00:00Z", "give the times without a zone one, such as Z at their end"),
        ("1704067200000000", "write the integers as ISO 8601 text"),
    ],
)
def test_times_of_two_kinds_are_told_apart(tmp_path: Path, time: str, message: str) -> None:
    left, _ = files(tmp_path, ".csv")
    other = tmp_path / "c.csv"
    other.write_text(f"k,ts\n1,{time}\n")
    line = failure(run("join", left, other, *WITHIN, "-o", tmp_path / "out.csv"))
    assert "the times cannot be compared: 'ts' of" in line
    assert message in line


def test_pipes_are_refused(tmp_path: Path) -> None:
    left, right = files(tmp_path, ".csv")
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    read_from = failure(run("join", left, pipe, *WITHIN, "-o", tmp_path / "out.csv"))
    assert "it is a pipe or a device, which are not supported; write it to a file" in read_from
    written_to = failure(run("join", left, right, *WITHIN, "-o", pipe, "--force"))
    assert "it is a pipe or a device, which are not supported; name a file" in written_to


def test_warnings_of_late_rows_are_not_quiet(tmp_path: Path) -> None:
    left = write(tmp_path / "a.csv", shuffled(stream(100, 1), 50))
    right = write(tmp_path / "b.csv", stream(100, 2))
    result = run(*("join", left, right, *WITHIN, "-o", tmp_path / "o.csv", "-q", "--batch-rows", 5))
    assert result.stdout == ""
    assert "--lateness" in result.stderr


def test_what_exists_is_replaced_only_by_force(tmp_path: Path) -> None:
    left, right = files(tmp_path)
    out = tmp_path / "out.csv"
    out.write_text("precious")
    arguments = ("join", left, right, *WITHIN, "-o", out)
    assert "give --force" in failure(run(*arguments))
    assert out.read_text() == "precious"
    assert run(*arguments, "--force").exit_code == 0
    assert out.read_text() != "precious"
    assert "both read and written" in failure(
        run("join", left, right, *WITHIN, "-o", left, "--force")
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": "none.csv"}, "does not exist; check the path"),
        ({"left": "a.txt"}, "cannot tell the format of"),
        ({"out": "out.xlsx"}, "cannot tell the format of"),
        ({"out": "none/out.csv"}, "No such file or directory"),
        ({"--on": None}, "the join has no key; give --on"),
        ({"--on": "x=k"}, "has no column 'x'; its columns are 'ts', 'k', 'id'"),
        ({"--on": "k=x"}, "has no column 'x'; its columns are 'ts', 'k', 'id'"),
        ({"--on": "k="}, "cannot read --on 'k='"),
        ({"--left-on": "k"}, "come in pairs, got 1 and 0"),
        ({"--time": None}, "the files have no time; give --time"),
        ({"--time": None, "--left-time": "ts"}, "the right file has no time; give --time"),
        ({"--time": "at"}, "has no column 'at'; its columns are"),
        ({"--within": None}, "the files have no window; give --within"),
        ({"--within": None, "--left-window": "1 s"}, "the right file has no window; give --within"),
        ({"--within": "-1 s"}, "cannot be negative"),
        ({"--within": "soon"}, "write a number and a unit"),
        ({"--lateness": "5 parsecs"}, "unknown unit 'parsecs'"),
        ({"--left-index": "tree"}, "no index is called 'tree'"),
        ({"--index": "tree"}, "no index is called 'tree'"),
        ({"--shed": "prob"}, "without --memory none are; give --memory, such as '100000 rows'"),
        ({"--seed": "0"}, "--seed 0 says how rows are dropped, and without --memory none are"),
        ({"--memory": "12"}, "memory must be a number of rows or of bytes"),
        ({"--memory": "9 B"}, "is too little: the join takes"),
        ({"--memory": "9 rows", "--shed": "best"}, "shed must be one of ('random', 'oldest'"),
        ({"--memory": "9 rows", "--seed": "-1"}, "seed must be a whole number, 0 or more, got -1"),
        ({"--memory": "9 rows", "--within": "5 rows"}, "windows of ['5 rows'] count tuples"),
        ({"--names": "x"}, "--names needs two different names, got 'x'"),
        ({"--names": "x,x"}, "--names needs two different names"),
        ({"--on": "ts=k"}, "name columns of the same kind with --on"),
        ({"--on": "k,id"}, "for a key of several columns repeat the option: --on a --on b"),
    ],
)
def test_errors_are_one_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    files(tmp_path, ".csv")
    (tmp_path / "a.txt").touch()
    options = {"--on": "k", "--time": "ts", "--within": "30 s", **change}
    left, out = options.pop("left", "a.csv"), options.pop("out", "out.csv")
    given = [word for pair in options.items() if pair[1] is not None for word in pair]
    before = sorted(tmp_path.iterdir())
    line = failure(run("join", tmp_path / left, tmp_path / "b.csv", "-o", tmp_path / out, *given))
    assert message in line
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_that_breaks_off_leaves_nothing_behind(tmp_path: Path) -> None:
    left, right = files(tmp_path, ".csv")
    with left.open("a") as file:
        file.write("1,2,3,4,5\n")
    before = sorted(tmp_path.iterdir())
    line = failure(run("join", left, right, *WITHIN, "-o", tmp_path / "out.csv"))
    assert "cannot read" in line
    assert sorted(tmp_path.iterdir()) == before


def test_null_times_are_refused_with_their_file(tmp_path: Path) -> None:
    left, _ = files(tmp_path)
    table = stream(3, 3).set_column(0, "ts", pa.array([START, None, START]))
    broken = write(tmp_path / "c.parquet", table)
    line = failure(run("join", left, broken, *WITHIN, "-o", tmp_path / "out.csv"))
    assert "'c'" in line


def test_interrupted_it_leaves_nothing_behind(tmp_path: Path) -> None:
    rows = 400_000
    table = pa.table({"ts": pa.array(range(rows), pa.int64()), "k": pa.array([0, 1] * (rows // 2))})
    left, right = (write(tmp_path / f"{name}.parquet", table) for name in "ab")
    before = sorted(tmp_path.iterdir())
    command = [sys.executable, "-m", "penstock.cli", "join", str(left), str(right), "--on", "k"]
    command += ["--time", "ts", "--within", "1 second", "-o", str(tmp_path / "out.csv")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while process.poll() is None and sorted(tmp_path.iterdir()) == before:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert errors.splitlines()[-1] == "interrupted; nothing was written"
    assert sorted(tmp_path.iterdir()) == before


class Recorder:
    """Stands where a join would, notes what it is told, and answers with `fan_out` a row."""

    def __init__(self, fan_out: int = 0) -> None:
        self.fan_out = fan_out
        self.calls: list[Any] = []
        self.sizes: list[int] = []

    def push(self, tables: dict[str, pa.RecordBatch]) -> pa.Table:
        self.calls.append({name: batch["ts"].to_pylist() for name, batch in tables.items()})
        self.sizes.append(sum(batch.num_rows for batch in tables.values()))
        return self.rows(self.sizes[-1] * self.fan_out)

    def advance(self, name: str, time_us: int) -> pa.Table:
        self.calls.append((f"end of {name}", time_us))
        return self.rows(0)

    def finish(self) -> pa.Table:
        return self.rows(0)

    def late(self) -> dict[str, pa.Table]:
        return {name: self.rows(0) for name in "ab"}

    @property
    def metrics(self) -> Any:
        return type("Metrics", (), {"live": 0, "ghosts": 0, "lost": 0})

    @staticmethod
    def rows(count: int) -> pa.Table:
        return pa.table({"x": pa.nulls(count, pa.int8())})


def sides_of(folder: Path, batch_rows: int, times: dict[str, list[int]]) -> list[Side]:
    sides = []
    for name, values in times.items():
        path = write(folder / f"{name}.arrow", pa.table({"ts": pa.array(values, pa.int64())}))
        sides.append(Side(name, "ts", open_source(path, [], "ts", batch_rows), batch_rows))
    return sides


@pytest.mark.parametrize(
    ("fan_out", "rows", "sizes"),
    [
        (0, 30_000, [256, 512, 1024, 2048, 4096, 2064, 10_000, 10_000]),
        (1 << 12, 1024, [256, 256, 256, 256]),
        (1 << 16, 300, [256, 16, 16, 12]),
    ],
)
def test_a_batch_goes_in_pieces_where_its_results_are_many(
    tmp_path: Path, fan_out: int, rows: int, sizes: list[int]
) -> None:
    join: Any = Recorder(fan_out)
    sides = sides_of(tmp_path, 10_000, {"a": list(range(rows)), "b": []})
    with Output(tmp_path / "out.arrow") as out:
        join_files(join, sides, out, {}, lambda totals: None)
    assert join.sizes == sizes


def test_both_sides_go_in_step(tmp_path: Path) -> None:
    sides = sides_of(tmp_path, 2, {"a": [0, 10, 20, 30], "b": [5, 6, 8, 7, 25, 26]})
    join: Any = Recorder()
    with Output(tmp_path / "out.csv") as out:
        join_files(join, sides, out, {}, lambda totals: None)
    end = 253_402_300_799_999_999
    assert join.calls == [
        {"a": [0], "b": [5, 6]},
        {"b": [7, 8]},
        {"a": [10]},
        {"a": [20], "b": [25, 26]},
        ("end of b", end),
        {"a": [30]},
        ("end of a", end),
    ]
    assert [(side.rows, side.newest_us, side.disorder_us) for side in sides] == [
        (4, 30, 0),
        (6, 26, 1),
    ]


def test_the_embedded_demo_tells_what_it_did_in_plain_lines() -> None:
    result = run("demo", "--embedded", "--rows", 100_000, "--seed", 3)
    assert result.exit_code == 0, result.output
    assert "100%" in result.stdout
    assert "orders_k" in result.stdout
    assert re.match(r"kernels ready after [\d.]+ s; the times below do not count it", result.stdout)
    assert re.search(r"^100,000 rows joined to [\d,]+ results$", result.stdout, re.MULTILINE)
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 120
    again = run("demo", "--embedded", "--rows", 100_000, "--seed", 3)
    results = re.compile(r"joined to ([\d,]+) results")
    assert results.findall(result.stdout) == results.findall(again.stdout)


def test_the_embedded_demo_fits_a_terminal() -> None:
    environment = {
        **os.environ,
        "TERM": "xterm",
        "COLUMNS": "80",
        "LINES": "24",
        "FORCE_COLOR": "1",
    }
    command = ["demo", "--embedded", "--rows", "100000"]
    result = CliRunner().invoke(app, command, env=environment)
    assert result.exit_code == 0, result.output
    lines = plain(result.stdout).splitlines()
    assert max(len(line.rsplit("\r", 1)[-1]) for line in lines) <= 80


def test_the_demo_says_what_it_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    line = failure(run("demo"))
    assert f"no Java was found: JAVA_HOME is '{tmp_path}'" in line
    assert "or run penstock demo --embedded" in line
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "nor is java on the PATH" in failure(run("demo"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    line = failure(run("demo"))
    assert "pyspark is not installed" in line
    assert "or run penstock demo --embedded" in line
